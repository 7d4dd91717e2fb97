"""What is explained: a black box with one input whose places can be covered. A loaded model is one, and so is any
function."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from saccade.data.word_rules import word_spans
from saccade.errors import UserError, WrongUse
from saccade.explaining.covers import WORD, Cover, PictureCover, SoundCover, TextCover
from saccade.explaining.rise import Scorer
from saccade.pipelines.answer import Answer
from saccade.pipelines.completer import Completion
from saccade.pipelines.filler import GAP, Filling
from saccade.pipelines.forced import Forced
from saccade.pipelines.pipeline import Pipeline, Request
from saccade.pipelines.tagger import Tagged
from saccade.pipelines.word_reader import PictureText
from saccade.runtime.contract import Floats
from saccade.sites import SOURCE, TARGET
from saccade.sources.opener import is_image
from saccade.sources.picture import PictureItem
from saccade.sources.picture_question import PictureQuestionItem
from saccade.sources.sound import SoundItem
from saccade.sources.source import shown

COVERED_WORD = "…"
"""Stands for a covered word where every word has an answer of its own."""


@dataclass(frozen=True, eq=False)
class BlackBox:
    """A black box, one input, and what of the output is explained."""

    box: Scorer = field(repr=False)
    """Higher for more of what is explained."""
    cover: Cover = field(repr=False)
    source: str
    """The input in one line."""
    text: str
    """What is explained."""
    pipeline: Pipeline[Any, Any] | None = field(default=None, repr=False)
    answer: Answer | None = field(default=None, repr=False)
    memory: str = SOURCE
    """Where the model keeps what is covered."""
    pieces: list[int] | None = None
    """The pieces of the answer that are explained; None: all."""


def subject_of(
    model: Any,
    raw: Any,
    *,
    word: int | None = None,
    question: bool = False,
    request: Request | None = None,
    **options: Any,
) -> BlackBox:
    """`model` is a loaded model or a function; `word`: of the answer, counted from 1; `question`: cover that, not the
    picture."""
    if not isinstance(model, Pipeline):
        if word is not None or question:
            raise WrongUse("a word of the answer, or the question, can be chosen of a loaded model, not of a function")
        return function_subject(model, raw, **options)
    if options:
        raise WrongUse(f"{', '.join(options)}: these options are for functions, not for loaded models")
    answer = model.answer([raw], request or Request())[0]
    if isinstance(answer, UserError):
        raise answer
    return answer_subject(model, raw, answer, word=word, question=question)


def answer_subject(
    pipeline: Pipeline[Any, Any], raw: Any, answer: Answer, *, word: int | None = None, question: bool = False
) -> BlackBox:
    """Of an answer that is there, or was given."""
    forced = pipeline.forced(answer)
    pieces, text = (None, answer.text) if word is None else _word(forced, word)
    cover, memory = _cover(pipeline, raw, answer, question=question)

    def box(inputs: Sequence[Any]) -> Floats:
        found = pipeline.forced(answer, inputs)
        return (found if pieces is None else found.only(pieces)).chance_I

    return BlackBox(box, cover, " ".join(answer.source.split()), text, pipeline, answer, memory, pieces)


def _word(forced: Forced, word: int) -> tuple[list[int], str]:
    groups = forced.pieces.groups()
    if not 1 <= word <= len(groups):
        raise WrongUse(f"word {word} of the answer asked, but there are {len(groups)}, counted from 1")
    return groups[word - 1], forced.pieces.name(groups[word - 1])


def _cover(pipeline: Pipeline[Any, Any], raw: Any, answer: Answer, *, question: bool) -> tuple[Cover, str]:
    """What of an input can be covered, and the memory that it is kept in."""
    if isinstance(answer, PictureText):
        return PictureCover(answer.words[0].pixels_HW), SOURCE
    if isinstance(answer, Tagged):
        return _TaggedCover(answer), SOURCE
    if isinstance(answer, Filling):
        gaps = [range(at, at + len(GAP)) for at in range(len(answer.source)) if answer.source.startswith(GAP, at)]
        spans = [one.span() for one in WORD.finditer(answer.source) if not any(one.start() in gap for gap in gaps)]
        return TextCover(answer.source, spans=spans), SOURCE
    if isinstance(answer, Completion):
        return TextCover(answer.source), TARGET
    item = getattr(answer, "item", None) or pipeline.source.read(raw)
    if isinstance(item, PictureQuestionItem):
        pixels, asked = _plain(item.picture), item.question.text
        if question:
            return TextCover(asked, wrap=lambda text: (pixels, text)), "question"
        return PictureCover(pixels, wrap=lambda some: (some, asked)), "picture"
    if question:
        raise WrongUse("this model reads no question beside its input")
    if isinstance(item, PictureItem):
        return PictureCover(_plain(item)), SOURCE
    if isinstance(item, SoundItem):
        rate = item.rate
        return SoundCover(item.samples, rate, wrap=lambda samples: (samples, rate)), SOURCE
    return TextCover(answer.source), SOURCE


def _plain(item: PictureItem) -> np.ndarray:
    """Pixels as a source takes them back."""
    pixels = item.pixels_HWC
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels


class _TaggedCover(TextCover):
    """The words of a sentence that is tagged: a covered word keeps its place."""

    def __init__(self, answer: Tagged) -> None:
        super().__init__(answer.source, spans=word_spans(answer.source))
        self.sentence = answer.sentence

    def under(self, mask_P: Floats) -> Any:
        pairs = zip(self.sentence.words, mask_P.tolist(), strict=True)
        return replace(self.sentence, words=[word if kept >= 0.5 else COVERED_WORD for word, kept in pairs])


def function_subject(
    function: Callable[[Any], Any],
    raw: Any,
    *,
    output: int | str | None = None,
    batched: bool = False,
    rate: int = 16_000,
    fill: float | None = None,
    blank: str = "",
) -> BlackBox:
    """Any function of a text, a picture or a sound that gives a number, or several numbers or a table of them.

    `output`: which of several numbers; by default the one that is highest for the whole input. `batched`: the function
    takes a list and gives a list. `rate`: samples in a second. `fill`, `blank`: what a covered pixel or word becomes.
    """
    if not callable(function):
        raise WrongUse(f"a model is a loaded model or a function, not {shown(function)}")
    cover, label = _raw_cover(raw, rate=rate, fill=fill, blank=blank)

    def call(inputs: Sequence[Any]) -> list[Any]:
        return list(function(list(inputs))) if batched else [function(one) for one in inputs]

    whole = call([cover.under(np.ones(cover.places, dtype=np.float32))])[0]
    chosen = _chosen(whole) if output is None else output

    def box(inputs: Sequence[Any]) -> Floats:
        return np.array([_number(found, chosen) for found in call(inputs)], dtype=np.float64)

    return BlackBox(box, cover, label, "score" if chosen is None else str(chosen))


def _raw_cover(raw: Any, *, rate: int, fill: float | None, blank: str) -> tuple[Cover, str]:
    if isinstance(raw, str):
        return TextCover(raw, blank=blank), " ".join(raw.split())
    if is_image(raw):
        from PIL import Image

        return PictureCover(np.asarray(raw.convert("RGB")), fill=fill, wrap=Image.fromarray), "picture"
    if isinstance(raw, np.ndarray):
        return (SoundCover(raw, rate), "sound") if raw.ndim == 1 else (PictureCover(raw, fill=fill), "picture")
    raise WrongUse(f"an input is a text, a picture (PIL or an array) or samples of a sound, not {shown(raw)}")


def _chosen(whole: Any) -> int | str | None:
    """The highest of several numbers; None where there is only one."""
    if isinstance(whole, dict):
        highest: str = max(whole, key=lambda name: float(whole[name]))
        return highest
    numbers = np.asarray(whole, dtype=np.float64).reshape(-1)
    return None if len(numbers) == 1 else int(numbers.argmax())


def _number(found: Any, chosen: int | str | None) -> float:
    if chosen is None:
        return float(np.asarray(found, dtype=np.float64).reshape(-1)[0])
    if isinstance(found, dict):
        return float(found[chosen])
    return float(np.asarray(found, dtype=np.float64).reshape(-1)[int(chosen)])

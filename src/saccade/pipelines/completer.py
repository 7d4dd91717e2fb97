"""A loaded language model: a beginning in, how it goes on out, at once or as it is written."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from pydantic import StrictBool

from saccade.axes import Pieces
from saccade.data.windows import window_starts
from saccade.decode.choose import log_sum_exp
from saccade.decode.hypothesis import write_each
from saccade.decode.row import RowRequest, Sample, Strategy, Text
from saccade.decode.sample import Drawing
from saccade.decode.search import SearchConfig
from saccade.decode.session import Session
from saccade.errors import UserError, WrongUse
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.completing import UNFINISHED, Completing
from saccade.pipelines.forced import Forced, chosen_logprobs, in_batches
from saccade.pipelines.opening import open_language
from saccade.pipelines.pipeline import Pipeline, Report, Request
from saccade.pipelines.table import TASKS
from saccade.runtime.contract import How
from saccade.runtime.open import Choice, LanguageRuntime
from saccade.sites import TARGET
from saccade.sources.text import TextItem, TextSource
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary


class CompleterSettings(TaskSettings):
    """What a model folder says about the texts that the model knows."""

    marked: StrictBool
    """The model knows documents, which begin with <s> and end with </s>."""
    lowercase: bool = False
    """It has never seen a capital, and reads prompts without."""


@dataclass(frozen=True)
class Completion(Answer):
    """A beginning, and how the model went on: the text is what was written, without the prompt. Its score is the
    natural log of its probability under the model, whatever was filtered when it was drawn."""

    ended: str
    """end: the model ended it; stop: a stop string; length: the limit."""
    prompt_ids: list[int]
    """The tokens of the prompt."""
    ids: list[int]
    """The tokens that were written."""

    @property
    def prompt(self) -> str:
        """The beginning."""
        return self.source

    @property
    def logprob(self) -> float:
        """The score."""
        return self.score

    def record(self) -> Values:
        return {
            "prompt": self.prompt,
            "text": self.text,
            "logprob": round(self.logprob, 5),
            "tokens": len(self.ids),
            "ended": self.ended,
        }


class Completer(Pipeline[TextItem, Completion]):
    """Completes: `completer("Once upon a time")`, or a list of beginnings.

    Texts are sampled, at temperature 0.8 and with seed 0 unless others are given, as by `saccade complete`: the same
    prompt gives the same text. `temperature=0` takes the most likely token each time, `beam=4` searches.
    """

    options = frozenset({"beam", "alpha", "temperature", "seed", "top_k", "top_p", "repetition", "stop", "max_tokens"})

    rows_at_once = 32
    """Texts written side by side."""
    default_tokens = 200
    """The longest text, in tokens, unless `max_tokens` is given."""
    default_temperature = 0.8
    """The temperature of sampling, unless `temperature` is given."""

    def __init__(
        self, model: LanguageRuntime, vocabulary: Vocabulary, *, marked: bool, lowercase: bool = False
    ) -> None:
        """`marked`: the model knows documents, which begin with <s> and end with </s>. `lowercase`: it has never seen
        a capital, and reads prompts without."""
        self.model = model
        self.vocabulary = vocabulary
        self.marked, self.lowercase = marked, lowercase
        self.context = model.context

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Completer":
        """The model of a folder."""
        settings, path = folder.settings(CompleterSettings), folder.path / "tokenizer.json"
        vocabulary = read_vocabulary(folder.tokenizer, path, spaced=False, marks=folder.marks)
        model = open_language(folder, vocabulary, how)
        return cls(model, vocabulary, marked=settings.marked, lowercase=settings.lowercase)

    @property
    def source(self) -> TextSource:
        return cast(TextSource, TASKS["language"].source)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[TextItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Completion | UserError]:
        texts = [item.text for item in items]
        answers: dict[int, Completion | UserError] = {}
        waiting: deque[tuple[int, list[int], RowRequest]] = deque()
        for n, prompt in enumerate(texts):
            try:
                ids = self.begin(prompt)
            except UserError as error:
                answers[n] = error
            else:
                waiting.append((n, ids, self._row(ids, requests[n], places[n])))
        session = self._session()
        under_way: dict[Text, Completing] = {}
        while session or waiting:
            # Joining while others write was measured, and is no faster: a row costs the same among few and many.
            joining = [] if session else [waiting.popleft() for _ in range(min(len(waiting), self.rows_at_once))]
            added = session.add_all([row for _, _, row in joining])
            for (n, ids, _), text in zip(joining, added, strict=True):
                under_way[text] = Completing(n, texts[n], ids, requests[n], text, self.vocabulary)
            over = [under_way.pop(one.text) for one in self._step(session, under_way) if one.ended]
            answers |= {one.place: self._completion(one) for one in over}
            if over:
                report(len(answers), len(texts))
        return [answers[n] for n in range(len(texts))]

    def stream(self, prompt: str, request: Request, number: int = 0) -> Iterator[str]:
        """The completion of one prompt, piece by piece as it is written."""
        ids, session = self.begin(prompt), self._session()
        text = session.add(self._row(ids, request, number))
        one = Completing(number, prompt, ids, request, text, self.vocabulary)
        while session:
            self._step(session, {text: one})
            yield from filter(None, [one.news()])

    def begin(self, prompt: str) -> list[int]:
        """The ids of a prompt as the model reads it."""
        ids = self.vocabulary.encode([prompt.lower() if self.lowercase else prompt])[0] if prompt else []
        if self.marked:
            return [self.vocabulary.marks.begin, *ids]
        if not ids and self.vocabulary.characters is not None and "\n" not in self.vocabulary.characters:
            raise UserError("this model knows neither documents nor lines: give it something to go on from")
        # A model without marks has to read something before it can write: the end of a line before this one.
        return ids or self.vocabulary.encode(["\n"])[0]

    def slides(self, prompt: str, request: Request) -> str | None:
        """What to tell somebody whose prompt does not fit, or will not with what is to be written."""
        length, most = len(self.begin(prompt)), request.max_tokens or self.default_tokens
        if length > self.context:
            return f"the prompt has {length:,} tokens; the model reads the last {max(1, self.context // 2):,} of them"
        if length + most > self.context:
            return (
                f"{length:,} + {most:,} tokens are more than the model's context of {self.context:,}; "
                f"past it, it remembers the last {max(1, self.context // 2):,} and goes on"
            )
        return None

    def _session(self) -> Session[Any]:
        return Session(self.model.decoder, self.vocabulary.marks, context=self.context)

    def _row(self, ids: list[int], request: Request, number: int) -> RowRequest:
        """What is asked of the decoder."""
        most = self.default_tokens if request.max_tokens is None else request.max_tokens
        if most < 1:
            raise WrongUse(f"at least 1 token must be written, not {most}")
        if "" in request.stop:
            raise WrongUse("a stop string must not be empty: it would end every text before it begins")
        return RowRequest(ids, most, _strategy(request, number))

    def _step(self, session: Session[Any], under_way: dict[Text, Completing]) -> list[Completing]:
        """Those that have something new after a step; a stop string ends them here."""
        news = [under_way[text] for text in session.step()]
        for one in news:
            if one.finds_stop():
                session.drop(one.text)
        return news

    def _completion(self, one: Completing) -> Completion:
        whole = one.whole()
        return Completion(one.prompt, whole, one.text.logprob, one.ended, one.ids, one.text.tokens, pipeline=self)

    def surprises(self, text: str) -> tuple[list[str], list[float | None]]:
        """Every piece of a text and the natural log of its probability given what stands before it; None where nothing
        does.

        Longer than the context, the text is read in windows that overlap by half, so that each piece has a past.
        """
        if not text:
            return [], []
        ids = self.begin(text)
        pieces = self._cut_up(ids[1:] if self.marked else ids)
        # Without a mark nothing stands before the first token: it cannot be predicted.
        logprobs: list[float | None] = [] if self.marked else [None]
        for start, first in window_starts(len(ids) - 1, self.context, max(1, self.context // 2)):
            window = np.array(ids[start : start + self.context + 1])
            logits_TV = self.model.logits(window[None, :-1])[0]
            places = np.arange(first - start, len(window) - 1)
            found = logits_TV[places, window[places + 1]] - log_sum_exp(logits_TV[places])[:, 0]
            logprobs += found.tolist()
        return pieces, logprobs

    def forced(self, answer: Completion, inputs: Sequence[str] | None = None) -> Forced:
        """What was written, as far as it and its prompt fit into the context."""
        prompts = [answer.prompt_ids] if inputs is None else [self.begin(text) for text in inputs]
        ends = answer.ended == "end"
        ids = [*answer.ids, self.vocabulary.marks.end] if ends else answer.ids
        if (longest := max(map(len, prompts)) + len(answer.ids)) > self.context:
            raise UserError(f"{longest:,} tokens; what is explained must fit into the context of {self.context:,}")
        if not ids:
            raise UserError("nothing was written after this prompt")
        pieces = Pieces.of(self.vocabulary, answer.ids, end=ends)

        def find(part: slice) -> Forced:
            read = [[*prompt, *answer.ids] for prompt in prompts[part]]
            logits_ITV, _ = write_each(self.model.decoder, None, read)
            # What follows the last token of the prompt is the first that was written.
            places = np.array([len(prompt) for prompt in prompts[part]])[:, None] - 1 + np.arange(len(ids))
            after_ITV = np.take_along_axis(logits_ITV, places[..., None], axis=1)
            return Forced(pieces, chosen_logprobs(after_ITV, ids))

        return in_batches(len(prompts), find)

    def _cut_up(self, ids: list[int]) -> list[str]:
        """Each id's part of the text; a character made of several stands at the last of them."""
        pieces: list[str] = []
        waiting: list[int] = []
        for place, i in enumerate(ids):
            waiting.append(i)
            piece = self.vocabulary.decode(waiting, continues=len(waiting) <= place)
            whole = not piece.endswith(UNFINISHED) or place == len(ids) - 1
            pieces.append(piece if whole else "")
            waiting = [] if whole else waiting
        return pieces

    def look(self, answer: Completion) -> Looks:
        """Every look of a completion, heard in one pass over it and its prompt, as far back as the context goes."""
        ids = [*answer.prompt_ids, *answer.ids][-self.context :]
        heard = self.model.look(np.array([ids]))
        read = Pieces.of(self.vocabulary, ids)
        # The look from position t decides the token that comes next, so rows are labelled with that token.
        written = Pieces.of(self.vocabulary, ids[1:], end=True)
        return Looks.of(heard, {TARGET: read}, written=written, layer=max(1, (len(heard) + 1) // 2))


def _strategy(request: Request, number: int) -> Strategy:
    """How the text at this place of the whole input is written."""
    search = request.beam is not None or request.alpha is not None
    temperature = (
        (None if search else Completer.default_temperature) if request.temperature is None else request.temperature
    )
    drawing = Drawing(
        # 0 is the limit of lower and lower temperatures: the likeliest token.
        temperature=temperature or None,
        top_k=request.top_k,
        top_p=request.top_p,
        repetition=1.0 if request.repetition is None else request.repetition,
        seed=request.seed or 0,
    )
    if drawing.temperature is not None or drawing.repetition != 1:
        return Sample(drawing, number)
    table = {"beam": request.beam or 1, "alpha": request.alpha or 0.0}
    return SearchConfig.read(table, where="complete").strategy(number)

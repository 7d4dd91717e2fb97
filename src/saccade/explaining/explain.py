"""`saccade.explain`: which parts of an input an output comes from, by one of several methods."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from saccade.axes import Axis, Grid, Pieces, Time
from saccade.errors import UserError, WrongUse, did_you_mean
from saccade.explaining.attending import attended, on_pixels, on_words
from saccade.explaining.boxes import BlackBox, subject_of
from saccade.explaining.covers import Cover, PictureCover, SoundCover, TextCover
from saccade.explaining.curves import Curves, curves
from saccade.explaining.gradient import gradient_values
from saccade.explaining.rise import AT_ONCE, Estimate, rise, scored
from saccade.explaining.rows import rows_of
from saccade.pipelines.answer import Values
from saccade.pipelines.completer import Completion
from saccade.pipelines.filler import GAP
from saccade.pipelines.pipeline import Request
from saccade.pipelines.transcriber import Transcript
from saccade.runtime.contract import Floats

if TYPE_CHECKING:
    from PIL.Image import Image

Method = Literal["rise", "occlusion", "attention", "rollout", "gradient", "random"]
METHODS: tuple[Method, ...] = get_args(Method)
OF_BOXES: tuple[Method, ...] = ("rise", "occlusion", "random")
"""Those that need nothing but the box's answers."""
MASKS = {"picture": 4000, "other": 1000}
"""Random masks, by what is covered; pictures: as in the paper."""
Watch = Callable[[Estimate], bool]
"""Told after every batch of masks; True stops."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """How much each place of an input matters for an output: words, pixels, moments of a sound."""

    method: Method
    source: str
    """The input in one line."""
    text: str
    """What is explained."""
    axis: Axis
    """Where the places are."""
    values_P: Floats
    """Of RISE and occlusion: what showing the place adds to the score."""
    errors_P: Floats | None
    """The standard error of each, where values are estimates."""
    score: float
    """The whole input's: of a loaded model the geometric mean of the probabilities of what is explained."""
    masks: int
    """How many random masks were asked; 0 for other methods."""
    subject: BlackBox = field(repr=False)

    @property
    def labels(self) -> list[str]:
        """The name of each place."""
        if isinstance(self.axis, Pieces):
            return list(self.axis.labels)
        return [self.axis.name([place]) for place in range(len(self.axis))]

    def top(self, count: int = 5) -> list[tuple[str, float]]:
        """The most important places, each with its value."""
        order = np.argsort(-self.values_P, kind="stable")[:count].tolist()
        labels = self.labels
        return [(labels[place], float(self.values_P[place])) for place in order]

    def curves(self) -> Curves:
        """How the score falls as the most important places are covered first, and rises as they are shown first."""
        return curves(self.subject.box, self.subject.cover, self.values_P)

    def record(self) -> Values:
        """As plain values. A picture's are rows of pixels."""
        shape = (self.axis.height, self.axis.width) if isinstance(self.axis, Grid) else (len(self.axis),)
        record: Values = {"source": self.source, "explained": self.text, "method": self.method}
        record |= {"score": round(self.score, 6), "masks": self.masks}
        if not isinstance(self.axis, Grid):
            record["places"] = self.labels
        record["values"] = np.round(self.values_P.astype(float), 6).reshape(shape).tolist()
        if self.errors_P is not None:
            record["errors"] = np.round(self.errors_P.astype(float), 6).reshape(shape).tolist()
        return record

    def picture(self, path: str | Path, *, image: "Image | None" = None) -> Path:
        """Draw it into a PNG or SVG file: a text coloured, a picture lit, a sound below its curve."""
        from saccade.explaining.drawing import draw_explanation

        return draw_explanation(self, Path(path), image)


def explain(
    model: Any,
    input: Any,
    *,
    method: Method = "rise",
    seed: int = 0,
    masks: int | None = None,
    word: int | None = None,
    question: bool = False,
    request: Request | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Explanation:
    """Which parts of an input an output comes from.

    `model` is a loaded model, or any function of a text, a picture or a sound (an array, or a PIL image) that gives a
    number; of several numbers the highest is explained, or `output`, by its place or name. The same seed gives the same
    explanation.

        method      rise (random masks; for anything), occlusion (one place after the other), attention, rollout,
                    gradient (needs the extra `train`), or random, which knows nothing and is what others must beat
        masks       of RISE: 4,000 for pictures, else 1,000
        word        explain one word of the answer, counted from 1
        question    cover the words of the question, not the picture
        request     how a loaded model is asked, where that should differ from its settings
        watch       is given the running estimate after every 64 masks, and stops it where it returns True
        output, batched, rate, fill, blank: of functions; see docs/explain.md

    >>> saccade.explain(lambda text: "cat" in text, "the cat sat on the mat").top(1)[0][0]
    'cat'
    """
    if method not in METHODS:
        raise WrongUse(f"no method {method!r}{did_you_mean(str(method), METHODS)}; there are {', '.join(METHODS)}")
    subject = subject_of(model, input, word=word, question=question, request=request, **options)
    return explained(subject, method, seed, masks, watch)


def explained(
    subject: BlackBox, method: Method = "rise", seed: int = 0, masks: int | None = None, watch: Watch | None = None
) -> Explanation:
    """The same, of what is chosen already."""
    if method not in OF_BOXES and subject.pipeline is None:
        raise WrongUse(f"{method} looks inside a model: a function is explained by {', '.join(OF_BOXES)}")
    cover, errors, asked = subject.cover, None, 0
    whole = float(scored(subject.box, [cover.under(np.ones(cover.places, dtype=np.float32))])[0])
    if method == "rise":
        estimate = _rise(subject, seed, masks, watch)
        values, errors, asked = estimate.values_P, estimate.errors_P, estimate.count
    elif method == "occlusion":
        values = _occlusion(subject, whole)
    elif method == "random":
        values = np.random.default_rng([seed, cover.places]).random(cover.places)
    elif method == "gradient":
        values = _gradient(subject)
    else:
        values = _attention(subject, rolled=method == "rollout")
    return Explanation(method, subject.source, subject.text, cover.axis, values, errors, whole, asked, subject)


def _rise(subject: BlackBox, seed: int, masks: int | None, watch: Watch | None) -> Estimate:
    count = MASKS["picture" if isinstance(subject.cover, PictureCover) else "other"] if masks is None else masks
    estimate = Estimate(subject.cover.places)
    for estimate in rise(subject.box, subject.cover, masks=count, seed=seed):
        if watch is not None and watch(estimate):
            break
    return estimate


def _occlusion(subject: BlackBox, whole: float) -> Floats:
    """What the score loses under windows that cover a place, on average."""
    masks_NP = subject.cover.windows()
    lost_N = np.concatenate(
        [
            whole - scored(subject.box, [subject.cover.under(mask) for mask in masks_NP[first : first + AT_ONCE]])
            for first in range(0, len(masks_NP), AT_ONCE)
        ]
    )
    covered_NP = 1 - masks_NP
    values: Floats = (lost_N @ covered_NP) / np.maximum(covered_NP.sum(axis=0), 1e-12)
    return values


def _attention(subject: BlackBox, *, rolled: bool) -> Floats:
    assert subject.pipeline is not None
    assert subject.answer is not None
    looks = subject.answer.looks.part(0)
    weights_S, axis = attended(looks, subject.memory, rows_of(subject.answer, subject.pieces), rolled=rolled)
    if isinstance(subject.answer, Completion):  # what was written is looked at too, but is no part of the input
        count = len(subject.answer.prompt_ids)
        weights_S, axis = weights_S[:count], Pieces.letters(axis.name([place]) for place in range(count))
    return on_places(weights_S, axis, subject.cover, subject.source, first=_begins(subject))


def _begins(subject: BlackBox) -> float:
    """The second that the first position of a model stands at."""
    return subject.answer.stretches[0].start if isinstance(subject.answer, Transcript) else 0.0


def on_places(weights_S: Floats, axis: Axis, cover: Cover, source: str, *, first: float = 0.0) -> Floats:
    """Weights of a model's positions as those of the places of a cover; `first`: the second of the first position."""
    if isinstance(cover, TextCover):
        if not isinstance(axis, Pieces):
            raise UserError(f"{source}: its positions are not pieces of the text")
        # A gap is one position, which is no word.
        text = cover.text.replace(GAP, "\ufffc" * len(GAP)) if GAP in axis.labels else cover.text
        return on_words(weights_S, axis, text, cover.spans)
    if isinstance(cover, PictureCover) and isinstance(axis, Grid):
        return on_pixels(weights_S, axis, *cover.pixels.shape[:2])
    if not isinstance(cover, SoundCover) or not isinstance(axis, Time):
        raise UserError(f"{source}: the positions of this model are not places of its input")
    seconds_P = (np.arange(cover.places) + 0.5) * cover.axis.seconds - first
    middles_S = (np.arange(len(weights_S)) + 0.5) * axis.seconds
    found: Floats = np.interp(seconds_P, middles_S, weights_S, left=0.0, right=0.0)
    return found


def _gradient(subject: BlackBox) -> Floats:
    if find_spec("torch") is None:
        raise UserError("gradients need PyTorch: pip install 'saccade[train]'; --method rise does without")
    values, axis = gradient_values(subject)
    if isinstance(subject.cover, PictureCover) and axis is None:
        # As if every pixel went from what covers it to what it is.
        cover = subject.cover
        moved_PC = (cover.flat_PC - cover.fill_C) / np.float32(255)
        pixels: Floats = (values.reshape(cover.places, -1) * moved_PC).sum(axis=1)
        return pixels
    assert axis is not None
    return on_places(values, axis, subject.cover, subject.source, first=_begins(subject))

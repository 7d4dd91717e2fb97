"""What writes while it looks at a picture: one that tells what it shows, or one that answers a question about it."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import numpy as np
from pydantic import Field

from saccade.arch.front_end import PictureFrontEnd
from saccade.axes import Axis, Pieces
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.row import RowRequest
from saccade.decode.search import SearchConfig, search
from saccade.folder import TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced, forced_text, in_batches
from saccade.pipelines.opening import SequenceModel
from saccade.pipelines.picture_input import FeaturesName, PictureInput
from saccade.pipelines.pipeline import Pipeline, Report, Request, once_each, unreported
from saccade.pipelines.searching import asked_search
from saccade.runtime.contract import ArraySources, Booleans, Source
from saccade.runtime.open import Choice
from saccade.sites import TARGET
from saccade.sources.source import Item
from saccade.tokens.vocabulary import Vocabulary

AT_ONCE = 32
"""Pictures that are read side by side."""


class PictureWriterSettings(TaskSettings):
    """What a model folder says about writing."""

    search: SearchConfig = SearchConfig()
    """How the text is searched for where nothing else is asked."""
    layer: Annotated[int, Field(ge=1)] = 1
    """The cross-attention layer that is drawn by default."""
    blind: bool = False
    """The model is shown no picture."""
    features: FeaturesName = "none"
    """The network whose last grid is read instead of pixels."""
    sure: float = 0.0
    """Answers with a lower confidence are not sure: so it was measured on the validation part. 0: not measured."""


@dataclass(frozen=True)
class Written:
    """What was written about a picture."""

    text: str
    ids: list[int] = field(repr=False)
    """The text as tokens."""
    confidence: float
    """Between 0 and 1; what it is of is said by the pipeline."""
    finished: bool = True
    """False where the limit cut it off."""


@dataclass(frozen=True)
class PictureAnswer(Answer):
    """What was said about a picture; the score is its confidence."""

    ids: list[int] = field(repr=False)
    """The text as tokens."""
    sure: bool
    """Whether its confidence is one with which validation answers were mostly right."""

    @property
    def warnings(self) -> list[str]:
        return [] if self.sure else [f"not sure (confidence {self.score:.2f})"]

    def record(self) -> Values:
        record: Values = {"source": self.source, "text": self.text, "confidence": round(self.score, 4)}
        record["sure"] = self.sure
        if self.others:
            record["best"] = [{"text": one.text, "confidence": round(one.score, 4)} for one in self.best]
        return record


Said = TypeVar("Said", bound=PictureAnswer)


class PictureWriter(Pipeline[Item, Said], Generic[Item, Said]):
    """Writes token by token while it looks at one or several memories."""

    options = frozenset({"beam", "alpha", "best", "temperature", "seed"})
    at_once: ClassVar[int] = AT_ONCE
    memory: ClassVar[str]
    """The name of the memory that a picture makes."""

    def __init__(self, model: SequenceModel, vocabulary: Vocabulary, settings: PictureWriterSettings) -> None:
        self.model, self.vocabulary, self.settings = model, vocabulary, settings
        front = model.config.readers[self.memory].front_end
        assert isinstance(front, PictureFrontEnd)
        self.input = PictureInput(front, settings.blind, settings.features)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    @abstractmethod
    def read(self, items: Sequence[Item]) -> tuple[np.ndarray, list[str]]:
        """The pictures of items as the model reads them, and the questions about them, none in captioning."""

    @abstractmethod
    def sources(
        self, pictures_BHWC: np.ndarray, questions: Sequence[str]
    ) -> tuple[Source | ArraySources, Booleans | None]:
        """What the encoders are given."""

    @abstractmethod
    def axes(self, question: str) -> dict[str, Axis]:
        """What is looked at, by the names of memories."""

    @abstractmethod
    def answered(self, item: Item, written: Written, *, sure: bool) -> Said:
        """The answer to one item."""

    @abstractmethod
    def confidence(self, hypothesis: Hypothesis) -> float:
        """How sure it is of a text."""

    def answer_items(
        self, items: Sequence[Item], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Said]:
        pictures, questions = self.read(items)
        found = self.write(pictures, questions, requests, places, report)
        answers = []
        for item, best in zip(items, found, strict=True):
            first, *others = (self.answered(item, one, sure=one.confidence >= self.settings.sure) for one in best)
            first.others.extend(others)
            answers.append(first)
        return answers

    def write(
        self,
        pictures_NHWC: np.ndarray,
        questions: Sequence[str],
        requests: Sequence[Request] = (),
        places: Sequence[int] = (),
        report: Report = unreported,
    ) -> list[list[Written]]:
        """What is written about each picture, best first."""
        count, marks = len(pictures_NHWC), self.vocabulary.marks
        requests, places = requests or [Request()] * count, places or range(count)
        configs = once_each(lambda one: asked_search(self.settings.search, one, "search"), requests)
        found: list[list[Written]] = []
        for first in range(0, count, AT_ONCE):
            chosen = range(first, min(first + AT_ONCE, count))
            memory = self.model.read(*self.sources(pictures_NHWC[first : chosen.stop], questions[first : chosen.stop]))
            rows = [RowRequest([marks.start], configs[n].limit(0), configs[n].strategy(places[n])) for n in chosen]
            for n, best in zip(chosen, search(self.model.decoder, rows, memory, marks=marks), strict=True):
                found.append([self._written(one) for one in best[: requests[n].best]])
            report(chosen.stop, count)
        return found

    def _written(self, one: Hypothesis) -> Written:
        return Written(self.vocabulary.decode(one.tokens), one.tokens, self.confidence(one), one.finished)

    def forced(self, answer: Said, inputs: Sequence[Any] | None = None) -> Forced:
        items = [self.item_of(answer)] if inputs is None else [self.source.read(one) for one in inputs]
        hypothesis = Hypothesis(answer.ids, 0.0, 0.0, finished=True)

        def find(part: slice) -> Forced:
            memory = self.model.read(*self.sources(*self.read(items[part])))
            return forced_text(self.model.decoder, memory, len(items[part]), hypothesis, self.vocabulary)

        return in_batches(len(items), find)

    @abstractmethod
    def item_of(self, answer: Said) -> Item:
        """What was read."""

    def look_at(self, picture_HWC: np.ndarray, question: str, ids: Sequence[int]) -> Looks:
        """Where each word of a text looked."""
        written = [self.vocabulary.marks.start, *ids]
        source, _ = self.sources(picture_HWC[None], [question] if question else [])
        heard = self.model.look(source, np.array([written]))
        axes = self.axes(question) | {TARGET: Pieces.of(self.vocabulary, written)}
        # The look from position t decides the token that comes next, so rows are labelled with that token.
        rows = Pieces.of(self.vocabulary, ids, end=True)
        return Looks.of(heard, axes, written=rows, layer=self.settings.layer)


def mean_confidence(hypothesis: Hypothesis) -> float:
    """The geometric mean of the probabilities of what was written, the end included."""
    return math.exp(hypothesis.logprob / (len(hypothesis.tokens) + 1))


def whole_confidence(hypothesis: Hypothesis) -> float:
    """The probability of all of it."""
    return math.exp(hypothesis.logprob)

"""A trained classifier: a text in, or two with a tab between them, its class or number out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np

from saccade.arch.heads import ClassHead
from saccade.axes import Pieces
from saccade.data.ragged import in_order
from saccade.decode.filters import softmax
from saccade.errors import UserError
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced
from saccade.pipelines.mixture import Probabilities
from saccade.pipelines.opening import TextModel, encoder_vocabulary, open_encoder
from saccade.pipelines.pipeline import Pipeline, Report, Request, unreported
from saccade.pipelines.table import TASKS
from saccade.runtime.contract import Floats, How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE
from saccade.sources.pair import PairItem, PairSource
from saccade.tokens.vocabulary import Vocabulary

BATCH_TOKENS = 4096


class ClassifierSettings(TaskSettings):
    """What a model folder says about its classes, or its numbers."""

    classes: list[str]
    """Their names; none where the model gives numbers."""
    middle: float
    """Of the numbers it was trained on, the mean."""
    spread: float
    """And how far they lie from it."""
    pooling: Literal["dense", "first", "mean"] = "dense"
    """What stands for a whole text."""


@dataclass(frozen=True)
class Class(Answer):
    """What a text was taken for: the class and its probability, or a number."""

    is_number: bool = False
    """The model gives numbers, and the score is the number."""

    def record(self) -> Values:
        if self.is_number:
            return {"source": self.source, "number": round(self.score, 6)}
        record: Values = {"source": self.source, "class": self.text, "probability": round(self.score, 6)}
        if self.others:
            record["best"] = [{"class": one.text, "probability": round(one.score, 6)} for one in self.best]
        return record


class Classifier(Pipeline[PairItem, Class]):
    """Says of what class a text is; a model that was trained on numbers says which number it has.

    None is bundled: `saccade.train("classification", "reviews.tsv", out="my-model")` makes one.
    """

    def __init__(
        self,
        model: TextModel,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        *,
        middle: float = 0.0,
        spread: float = 1.0,
        mixture: Probabilities = Probabilities(),  # noqa: B008
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.classes = list(classes)
        self.middle, self.spread = middle, spread
        self.mixture = mixture

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Classifier":
        """The model of a folder."""
        settings, vocabulary = folder.settings(ClassifierSettings), encoder_vocabulary(folder)
        head = ClassHead(outputs=max(1, len(settings.classes)), pooling=settings.pooling)
        model = open_encoder(folder, vocabulary, head, how)
        mixture = Probabilities.open(folder, len(settings.classes)) if settings.classes else Probabilities()
        return cls(model, vocabulary, settings.classes, middle=settings.middle, spread=settings.spread, mixture=mixture)

    @cached_property
    def source(self) -> PairSource:
        source = cast(PairSource, TASKS["classification"].source)
        return replace(source, vocabulary=self.vocabulary, context=self.model.context)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[PairItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Class]:
        outputs = self._outputs(items, report)
        return [
            self._class(self.source.label(item), row, one.best)
            for item, row, one in zip(items, outputs, requests, strict=True)
        ]

    def outputs(self, texts: Sequence[str], seconds: Sequence[str] | None, report: Report = unreported) -> Floats:
        """Of each, in order: the logits of its classes as they are mixed, [N, classes], or its number, [N, 1]."""
        raws = [(text,) for text in texts] if seconds is None else list(zip(texts, seconds, strict=True))
        return self._outputs([_known(item) for item in self.source.read_all(raws)], report)

    def _outputs(self, items: Sequence[PairItem], report: Report) -> Floats:
        found = np.zeros((len(items), max(1, len(self.classes))), dtype=np.float32)
        sizes, done = np.array([self.source.size(item) for item in items], dtype=np.int64), 0
        # Pairs by themselves: a text alone has no segments.
        for pairs in (False, True):
            chosen = np.array([n for n, item in enumerate(items) if (item.second is not None) == pairs], dtype=np.int64)
            for part in in_order(sizes[chosen], BATCH_TOKENS):
                indices = chosen[part]
                batch = self.source.collate([items[n] for n in indices])
                found[indices] = self.model.outputs(batch.values, batch.mask, batch.segments)
                done += len(indices)
                report(done, len(items))
            found[chosen] = self._mixed(found[chosen], [items[n] for n in chosen], pairs)
        return found

    def _mixed(self, logits_NC: Floats, items: Sequence[PairItem], pairs: bool) -> Floats:
        if not self.classes:
            return logits_NC
        seconds = [item.second or "" for item in items] if pairs else None
        return self.mixture.logits(logits_NC, [item.first for item in items], seconds)

    def numbers(self, outputs_N1: Floats) -> Floats:
        """The numbers that are meant, where there are no classes."""
        meant: Floats = outputs_N1[:, 0] * self.spread + self.middle
        return meant

    def _class(self, source: str, output: Floats, best: int) -> Class:
        if not self.classes:
            number = float(self.numbers(output[None])[0])
            return Class(source, f"{number:.4g}", number, is_number=True, pipeline=self)
        chances = softmax(output[None])[0]
        top = np.argsort(-chances, kind="stable")[:best].tolist()
        first, *others = (Class(source, self.classes[place], float(chances[place]), pipeline=self) for place in top)
        first.others.extend(others)
        return first

    def forced(self, answer: Class, inputs: Sequence[Any] | None = None) -> Forced:
        if not self.classes:
            raise UserError("this model gives numbers: there is no class whose probability could change")
        items = [_known(item) for item in self.source.read_all([answer.source] if inputs is None else inputs)]
        chances_NC = softmax(self._outputs(items, unreported))
        chosen_N = chances_NC[:, self.classes.index(answer.text)]
        return Forced(Pieces.letters([answer.text]), np.log(np.maximum(chosen_N, 1e-30))[:, None])

    def look(self, answer: Class) -> Looks:
        """Where each token looked."""
        item = self.source.read(answer.source)
        batch = self.source.collate([item])
        return Looks.of(self.model.look(batch.values, batch.segments), {SOURCE: self.source.labels(item)})


def _known(item: PairItem | UserError) -> PairItem:
    if isinstance(item, UserError):
        raise item
    return item

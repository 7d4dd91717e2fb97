"""A trained classifier: a text in, or two with a tab between them, its class or number out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade.data.labelled import Texts
from saccade.data.ragged import in_order
from saccade.errors import UserError
from saccade.look.record import TextLooks
from saccade.models.heads import Classifier as ClassifierModel
from saccade.nn.watch import watch
from saccade.tasks.asked import Asked, Report, Request, unreported
from saccade.tokens.vocabulary import Vocabulary

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class Class:
    """What a text was taken for."""

    source: str
    text: str
    """The class, or the number."""
    score: float
    """Its probability; a number itself."""
    classifier: "Classifier" = field(repr=False)
    others: list["Class"] = field(default_factory=list, repr=False)

    @property
    def best(self) -> list["Class"]:
        return [self, *self.others]

    @cached_property
    def looks(self) -> TextLooks:
        return self.classifier.look(self.source)

    def record(self) -> dict[str, Any]:
        if not self.classifier.classes:
            return {"source": self.source, "number": round(self.score, 6)}
        record: dict[str, Any] = {"source": self.source, "class": self.text, "probability": round(self.score, 6)}
        if self.others:
            record["best"] = [{"class": one.text, "probability": round(one.score, 6)} for one in self.best]
        return record


class Classifier(Asked[Class]):
    """Says of what class a text is; without classes, which number it has."""

    model: ClassifierModel

    def __init__(
        self, model: ClassifierModel, vocabulary: Vocabulary, classes: Sequence[str], *, middle: float, spread: float
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.classes = list(classes)
        self.middle, self.spread = middle, spread

    def answer(
        self,
        texts: Sequence[str],
        request: Request,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[Class | UserError]:
        sides = [text.split("\t") for text in texts]
        odd = {
            n: UserError(f"{len(side)} columns; a text, or two with a tab between")
            for n, side in enumerate(sides)
            if len(side) > 2
        }
        answers: dict[int, Class | UserError] = dict(odd)
        for pairs in (False, True):
            chosen = [n for n, side in enumerate(sides) if n not in odd and (len(side) == 2) == pairs]
            if not chosen:
                continue
            seconds = [sides[n][1] for n in chosen] if pairs else None
            outputs = self.outputs([sides[n][0] for n in chosen], seconds, report)
            answers |= {n: self._class(texts[n], row, request.best) for n, row in zip(chosen, outputs, strict=True)}
        return [answers[n] for n in range(len(texts))]

    def outputs(self, texts: Sequence[str], seconds: Sequence[str] | None, report: Report = unreported) -> Tensor:
        """What the output layer says of each, in order: [N, classes], or [N, 1] for numbers."""
        encoded = Texts.of(self.vocabulary, texts, seconds, self.model.encoder.context)
        found = torch.zeros(len(encoded), self.model.head.out_features)
        labels, done = np.zeros(len(encoded)), 0
        training = self.model.training
        self.model.eval()
        with torch.inference_mode():
            for indices in in_order(encoded.rows.lengths, BATCH_TOKENS):
                batch = encoded.batch(indices, labels)
                found[torch.from_numpy(indices)] = self.model(batch.tokens_BT, batch.mask_BT, batch.segments_BT)
                done += len(indices)
                report(done, len(encoded))
        self.model.train(training)
        return found

    def numbers(self, outputs_N1: Tensor) -> Tensor:
        """The numbers that are meant, where there are no classes."""
        return outputs_N1[:, 0] * self.spread + self.middle

    def _class(self, source: str, output: Tensor, best: int) -> Class:
        if not self.classes:
            number = float(self.numbers(output[None])[0])
            return Class(source, f"{number:.4g}", number, self)
        chances = output.softmax(dim=0)
        top = chances.topk(min(best, len(self.classes)))
        first, *others = (
            Class(source, self.classes[place], chance, self)
            for chance, place in zip(top.values.tolist(), top.indices.tolist(), strict=True)
        )
        first.others.extend(others)
        return first

    def look(self, source: str) -> TextLooks:
        """Where each token looked."""
        first, *second = source.split("\t")
        encoded = Texts.of(self.vocabulary, [first], second or None, self.model.encoder.context)
        batch = encoded.batch(np.array([0]), np.zeros(1))
        with torch.inference_mode(), watch(self.model) as looks:
            self.model(batch.tokens_BT, batch.mask_BT, batch.segments_BT)
        pieces = self.vocabulary.pieces(batch.tokens_BT[0].tolist())
        return TextLooks.at_itself(pieces, looks.encoder[:, 0].numpy())

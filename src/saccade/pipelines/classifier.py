"""A trained classifier: a text in, or two with a tab between them, its class or number out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from saccade.arch.heads import ClassHead
from saccade.axes import Pieces
from saccade.data.encoded import Texts
from saccade.data.ragged import in_order
from saccade.decode.filters import softmax
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.look.record import Looks
from saccade.pipelines.opening import TextModel, encoder_vocabulary, open_encoder
from saccade.pipelines.pipeline import Pipeline, Report, Requests, Values, request_of_each, unreported
from saccade.runtime.contract import Floats, How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE
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
    def looks(self) -> Looks:
        return self.classifier.look(self.source)

    def record(self) -> Values:
        if not self.classifier.classes:
            return {"source": self.source, "number": round(self.score, 6)}
        record: Values = {"source": self.source, "class": self.text, "probability": round(self.score, 6)}
        if self.others:
            record["best"] = [{"class": one.text, "probability": round(one.score, 6)} for one in self.best]
        return record


class Classifier(Pipeline[Class]):
    """Says of what class a text is; without classes, which number it has."""

    def __init__(
        self, model: TextModel, vocabulary: Vocabulary, classes: Sequence[str], *, middle: float, spread: float
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.classes = list(classes)
        self.middle, self.spread = middle, spread

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Classifier":
        """The model of a folder."""
        where = folder.path / "config.json"
        classes, middle, spread = (folder.config.get(name) for name in ("classes", "middle", "spread"))
        if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
            raise UserError(f"{where}: classes is not a list of names")
        if not isinstance(middle, int | float) or not isinstance(spread, int | float):
            raise UserError(f"{where}: middle and spread are not numbers")
        vocabulary = encoder_vocabulary(folder)
        model = open_encoder(folder, vocabulary, ClassHead(outputs=max(1, len(classes))), how)
        return cls(model, vocabulary, classes, middle=middle, spread=spread)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer(
        self,
        texts: Sequence[str],
        request: Requests,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[Class | UserError]:
        best = [one.best for one in request_of_each(request, len(texts))]
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
            answers |= {n: self._class(texts[n], row, best[n]) for n, row in zip(chosen, outputs, strict=True)}
        return [answers[n] for n in range(len(texts))]

    def outputs(self, texts: Sequence[str], seconds: Sequence[str] | None, report: Report = unreported) -> Floats:
        """What the output layer says of each, in order: [N, classes], or [N, 1] for numbers."""
        encoded = Texts.of(self.vocabulary, texts, seconds, self.model.context)
        found = np.zeros((len(encoded), max(1, len(self.classes))), dtype=np.float32)
        done = 0
        for indices in in_order(encoded.rows.lengths, BATCH_TOKENS):
            batch = encoded.arrays(indices)
            found[indices] = self.model.outputs(batch.tokens_BT, batch.mask_BT, batch.segments_BT)
            done += len(indices)
            report(done, len(encoded))
        return found

    def numbers(self, outputs_N1: Floats) -> Floats:
        """The numbers that are meant, where there are no classes."""
        meant: Floats = outputs_N1[:, 0] * self.spread + self.middle
        return meant

    def _class(self, source: str, output: Floats, best: int) -> Class:
        if not self.classes:
            number = float(self.numbers(output[None])[0])
            return Class(source, f"{number:.4g}", number, self)
        chances = softmax(output[None])[0]
        top = np.argsort(-chances, kind="stable")[:best].tolist()
        first, *others = (Class(source, self.classes[place], float(chances[place]), self) for place in top)
        first.others.extend(others)
        return first

    def look(self, source: str) -> Looks:
        """Where each token looked."""
        first, *second = source.split("\t")
        batch = Texts.of(self.vocabulary, [first], second or None, self.model.context).arrays(np.array([0]))
        heard = self.model.look(batch.tokens_BT, batch.segments_BT)
        return Looks.of(heard, {SOURCE: Pieces.of(self.vocabulary, batch.tokens_BT[0].tolist())})

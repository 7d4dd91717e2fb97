"""The pipeline of the first toy: a picture in, the word for what is drawn in it out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from saccade.axes import Pieces
from saccade.decode.row import RowRequest
from saccade.decode.search import search
from saccade.folder import ModelFolder
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer
from saccade.pipelines.opening import SequenceModel, open_sequence
from saccade.pipelines.pipeline import Pipeline, Report, Request
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE, TARGET
from saccade.sources.picture import PictureItem, PictureSource
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST = 12


@dataclass(frozen=True)
class Named(Answer):
    """A picture and its word."""

    item: PictureItem = field(repr=False, compare=False)
    ids: list[int] = field(repr=False)

    @property
    def image(self) -> "Image":
        return self.item.image


class Namer(Pipeline[PictureItem, Named]):
    """`namer("drawing.png")`"""

    options = frozenset()

    def __init__(self, model: SequenceModel, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary = model, vocabulary

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Namer":
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", marks=folder.marks)
        return cls(open_sequence(folder, vocabulary, how), vocabulary)

    @property
    def source(self) -> PictureSource:
        front = self.model.config.readers[SOURCE].front_end
        return PictureSource(size_HW=(front.height, front.width), channels=1, cell=front.patch)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[PictureItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Named]:
        memory = self.model.read(self.source.collate(items).values)
        rows = [RowRequest([self.vocabulary.marks.start], LONGEST)] * len(items)
        found = [best[0] for best in search(self.model.decoder, rows, memory, marks=self.vocabulary.marks)]
        report(len(items), len(items))
        return [
            Named(item.name, self.vocabulary.decode(one.tokens), one.score, item, one.tokens, pipeline=self)
            for item, one in zip(items, found, strict=True)
        ]

    def look(self, answer: Named) -> Looks:
        """Where each letter of the word looked in the picture."""
        read = [self.vocabulary.marks.start, *answer.ids]
        heard = self.model.look(self.source.collate([answer.item]).values, np.array([read]))
        axes = {SOURCE: self.source.labels(answer.item), TARGET: Pieces.of(self.vocabulary, read)}
        return Looks.of(heard, axes, written=Pieces.of(self.vocabulary, answer.ids, end=True))

"""The pipeline of the second toy: a picture and a question in, a word out; the decoder looks at both."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
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
from saccade.runtime.contract import ArraySources, How
from saccade.runtime.open import Choice
from saccade.sites import TARGET
from saccade.sources.picture import PictureSource
from saccade.sources.picture_question import PictureQuestionItem, PictureQuestionSource
from saccade.sources.text import TextSource
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST = 12
MEMORIES = ("picture", "question")


@dataclass(frozen=True)
class Reply(Answer):
    """A word about a picture."""

    item: PictureQuestionItem = field(repr=False, compare=False)
    ids: list[int] = field(repr=False)

    @property
    def image(self) -> "Image":
        return self.item.picture.image


class Asker(Pipeline[PictureQuestionItem, Reply]):
    """`asker(("drawing.png", "what is it?"))`"""

    options = frozenset()

    def __init__(self, model: SequenceModel, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary = model, vocabulary

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Asker":
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", marks=folder.marks)
        return cls(open_sequence(folder, vocabulary, how), vocabulary)

    @cached_property
    def source(self) -> PictureQuestionSource:
        front = self.model.config.readers["picture"].front_end
        picture = PictureSource(size_HW=(front.height, front.width), channels=1, cell=front.patch)
        return PictureQuestionSource(picture, TextSource(longest=100, vocabulary=self.vocabulary))

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[PictureQuestionItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Reply]:
        rows = [RowRequest([self.vocabulary.marks.start], LONGEST)] * len(items)
        memory = self.model.read(self._sources(items))
        found = [best[0] for best in search(self.model.decoder, rows, memory, marks=self.vocabulary.marks)]
        report(len(items), len(items))
        return [
            Reply(
                self.source.label(item), self.vocabulary.decode(one.tokens), one.score, item, one.tokens, pipeline=self
            )
            for item, one in zip(items, found, strict=True)
        ]

    def look(self, answer: Reply) -> Looks:
        """Where each letter of the word looked, in the picture and in the question."""
        read = [self.vocabulary.marks.start, *answer.ids]
        heard = self.model.look(self._sources([answer.item]), np.array([read]))
        axes = dict(zip(MEMORIES, self.source.labels(answer.item), strict=True)) | {
            TARGET: Pieces.of(self.vocabulary, read)
        }
        return Looks.of(heard, axes, written=Pieces.of(self.vocabulary, answer.ids, end=True))

    def _sources(self, items: Sequence[PictureQuestionItem]) -> ArraySources:
        batches = self.source.collate(items)
        return {name: (batch.values, batch.mask) for name, batch in zip(MEMORIES, batches, strict=True)}

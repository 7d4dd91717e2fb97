"""A trained model that answers questions about pictures: two memories, that of the question and that of the picture
(ask, attend and answer)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from saccade.axes import Axis, Pieces
from saccade.decode.hypothesis import Hypothesis
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.look.record import Looks
from saccade.pipelines.opening import open_sequence
from saccade.pipelines.picture_writer import (
    PictureAnswer,
    PictureWriter,
    PictureWriterSettings,
    Written,
    whole_confidence,
)
from saccade.runtime.contract import ArraySources, How
from saccade.sources.picture_question import PictureQuestionItem, PictureQuestionSource
from saccade.sources.text import TextSource, pad_sources
from saccade.tokens.vocabulary import read_vocabulary

if TYPE_CHECKING:
    from PIL.Image import Image

QUESTION, PICTURE = "question", "picture"
"""The memories. The question is looked at first: what a look at the picture is for, it says."""
LONGEST = 500
"""Characters of a question."""


@dataclass(frozen=True)
class QuestionAnswer(PictureAnswer):
    """An answer to a question about a picture; the score is its probability."""

    item: PictureQuestionItem = field(repr=False, compare=False)
    """The picture and the question that were read."""

    @property
    def image(self) -> "Image":
        return self.item.picture.image


class Questioner(PictureWriter[PictureQuestionItem, QuestionAnswer]):
    """Answers questions about pictures: `answer(("photo.jpg", "what is on the table?")).text`.

    `saccade.train("questions", "questions.tsv", out="my-model")` makes one of a table of files, questions and answers.
    """

    memory = PICTURE

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Questioner":
        """The model of a folder."""
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", marks=folder.marks)
        model = open_sequence(folder, vocabulary, how)
        if set(model.config.readers) != {QUESTION, PICTURE}:
            raise UserError(f"{folder.where}: it reads {', '.join(model.config.readers)}, not question and picture")
        return cls(model, vocabulary, folder.settings(PictureWriterSettings))

    @cached_property
    def source(self) -> PictureQuestionSource:
        question = TextSource(longest=LONGEST, vocabulary=self.vocabulary)
        return PictureQuestionSource(picture=self.input.source, question=question)

    def read(self, items: Sequence[PictureQuestionItem]) -> tuple[np.ndarray, list[str]]:
        pictures = self.input.encoded(np.stack([item.picture.pixels_HWC for item in items]))
        return pictures, [item.question.text for item in items]

    def sources(self, pictures_BHWC: np.ndarray, questions: Sequence[str]) -> tuple[ArraySources, None]:
        ids = self.vocabulary.encode([plain_question(text) for text in questions])
        return {
            QUESTION: pad_sources(ids, self.vocabulary.marks),
            PICTURE: (self.input.values(pictures_BHWC), None),
        }, None

    def axes(self, question: str) -> dict[str, Axis]:
        (ids,) = self.vocabulary.encode([plain_question(question)])
        return {QUESTION: Pieces.of(self.vocabulary, ids, end=True), PICTURE: self.input.grid}

    def answered(self, item: PictureQuestionItem, written: Written, *, sure: bool) -> QuestionAnswer:
        name = self.source.label(item)
        return QuestionAnswer(name, written.text, written.confidence, written.ids, sure, item, pipeline=self)

    def item_of(self, answer: QuestionAnswer) -> PictureQuestionItem:
        return answer.item

    def confidence(self, hypothesis: Hypothesis) -> float:
        return whole_confidence(hypothesis)

    def look(self, answer: QuestionAnswer) -> Looks:
        """Which words of the question, and which parts of the picture, the answer looked at."""
        pictures, (question,) = self.read([answer.item])
        return self.look_at(pictures[0], question, answer.ids)


def plain_question(text: str) -> str:
    """A question as models read it: small letters, single spaces, one mark at its end or none."""
    plain = " ".join(text.casefold().split())
    return plain.rstrip("?. ") + "?" if plain.rstrip("?. ") else plain

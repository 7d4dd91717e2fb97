"""A picture and a question about it as one input: two things that are read, and two memories to look at."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from saccade.errors import WrongUse
from saccade.sources.picture import PictureItem, PictureSource
from saccade.sources.source import Collated, Source, shown
from saccade.sources.text import TextItem, TextSource

if TYPE_CHECKING:
    from saccade.axes import Grid, Pieces


@dataclass(frozen=True)
class PictureQuestionItem:
    """A picture and a question that were read."""

    picture: PictureItem
    question: TextItem


@dataclass(frozen=True)
class PictureQuestionSource(Source[PictureQuestionItem, tuple[Collated, Collated]]):
    """`(picture, "what is it?")`, or a file's name and the question with a tab between."""

    picture: PictureSource = field(default_factory=PictureSource)
    """How the picture is read."""
    question: TextSource = field(default_factory=lambda: TextSource(longest=5_000))
    """How the question is read."""

    kind: ClassVar[str] = "picture and question"
    takes: ClassVar[str] = "a tuple of a picture and a question, or a file's name and a question with a tab between"
    suffixes: ClassVar[tuple[str, ...]] = PictureSource.suffixes
    asks: ClassVar[bool] = True

    @property
    def largest_file(self) -> int:
        return self.picture.largest_file

    def is_one(self, raw: Any) -> bool:
        return isinstance(raw, str) or (isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[1], str))

    def read(self, raw: Any) -> PictureQuestionItem:
        sides = raw.split("\t", 1) if isinstance(raw, str) else raw
        if not isinstance(sides, tuple | list) or len(sides) != 2:
            raise WrongUse(f"{self.takes}, not {shown(raw)}")
        picture, question = sides
        # The question first: it is checked in no time.
        asked = self.question.read(question)
        return PictureQuestionItem(self.picture.read(picture), asked)

    def label(self, item: PictureQuestionItem) -> str:
        return f"{item.picture.name}\t{item.question.text}"

    def size(self, item: PictureQuestionItem) -> int:
        """A picture costs far more than a question."""
        return self.picture.size(item.picture)

    def collate(self, items: Sequence[PictureQuestionItem]) -> tuple[Collated, Collated]:
        """Pictures and questions, each with a mask of their own."""
        pictures = self.picture.collate([item.picture for item in items])
        return pictures, self.question.collate([item.question for item in items])

    def labels(self, item: PictureQuestionItem) -> "tuple[Grid, Pieces]":
        return self.picture.labels(item.picture), self.question.labels(item.question)

"""Pictures with texts to learn to write: captions, or questions with answers. What trainings read of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.scene_layout import Scene


class SceneTexts(Record):
    """Scenes that are drawn while the training goes on, none of them twice."""

    kind: Literal["scenes"] = "scenes"
    count: int = Field(100_000, ge=1)
    """Scenes of an epoch; the next epoch has others."""
    valid: int = Field(500, ge=1)
    """Scenes that select the best checkpoint."""
    test: int = Field(1_000, ge=1)
    """Test scenes, and as many of combinations that are never trained on."""


class TableTexts(Record):
    """A table of the user's own, tab separated: picture file, text; or picture file, question, answer. Files are
    searched beside the table."""

    kind: Literal["table"] = "table"
    file: str
    """The table."""
    held_out_share: float = Field(0.1, gt=0, lt=0.5)
    """Share of the pictures that selects the best checkpoint, and as much for the test."""


class Flickr8kTexts(Record):
    """Photographs with five captions each (Hodosh et al. 2013), split as published."""

    kind: Literal["flickr8k"] = "flickr8k"
    folder: str = "flickr8k"
    """The folder of images.zip and captions.tsv.gz."""


class EasyVqaTexts(Record):
    """Questions about a drawn shape, split as published; the last training pictures select the best checkpoint."""

    kind: Literal["easy_vqa"] = "easy_vqa"
    folder: str = "easy_vqa"
    """The folder of images.zip, train.tsv.gz and test.tsv.gz."""
    held_out: int = Field(200, ge=1)
    """Training pictures that select the best checkpoint instead."""


class DaquarTexts(Record):
    """Questions about photographs of rooms (Malinowski & Fritz 2014), split as published."""

    kind: Literal["daquar"] = "daquar"
    folder: str = "daquar"
    """The folder of images.zip and questions.tsv.gz."""
    reduced: bool = False
    """Only questions whose answer is one number, colour or one of 37 kinds of objects."""
    held_out: int = Field(80, ge=1)
    """Training pictures that select the best checkpoint instead."""


class SeveralTexts(Record):
    """Several sets, one after the other in every epoch."""

    kind: Literal["several"] = "several"
    parts: list[SceneTexts | EasyVqaTexts] = Field(min_length=1)
    """The sets."""


CaptionData = Annotated[SceneTexts | TableTexts | Flickr8kTexts, Field(discriminator="kind")]
QuestionData = Annotated[
    SceneTexts | TableTexts | EasyVqaTexts | DaquarTexts | SeveralTexts, Field(discriminator="kind")
]
AnyTexts = SceneTexts | TableTexts | Flickr8kTexts | EasyVqaTexts | DaquarTexts | SeveralTexts


@dataclass(frozen=True)
class Taken:
    """Some training examples, side by side."""

    pictures_BHWC: np.ndarray = field(repr=False)
    """uint8 pixels, or float16 features."""
    questions: list[str]
    """Empty in captioning."""
    texts: list[str]
    """What is to be written."""


class PictureExamples(Protocol):
    """Training examples by number. Numbers count on from epoch to epoch."""

    def __len__(self) -> int:
        """How many an epoch has."""
        ...

    def sentences(self) -> list[str]:
        """Texts to learn a vocabulary from."""
        ...

    def take(self, numbers_B: np.ndarray) -> Taken: ...


@dataclass(frozen=True)
class HeldOut:
    """PictureExamples to choose by or to test with."""

    name: str
    pictures_NHWC: np.ndarray = field(repr=False)
    questions: list[str] = field(repr=False)
    """Empty in captioning."""
    references: list[list[str]] = field(repr=False)
    """Accepted captions, or the answer, of each."""
    scenes: list[Scene] = field(default_factory=list, repr=False)
    """What the pictures show, where they are drawn."""
    kinds: list[str] = field(default_factory=list, repr=False)
    """Of the questions, where that is known."""

    def __len__(self) -> int:
        return len(self.references)


@dataclass(frozen=True)
class PictureTextParts:
    """What a training reads, each part when it is asked for."""

    train: Callable[[], PictureExamples]
    valid: Callable[[], list[HeldOut]]
    test: Callable[[], list[HeldOut]]
    told: Sequence[str] = ()
    """What was read and left out."""


@dataclass(frozen=True)
class StoredExamples:
    """Pictures that were read, and their texts."""

    pictures_PHWC: np.ndarray = field(repr=False)
    places_N: np.ndarray = field(repr=False)
    """Which picture each example is of."""
    questions: list[str] = field(repr=False)
    """Empty in captioning."""
    texts: list[str] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def sentences(self) -> list[str]:
        return [*self.questions, *self.texts]

    def take(self, numbers_B: np.ndarray) -> Taken:
        chosen = (np.asarray(numbers_B) % len(self)).tolist()
        pictures = np.asarray(self.pictures_PHWC[self.places_N[chosen]])
        questions = [self.questions[number] for number in chosen] if self.questions else []
        return Taken(pictures, questions, [self.texts[number] for number in chosen])

    def held_out(self, name: str) -> HeldOut:
        """The same, all texts of a picture, or of a question about it, as accepted ones."""
        rows: dict[tuple[int, str], list[str]] = {}
        for number, (place, text) in enumerate(zip(self.places_N.tolist(), self.texts, strict=True)):
            rows.setdefault((place, self.questions[number] if self.questions else ""), []).append(text)
        pictures = np.asarray(self.pictures_PHWC[[place for place, _ in rows]])
        return HeldOut(name, pictures, [asked for _, asked in rows if asked], list(rows.values()))


@dataclass(frozen=True)
class JoinedExamples:
    """Several sets, one after the other in every epoch."""

    parts: Sequence[PictureExamples]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def sentences(self) -> list[str]:
        return [text for part in self.parts for text in part.sentences()]

    def take(self, numbers_B: np.ndarray) -> Taken:
        epochs_B, within_B = np.divmod(numbers_B, len(self))
        ends = np.cumsum([len(part) for part in self.parts])
        owners_B = np.searchsorted(ends, within_B, side="right")
        found: list[Taken] = []
        order: list[np.ndarray] = []
        for owner, part in enumerate(self.parts):
            if len(mine := np.flatnonzero(owners_B == owner)):
                before = ends[owner] - len(part)
                found.append(part.take(epochs_B[mine] * len(part) + within_B[mine] - before))
                order.append(mine)
        back_B = np.argsort(np.concatenate(order))
        questions = [text for one in found for text in one.questions]
        texts = [text for one in found for text in one.texts]
        pictures = np.concatenate([one.pictures_BHWC for one in found])[back_B]
        return Taken(pictures, [questions[i] for i in back_B] if questions else [], [texts[i] for i in back_B])

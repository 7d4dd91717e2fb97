"""A trained captioner: a picture in, a sentence about it out, and where each word looked (show, attend and tell)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from saccade.axes import Axis
from saccade.decode.hypothesis import Hypothesis
from saccade.folder import ModelFolder
from saccade.look.record import Looks
from saccade.pipelines.opening import open_sequence
from saccade.pipelines.picture_writer import (
    PictureAnswer,
    PictureWriter,
    PictureWriterSettings,
    Written,
    mean_confidence,
)
from saccade.runtime.contract import Booleans, How, Source
from saccade.sites import SOURCE
from saccade.sources.picture import PictureItem, PictureSource
from saccade.tokens.vocabulary import read_vocabulary

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Caption(PictureAnswer):
    """A sentence about a picture; the score is the geometric mean of the probabilities of its tokens."""

    item: PictureItem = field(repr=False, compare=False)
    """The picture that was read."""

    @property
    def image(self) -> "Image":
        return self.item.image


class Captioner(PictureWriter[PictureItem, Caption]):
    """Says in a sentence what a picture shows: `caption("photo.jpg").text`.

    `saccade.train("captioning", "captions.tsv", out="my-model")` makes one of a table of files and texts.
    """

    memory = SOURCE

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Captioner":
        """The model of a folder."""
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", marks=folder.marks)
        return cls(open_sequence(folder, vocabulary, how), vocabulary, folder.settings(PictureWriterSettings))

    @property
    def source(self) -> PictureSource:
        return self.input.source

    def read(self, items: Sequence[PictureItem]) -> tuple[np.ndarray, list[str]]:
        return self.input.encoded(np.stack([item.pixels_HWC for item in items])), []

    def sources(self, pictures_BHWC: np.ndarray, questions: Sequence[str]) -> tuple[Source, Booleans | None]:
        return self.input.values(pictures_BHWC), None

    def axes(self, question: str) -> dict[str, Axis]:
        return {SOURCE: self.input.grid}

    def answered(self, item: PictureItem, written: Written, *, sure: bool) -> Caption:
        return Caption(item.name, written.text, written.confidence, written.ids, sure, item, pipeline=self)

    def item_of(self, answer: Caption) -> PictureItem:
        return answer.item

    def confidence(self, hypothesis: Hypothesis) -> float:
        return mean_confidence(hypothesis)

    def look(self, answer: Caption) -> Looks:
        """Where each word looked in the picture."""
        return self.look_at(self.read([answer.item])[0][0], "", answer.ids)

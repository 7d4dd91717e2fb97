"""The contract of a source: raw input -> item, its size, items -> arrays and mask, its labels, its limits."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from saccade.errors import UserError

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Collated:
    """Items side by side, padded to the largest."""

    values: np.ndarray
    """Token ids [B, S], pixels [B, H, W, C], samples [B, S]."""
    mask: np.ndarray | None = None
    """True where there is something; None when nothing is padded."""
    segments: np.ndarray | None = None
    """Of texts in pairs: 0 up to the end of the first one, 1 after it; None where there are no second texts."""


class Source(ABC, Generic[Item, Made]):
    """A kind of input. Sources are frozen records: their fields are sizes and limits."""

    kind: ClassVar[str]
    """Its name."""
    takes: ClassVar[str]
    """What a raw input may be, in words, for errors and help."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """Of the files that are read; none where the input is the text itself."""

    longest: int
    """Characters of one text that are read, where the input is text."""
    asks: ClassVar[bool] = False
    """Whether a question goes with every file."""

    @property
    def takes_files(self) -> bool:
        """Whether it reads files."""
        return bool(self.suffixes)

    @property
    def largest_file(self) -> int:
        """Bytes of one file that are read."""
        return 0

    @abstractmethod
    def is_one(self, raw: Any) -> bool:
        """Whether it is one input, and not several in a list, a tuple or a generator."""

    @abstractmethod
    def read(self, raw: Any) -> Item:
        """Check a raw input against the limits and read it; a UserError says what is wrong with it."""

    def read_all(self, raws: Sequence[Any]) -> list[Item | UserError]:
        """Every input, or why it cannot be read."""
        return [self._read_or_tell(raw) for raw in raws]

    def _read_or_tell(self, raw: Any) -> Item | UserError:
        try:
            return self.read(raw)
        except UserError as error:
            return error

    @abstractmethod
    def label(self, item: Item) -> str:
        """The input in one line: the text itself, or the name of the file."""

    @abstractmethod
    def size(self, item: Item) -> int:
        """What a batch is budgeted by: tokens, pixels, samples."""

    @abstractmethod
    def collate(self, items: Sequence[Item]) -> Made:
        """Arrays of several items, in their order, and which positions are real."""

    @abstractmethod
    def labels(self, item: Item) -> Any:
        """The names of its positions, for pictures of attention: an axis, or one for each part of the input."""


def shown(raw: object) -> str:
    """A wrong input, short enough for an error."""
    if type(raw).__repr__ is object.__repr__:  # nothing but an address
        return type(raw).__name__
    text = " ".join(repr(raw).split())
    return f"{type(raw).__name__} ({text if len(text) <= 40 else text[:39] + '…'})"


def padded(arrays: Sequence[np.ndarray], axes: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Arrays side by side, the first `axes` axes of each filled up with zeros at their ends; and which positions are
    real, None if all are."""
    sizes = np.array([array.shape[:axes] for array in arrays]).reshape(len(arrays), axes)
    largest = tuple(sizes.max(axis=0).tolist())
    rows = np.zeros((len(arrays), *largest, *arrays[0].shape[axes:]), dtype=arrays[0].dtype)
    real = np.zeros((len(arrays), *largest), dtype=bool)
    for number, array in enumerate(arrays):
        within = tuple(slice(0, size) for size in array.shape[:axes])
        rows[number][within], real[number][within] = array, True
    return rows, None if (sizes == sizes[0]).all() else real

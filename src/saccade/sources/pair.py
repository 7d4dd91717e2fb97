"""A text, or two with a tab between them, as one row of tokens for an encoder: `<s> first </s> second </s>`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saccade.errors import UserError, WrongUse
from saccade.sources.source import Collated, Source, shown

if TYPE_CHECKING:
    from saccade.axes import Pieces
    from saccade.tokens.marks import Marks
    from saccade.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class PairItem:
    """A text or two, as one row."""

    first: str
    second: str | None
    ids: list[int] = field(default_factory=list, repr=False)
    """Marks included; none where the source has no vocabulary."""
    first_length: int = 0
    """How long the part up to the first </s> is."""


@dataclass(frozen=True)
class PairSource(Source[PairItem, Collated]):
    """A text, or two of them: `"one"`, `"one\\ttwo"` or `("one", "two")`."""

    longest: int = 100_000
    """Characters of one input that are read."""
    context: int = 512
    """Tokens of a row; longer texts lose their ends."""
    vocabulary: "Vocabulary | None" = field(default=None, repr=False, compare=False)
    """What cuts texts into tokens."""

    kind: ClassVar[str] = "pair"
    takes: ClassVar[str] = "a text, or two as a tuple or with a tab between"

    def is_one(self, raw: Any) -> bool:
        return isinstance(raw, str) or (isinstance(raw, tuple) and len(raw) == 2 and _are_texts(raw))

    def read(self, raw: Any) -> PairItem:
        sides = self._sides(raw)
        return self._item(sides, [] if self.vocabulary is None else self.vocabulary.encode(sides))

    def read_all(self, raws: Sequence[Any]) -> list[PairItem | UserError]:
        """In one call of the tokenizer, which is faster than one by one."""
        if self.vocabulary is None:
            return super().read_all(raws)
        try:
            sides = [self._sides(raw) for raw in raws]
            ids = iter(self.vocabulary.encode([side for some in sides for side in some]))
        except UserError:  # find out which
            return super().read_all(raws)
        return [self._item(some, [next(ids) for _ in some]) for some in sides]

    def _sides(self, raw: Any) -> list[str]:
        """The text or the two, if they are texts and not too long."""
        sides = raw.split("\t") if isinstance(raw, str) else list(raw) if isinstance(raw, tuple) else [raw]
        if not _are_texts(sides):
            raise WrongUse(f"{self.takes}, not {shown(raw)}")
        if not 1 <= len(sides) <= 2:
            raise UserError(f"{len(sides)} columns; a text, or two with a tab between")
        if (length := sum(map(len, sides)) + len(sides) - 1) > self.longest:
            raise UserError(f"{length:,} characters; at most {self.longest:,} are read in one text")
        return sides

    def _item(self, sides: list[str], ids: list[list[int]]) -> PairItem:
        first, second = sides[0], sides[1] if len(sides) == 2 else None
        if self.vocabulary is None:
            return PairItem(first, second)
        row, first_length = pair_row(ids[0], ids[1] if len(ids) == 2 else None, self.context, self.vocabulary.marks)
        return PairItem(first, second, row, first_length)

    def label(self, item: PairItem) -> str:
        return item.first if item.second is None else f"{item.first}\t{item.second}"

    def size(self, item: PairItem) -> int:
        return len(self.label(item)) if self.vocabulary is None else len(item.ids)

    def collate(self, items: Sequence[PairItem]) -> Collated:
        lengths = np.array([len(item.ids) for item in items])
        rows = np.full((len(items), int(lengths.max())), self._known.marks.pad, dtype=np.int64)
        for number, item in enumerate(items):
            rows[number, : len(item.ids)] = item.ids
        real = np.arange(rows.shape[1]) < lengths[:, None]
        firsts = np.array([item.first_length for item in items])
        return Collated(rows, None if real.all() else real, segments_of(firsts, lengths, rows.shape[1]))

    def labels(self, item: PairItem) -> "Pieces":
        from saccade.axes import Pieces

        return Pieces.of(self._known, item.ids)

    @property
    def _known(self) -> "Vocabulary":
        if self.vocabulary is None:
            raise ValueError("a source without a vocabulary has no tokens")
        return self.vocabulary


def pair_row(first: Sequence[int], second: Sequence[int] | None, context: int, marks: "Marks") -> tuple[list[int], int]:
    """One row of a text or two, and how long its part up to the first </s> is; what does not fit is cut off, from the
    longer one first."""
    room = context - (2 if second is None else 3)
    one, other = _fitted(len(first), len(second or ()), room)
    row = [marks.begin, *first[:one], marks.end]
    return ([*row, *second[:other], marks.end] if second is not None else row), one + 2


def segments_of(firsts: np.ndarray, lengths: np.ndarray, width: int) -> np.ndarray | None:
    """0 up to each row's first </s>, 1 from there to its end; None where no row has a second text."""
    place = np.arange(width)
    segments = (place >= firsts[:, None]) & (place < lengths[:, None])
    return segments.astype(np.int64) if segments.any() else None


def _fitted(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of two texts fits: the longer one is cut first."""
    if first + second <= room:
        return first, second
    shorter = min(first, second, room // 2)
    return (room - shorter, shorter) if first > second else (shorter, room - shorter)


def _are_texts(sides: Sequence[Any]) -> bool:
    return all(isinstance(side, str) for side in sides)

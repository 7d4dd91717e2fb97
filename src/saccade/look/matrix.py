"""A table of numbers of any size as a picture: signed values, blue above zero and red below, with a few numbers along
its edges."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from saccade.look.lettering import width
from saccade.look.plot import marks
from saccade.look.shapes import FAINT, LINE, Box, Raster, Shape, Word
from saccade.runtime.contract import Floats

SIZE, EDGE = 14, 20
BLUE, RED = np.array([8, 48, 107]), np.array([165, 15, 21])
LEAST_CELL = 14
"""Pixels of a cell that can have a word beside it."""


@dataclass(frozen=True)
class Matrix:
    """Values with a title."""

    title: str
    values_YX: Floats
    across: str = ""
    down: str = ""
    labels_across: Sequence[str] = ()
    labels_down: Sequence[str] = ()
    widest: int = 420
    """Pixels of the longer side, at most, unless a cell would be smaller than a pixel."""
    top: float | None = None
    """What is darkest; None: the largest value."""

    @property
    def darkest(self) -> float:
        """The value, whatever its sign, that is darkest."""
        return max(float(np.abs(self.values_YX).max()), 1e-12) if self.top is None else self.top

    @property
    def cell(self) -> int:
        """Pixels of a side of a cell."""
        return max(1, self.widest // int(max(self.values_YX.shape)))

    @property
    def _left(self) -> int:
        names = self.labels_down if self.cell >= LEAST_CELL else ()
        return EDGE + max([width(name, SIZE) for name in names] or [width("0000", SIZE)]) + SIZE

    @property
    def shape(self) -> tuple[int, int]:
        """Width and height of the whole."""
        rows, columns = self.values_YX.shape
        wide = self._left + columns * self.cell + EDGE
        told = max(width(self.title, SIZE + 1), width(self._note, SIZE - 3)) + 2 * EDGE
        return max(wide, told), rows * self.cell + 8 * SIZE

    @property
    def _note(self) -> str:
        return f"{self.down}, downwards; darkest: {self.darkest:.2g}"

    def shapes(self, x: int = 0, y: int = 0) -> Iterator[Shape]:
        """Everything, its upper left corner at x and y."""
        from PIL import Image

        rows, columns = self.values_YX.shape
        left, top, cell = x + self._left, y + 4 * SIZE, self.cell
        size = columns * cell, rows * cell
        shares = (self.values_YX / self.darkest).clip(-1, 1)
        ends = np.where(shares[..., None] >= 0, BLUE, RED)
        pixels = (255 + (ends - 255) * np.abs(shares[..., None])).astype(np.uint8)
        yield Word(x + EDGE, y + EDGE, self.title, SIZE + 1)
        yield Raster(left, top, Image.fromarray(pixels).resize(size, Image.Resampling.NEAREST))
        for over, down, wide, high in ((0, 0, size[0], 0), (0, size[1], size[0], 0), (0, 0, 0, size[1])):
            yield Box(left + over, top + down, wide, high, LINE)
        for place, label in _edge(self.labels_across, columns, cell):
            yield Word(left + int((place + 0.5) * cell), top - SIZE // 2 - 2, label, SIZE - 2, "middle")
        for place, label in _edge(self.labels_down, rows, cell):
            yield Word(left - SIZE // 2, top + int((place + 0.5) * cell), label, SIZE - 2, "end")
        yield Word(left + size[0] // 2, top + size[1] + SIZE, self.across, SIZE - 1, "middle", colour=FAINT)
        yield Word(x + EDGE, top + size[1] + int(2.4 * SIZE), self._note, SIZE - 3, colour=FAINT)


def _edge(labels: Sequence[str], count: int, cell: int) -> list[tuple[int, str]]:
    """The labels, or, where there are none or cells are too small for them, some numbers."""
    if labels and cell >= LEAST_CELL:
        return list(enumerate(labels))
    return [(round(value), label) for value, label in marks(0, count - 1) if value == round(value)]

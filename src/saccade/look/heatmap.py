"""A heat-map with words at its edges and a scale of colours beside it, as shapes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from saccade.look.alignment import Alignment
from saccade.look.lettering import width
from saccade.look.shapes import BLUES, FAINT, LINE, Box, Shape, Word

LARGEST = 6_000
"""Pixels of the cells in one direction, at most: long texts have smaller cells."""
STEPS = {0.01: 0.002, 0.02: 0.005, 0.05: 0.01, 0.1: 0.02, 0.2: 0.05, 0.4: 0.1, 0.6: 0.2, 0.8: 0.2, 1.0: 0.2}
"""Between the numbers of a scale, by its top."""
SHADES = 64
"""Of a scale."""
SLANT = 0.72
"""What a word at 45 degrees needs of its length, in both directions."""


@dataclass(frozen=True)
class Heatmap:
    """Source words above the columns, target words before the rows, a title below; darker is more."""

    alignment: Alignment
    top: float
    """The weight that is darkest, one of the scales."""
    largest_cell: int = 56
    titled: bool = True

    @cached_property
    def cell(self) -> int:
        """Side of a cell in pixels."""
        return max(4, min(self.largest_cell, LARGEST // max(len(self.alignment.target), len(self.alignment.source))))

    @cached_property
    def size(self) -> int:
        """Of the letters."""
        return max(4, int(self.cell * 0.38))

    @cached_property
    def small(self) -> int:
        return max(4, int(0.8 * self.size))

    @cached_property
    def _left(self) -> int:
        return self.size + max(width(word, self.size) for word in self.alignment.target) + self.size // 2

    @cached_property
    def _above(self) -> int:
        return int(SLANT * max(width(word, self.size) for word in self.alignment.source)) + 2 * self.size

    @cached_property
    def _beside(self) -> int:
        """The last words lean out of the picture; the scale of colours stands there anyway."""
        words = self.alignment.source
        lean = max(
            int(SLANT * width(word, self.size)) - (len(words) - place) * self.cell for place, word in enumerate(words)
        )
        return max(lean + self.size, 4 * self.size + width("0.000", self.small))

    @cached_property
    def _cells(self) -> tuple[int, int]:
        """Width and height of all cells."""
        return self.cell * len(self.alignment.source), self.cell * len(self.alignment.target)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Width and height of the whole."""
        across, down = self._cells
        titled = width(self.alignment.title, self.small) + 2 * self.size if self.titled else 0
        return max(self._left + across + self._beside, titled), self._above + down + 2 * self.size

    def shapes(self, x: int = 0, y: int = 0) -> Iterator[Shape]:
        """Everything, its upper left corner at x and y."""
        left, top, (across, down) = x + self._left, y + self._above, self._cells
        for row, weights in enumerate(self.alignment.weights_TS.tolist()):
            for column, weight in enumerate(weights):
                place = left + column * self.cell, top + row * self.cell
                yield Box(*place, self.cell, self.cell, colour(weight / self.top))
        for column in range(1, len(self.alignment.source)):
            yield Box(left + column * self.cell, top, 0, down, LINE)
        for row in range(1, len(self.alignment.target)):
            yield Box(left, top + row * self.cell, across, 0, LINE)
        for row, word in enumerate(self.alignment.target):
            yield Word(left - self.size // 2, top + int((row + 0.5) * self.cell), word, self.size, "end")
        for column, word in enumerate(self.alignment.source):
            at = left + int((column + 0.5) * self.cell)
            yield Word(at, top - self.size // 2, word, self.size, slanted=True)
        yield from self._scale(left + across + self.size, top, down)
        if self.titled:
            middle = max(left + across // 2, x + width(self.alignment.title, self.small) // 2 + self.size)
            yield Word(middle, y + self.shape[1] - self.size, self.alignment.title, self.small, "middle", colour=FAINT)

    def _scale(self, x: int, y: int, height: int) -> Iterator[Shape]:
        shades = min(SHADES, height)
        for step in range(shades):
            above, below = height * step // shades, height * (step + 1) // shades
            yield Box(x, y + above, self.size, below - above, colour(1 - step / max(1, shades - 1)))
        between = STEPS[self.top]
        count = round(self.top / between)
        if height < 1.5 * self.small * (count + 1):  # a picture of few rows: the numbers would cover each other
            between, count = self.top, 1
        places = next(places for places in (1, 2, 3) if round(between, places) == between)
        for number in range(count + 1):
            at = y + int((1 - number / count) * (height - 1))
            yield Word(x + int(1.4 * self.size), at, f"{number * between:.{places}f}", self.small)


def colour(share: float) -> str:
    """Between the two nearest of the blues."""
    place = min(1.0, max(0.0, share)) * (len(BLUES) - 1)
    below = min(int(place), len(BLUES) - 2)
    one, other = ([int(shade[i : i + 2], 16) for i in (1, 3, 5)] for shade in BLUES[below : below + 2])
    mixed = (round(a + (b - a) * (place - below)) for a, b in zip(one, other, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)

"""Curves with axes, as shapes: a few lines over one quantity, each with its name."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from saccade.look.lettering import width
from saccade.look.shapes import FAINT, LINE, Box, Curve, Shape, Word
from saccade.runtime.contract import Floats

COLOURS = ("#2171b5", "#cb4b16", "#2aa198", "#6c71c4", "#b58900", "#586e75", "#d33682", "#859900")
SIZE, EDGE = 14, 20
ACROSS, DOWN = 560, 320
MOST_MARKS = 7


@dataclass(frozen=True)
class Series:
    """One line; with errors, a band of two standard errors around it."""

    name: str
    xs: Floats
    ys: Floats
    errors: Floats | None = None


@dataclass(frozen=True)
class Plot:
    """Lines over one quantity."""

    title: str
    across: str
    """What stands along the horizontal axis."""
    up: str
    lines: Sequence[Series]
    note: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """Width and height of the whole."""
        names = max(width(one.name, SIZE) for one in self.lines) + 3 * SIZE
        left = self._left
        return left + ACROSS + names + 2 * EDGE, DOWN + 7 * SIZE + EDGE + (2 * SIZE if self.note else 0)

    @property
    def _left(self) -> int:
        low, high = self._range([one.ys for one in self.lines])
        return EDGE + max(width(label, SIZE) for _, label in marks(low, high)) + SIZE

    def shapes(self, x: int = 0, y: int = 0) -> Iterator[Shape]:
        """Everything, its upper left corner at x and y."""
        left, top = x + self._left, y + 4 * SIZE
        xs, ys = self._range([one.xs for one in self.lines]), self._range([one.ys for one in self.lines])
        yield Word(left + ACROSS // 2, y + EDGE, self.title, SIZE + 2, "middle")
        yield Word(x + EDGE, top - SIZE, self.up, SIZE, colour=FAINT)
        for value, label in marks(*ys):
            at = top + DOWN - _place(value, ys, DOWN)
            yield Box(left, at, ACROSS, 0, LINE)
            yield Word(left - SIZE // 2, at, label, SIZE, "end")
        for value, label in marks(*xs):
            at = left + _place(value, xs, ACROSS)
            yield Box(at, top + DOWN, 0, SIZE // 3, FAINT)
            yield Word(at, top + DOWN + SIZE, label, SIZE, "middle")
        yield Word(left + ACROSS // 2, top + DOWN + int(2.3 * SIZE), self.across, SIZE, "middle", colour=FAINT)
        for number, one in enumerate(self.lines):
            colour = COLOURS[number % len(COLOURS)]
            if one.errors is not None:
                for side in (-2, 2):
                    yield Curve(self._points(one.xs, one.ys + side * one.errors, xs, ys, left, top), colour, 1)
            yield Curve(self._points(one.xs, one.ys, xs, ys, left, top), colour, 2)
            at = top + SIZE + int(1.6 * SIZE) * number
            yield Box(left + ACROSS + SIZE, at, SIZE, 3, colour)
            yield Word(left + ACROSS + int(2.4 * SIZE), at, one.name, SIZE)
        if self.note:
            yield Word(x + EDGE, y + self.shape[1] - SIZE, self.note, SIZE - 2, colour=FAINT)

    @staticmethod
    def _range(values: Sequence[Floats]) -> tuple[float, float]:
        low, high = (float(side) for side in (min(map(np.min, values)), max(map(np.max, values))))
        # A curve near zero is read from zero.
        low = 0.0 if 0 < low < 0.4 * high else low
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    @staticmethod
    def _points(
        xs: Floats, ys: Floats, across: tuple[float, float], up: tuple[float, float], left: int, top: int
    ) -> tuple[tuple[int, int], ...]:
        held = np.clip(ys, *up)
        return tuple(
            (left + _place(float(a), across, ACROSS), top + DOWN - _place(float(b), up, DOWN))
            for a, b in zip(xs, held, strict=True)
        )


def _place(value: float, ends: tuple[float, float], length: int) -> int:
    return round((value - ends[0]) / (ends[1] - ends[0]) * length)


def marks(low: float, high: float) -> list[tuple[float, str]]:
    """Round numbers from end to end, and how they are written."""
    rough = (high - low) / MOST_MARKS
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    places = max(0, -floor(log10(step) + 1e-9))
    count = floor((high - low) / step + 1e-9) + 1
    first = ceil(low / step - 1e-9)
    values = [(first + number) * step for number in range(count)]
    return [(value, f"{value:,.{places}f}") for value in values if value <= high + 1e-9 * step]

"""What can be covered of an input, and inputs with parts of them covered: words of a text, regions of a picture,
stretches of a sound. A cover knows no model.

A mask has a number for every place, 1 for shown and 0 for covered. Random ones are drawn as RISE draws them (Petsiuk
et al. 2018, 3.2): a coarse grid, each cell shown with probability 1/2, laid over the input with a random shift. Number
n of a seed is always the same mask, however many are drawn at once.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saccade.axes import Axis, Grid, Pieces, Time
from saccade.errors import UserError, WrongUse
from saccade.runtime.contract import Floats

SHOWN = 0.5
"""Probability that a cell of a random mask is shown."""
GRID = 7
"""Cells along a side of a picture's mask."""
MOMENT = 0.02
"""Seconds of one place of a sound."""
LONGEST_SHARE = 6
"""Cells of a text or a sound are at most this part of it."""
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+(?:['’\-]\w+)*|[^\w\s]")
LETTER = re.compile(r"\S")
Spans = Sequence[tuple[int, int]]


class Cover(ABC):
    """One input and its places."""

    axis: Axis
    """Where a place is, for pictures of values."""

    @property
    def places(self) -> int:
        """How many there are."""
        return len(self.axis)

    @abstractmethod
    def draw(self, random: np.random.Generator) -> Floats:
        """A random mask [P]."""

    @abstractmethod
    def under(self, mask_P: Floats) -> Any:
        """The input under a mask, as the model is given it."""

    def masks(self, seed: int, first: int, stop: int) -> Floats:
        """The masks of some numbers of a seed: [N, P]."""
        return np.stack([self.draw(np.random.default_rng([seed, number])) for number in range(first, stop)])

    def windows(self) -> Floats:
        """Masks that cover one place, or a few neighbours, after the other: [N, P]."""
        masks: Floats = 1 - np.eye(self.places, dtype=np.float32)
        return masks


def _spans(places: int, random: np.random.Generator) -> Floats:
    """Cells of a random length, laid with a random shift over a line."""
    length = int(random.integers(1, max(1, places // LONGEST_SHARE) + 1))
    shift = int(random.integers(length))
    cells = random.random(places // length + 2) < SHOWN
    return cells[(np.arange(places) + shift) // length].astype(np.float32)


class TextCover(Cover):
    """The words of a text."""

    axis: Pieces

    def __init__(
        self, text: str, *, blank: str = "", spans: Spans | None = None, wrap: Callable[[str], Any] = lambda text: text
    ) -> None:
        """`blank` stands for a covered word; without it the word is left out. `spans`: where the words are; a text of
        one word has its letters in their place. `wrap`: what the model is given of a text."""
        found = [match.span() for match in WORD.finditer(text)] if spans is None else list(spans)
        if spans is None and len(found) == 1:
            found = [match.span() for match in LETTER.finditer(text)]
        if not found:
            raise UserError("there is no word in it, and nothing can be covered")
        self.text, self.blank, self.spans, self.wrap = text, blank, found, wrap
        self.axis = Pieces.letters(text[start:stop] for start, stop in found)

    def draw(self, random: np.random.Generator) -> Floats:
        return _spans(self.places, random)

    def under(self, mask_P: Floats) -> Any:
        kept, end = "", 0
        for shown, (start, stop) in zip(mask_P.tolist(), self.spans, strict=True):
            before, word = self.text[end:start], self.text[start:stop]
            if shown >= 0.5:
                kept += before + word
            else:  # a word that is left out takes the space before it along
                kept += before + self.blank if self.blank else before.rstrip(" ")
            end = stop
        return self.wrap((kept + self.text[end:]).strip())


class PictureCover(Cover):
    """The pixels of a picture; what is covered is darkened, or becomes `fill`."""

    def __init__(
        self,
        pixels_HWC: np.ndarray,
        *,
        fill: float | None = None,
        grid: int = GRID,
        wrap: Callable[[np.ndarray], Any] = lambda pixels: pixels,
    ) -> None:
        """`fill`: the value of what is covered; None: the picture's mean colour. `wrap`: what the model is given."""
        if pixels_HWC.ndim not in (2, 3) or min(pixels_HWC.shape[:2]) < 2:
            raise WrongUse(f"a picture is an array [height, width] or [height, width, channels], not of shape "
                           f"{pixels_HWC.shape}")  # fmt: skip
        self.pixels, self.wrap = pixels_HWC, wrap
        flat = pixels_HWC.reshape(pixels_HWC.shape[0] * pixels_HWC.shape[1], -1).astype(np.float32)
        self.flat_PC, self.fill_C = flat, flat.mean(axis=0) if fill is None else np.full(flat.shape[1], fill)
        height, width = pixels_HWC.shape[:2]
        self.axis: Grid = Grid(height=height, width=width)
        self.cells = tuple(max(1, min(grid, side // 2)) for side in (height, width))
        self.upsampling = [_upsampling(side, cells) for side, cells in zip((height, width), self.cells, strict=True)]

    def draw(self, random: np.random.Generator) -> Floats:
        """Bilinear between the middles of the cells."""
        cells = (random.random([count + 1 for count in self.cells]) < SHOWN).astype(np.float32)
        down, across = (shifts[int(random.integers(len(shifts)))] for shifts in self.upsampling)
        mask: Floats = (down @ cells @ across.T).reshape(-1)
        return mask

    def windows(self) -> Floats:
        """Squares of an eighth of the longer side, half of each over the one before."""
        height, width = self.pixels.shape[:2]
        side = max(1, max(height, width) // 8)
        step = max(1, side // 2)
        corners = [(y, x) for y in _starts(height, side, step) for x in _starts(width, side, step)]
        masks = np.ones((len(corners), height, width), dtype=np.float32)
        for mask, (y, x) in zip(masks, corners, strict=True):
            mask[y : y + side, x : x + side] = 0
        return masks.reshape(len(corners), -1)

    def under(self, mask_P: Floats) -> Any:
        mixed = self.flat_PC * mask_P[:, None] + self.fill_C * (1 - mask_P[:, None])
        if self.pixels.dtype == np.uint8:
            mixed = mixed.round().clip(0, 255)
        return self.wrap(mixed.reshape(self.pixels.shape).astype(self.pixels.dtype))


def _starts(length: int, side: int, step: int) -> list[int]:
    """Where windows begin, the last one at the end."""
    return sorted({*range(0, max(1, length - side + 1), step), max(0, length - side)})


def _upsampling(side: int, cells: int) -> list[Floats]:
    """For every shift the matrix [side, cells + 1] that brings a row of cells to the size of the picture."""
    length = -(-side // cells)
    found = []
    for shift in range(length):
        place = (np.arange(side) + shift) / length
        below = np.minimum(place.astype(int), cells)
        share = (place - below).astype(np.float32)
        matrix = np.zeros((side, cells + 1), dtype=np.float32)
        matrix[np.arange(side), below] += 1 - share
        matrix[np.arange(side), np.minimum(below + 1, cells)] += share
        found.append(matrix)
    return found


class SoundCover(Cover):
    """Stretches of a recording; what is covered is silent."""

    axis: Time

    def __init__(
        self, samples: np.ndarray, rate: int, *, wrap: Callable[[np.ndarray], Any] = lambda samples: samples
    ) -> None:
        if samples.ndim != 1 or len(samples) < rate * MOMENT:
            raise WrongUse(f"a sound is an array of samples, at least {MOMENT} s long, not of shape {samples.shape}")
        self.samples, self.wrap = samples, wrap
        self.length = max(1, int(rate * MOMENT))
        count = -(-len(samples) // self.length)
        self.axis = Time(count=count, seconds=self.length / rate)

    def windows(self) -> Floats:
        """A tenth of a second, half of it over the one before."""
        side = min(self.places, max(1, round(0.1 / MOMENT)))
        starts = _starts(self.places, side, max(1, side // 2))
        masks = np.ones((len(starts), self.places), dtype=np.float32)
        for mask, start in zip(masks, starts, strict=True):
            mask[start : start + side] = 0
        return masks

    def draw(self, random: np.random.Generator) -> Floats:
        return _spans(self.places, random)

    def under(self, mask_P: Floats) -> Any:
        gain = np.repeat(mask_P, self.length)[: len(self.samples)]
        return self.wrap((self.samples * gain).astype(self.samples.dtype))

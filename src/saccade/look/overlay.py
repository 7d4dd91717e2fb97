"""Looks at a picture: one panel for every word, the picture bright where the word looked (Xu et al. 2015, figure 3)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from saccade.axes import Grid
from saccade.look.alignment import Alignment
from saccade.look.heatmap import colour
from saccade.look.lettering import width
from saccade.look.saccades import FRAME_SIDE, attended_points, moving_picture, path_picture
from saccade.look.shapes import FAINT, INK, Box, Raster, Shape, Word
from saccade.runtime.contract import Floats

if TYPE_CHECKING:
    from PIL.Image import Image

LONGER_SIDE = 168
"""Pixels of a panel."""
LETTERS = 18
GAP = 14
ACROSS = 6
"""Panels in a row."""
PATH = "its saccades"
DIMMEST = 0.2
"""What is left of the picture where nobody looks."""
GLOW = np.array([150, 90, 20], dtype=np.float32)
"""Colour of the light itself, as far as a picture is dark."""


@dataclass(frozen=True)
class PicturePanels:
    """Where each word looked in a picture; without the picture, the fields of its grid.

    Every panel has its own scale, whose end, the largest weight, stands below it: words that look at one field and
    words that look at many would not fit one scale.
    """

    alignment: Alignment
    grid: Grid
    picture: "Image | None" = None

    @cached_property
    def _panel(self) -> tuple[int, int]:
        """Width and height of one; without a picture, whole pixels for every field."""
        across, down = self.picture.size if self.picture is not None else (self.grid.width, self.grid.height)
        alone = len(self.alignment.target) == 1 and self.picture is not None
        scale = (2 if alone else 1) * LONGER_SIDE / max(across, down)
        if self.picture is None:
            scale = max(1, int(scale))
        return max(1, round(across * scale)), max(1, round(down * scale))

    @property
    def _title(self) -> str:
        underlined = "; underlined: words that carry the looking" if self._carrying else ""
        return f"{self.alignment.title}; below each word's look its largest weight{underlined}"

    @property
    def small(self) -> int:
        return int(0.8 * LETTERS)

    @cached_property
    def _step(self) -> tuple[int, int]:
        """From one panel to the next: a word may be wider than its panel."""
        widest = max(width(word, LETTERS) for word in self.alignment.target)
        return max(self._panel[0], widest) + GAP, self._panel[1] + 3 * LETTERS + GAP

    @cached_property
    def shape(self) -> tuple[int, int]:
        count = len(self.alignment.target) + self._has_path
        across = GAP + min(count, ACROSS) * self._step[0]
        down = GAP + -(-count // ACROSS) * self._step[1] + 2 * LETTERS
        return max(across, width(self._title, self.small) + 2 * GAP), down

    def shapes(self, x: int = 0, y: int = 0) -> Iterator[Shape]:
        """Everything, its upper left corner at x and y."""
        for number, word in enumerate(self.alignment.target):
            left, top = x + GAP + number % ACROSS * self._step[0], y + GAP + number // ACROSS * self._step[1]
            yield Word(left + self._panel[0] // 2, top + LETTERS // 2, word, LETTERS, "middle")
            if number in self._carrying:
                across = width(word, LETTERS)
                yield Box(left + (self._panel[0] - across) // 2, top + int(1.15 * LETTERS), across, 2, INK)
            weights_HW = self.alignment.weights_TS[number].reshape(self.grid.height, self.grid.width)
            largest = float(weights_HW.max())
            above = top + int(1.4 * LETTERS)
            yield from self._look(weights_HW / max(largest, 1e-9), left, above)
            below = above + self._panel[1] + LETTERS * 2 // 3
            yield Word(left + self._panel[0] // 2, below, f"{largest:.2g}", self.small, "middle", colour=FAINT)
        if self._has_path and self.picture is not None:
            number = len(self.alignment.target)
            left, top = x + GAP + number % ACROSS * self._step[0], y + GAP + number // ACROSS * self._step[1]
            yield Word(left + self._panel[0] // 2, top + LETTERS // 2, PATH, self.small, "middle", colour=FAINT)
            points = attended_points(self.alignment.weights_TS[self.alignment.steps], self.grid, self._panel)
            yield Raster(left, top + int(1.4 * LETTERS), path_picture(self.picture, points, self._panel))
        middle, bottom = x + self.shape[0] // 2, y + self.shape[1] - LETTERS
        yield Word(middle, bottom, self._title, self.small, "middle", colour=FAINT)

    @property
    def _has_path(self) -> bool:
        return self.picture is not None and len(self.alignment.steps) > 1

    @cached_property
    def _carrying(self) -> set[int]:
        return set(self.alignment.carrying)

    def moving(self) -> bytes:
        """A GIF, a frame for each word; needs the picture."""
        assert self.picture is not None
        scale = FRAME_SIDE / max(self.picture.size)
        size = (max(1, round(self.picture.width * scale)), max(1, round(self.picture.height * scale)))
        fields = [row.reshape(self.grid.height, self.grid.width) for row in self.alignment.weights_TS]
        frames = [_brightened(self.picture, one / max(float(one.max()), 1e-9), size) for one in fields]
        return moving_picture(frames, self.alignment.target)

    def _look(self, shares_HW: Floats, left: int, top: int) -> Iterator[Shape]:
        if self.picture is not None:
            yield Raster(left, top, _brightened(self.picture, shares_HW, self._panel))
            return
        cell = self._panel[0] // self.grid.width
        for row, column in np.ndindex(shares_HW.shape):
            yield Box(left + column * cell, top + row * cell, cell, cell, colour(float(shares_HW[row, column])))


def _brightened(picture: "Image", shares_HW: Floats, size: tuple[int, int]) -> "Image":
    """The picture, dimmed where nobody looks; between the fields' middles the light changes smoothly."""
    from PIL import Image

    light = Image.fromarray(np.clip(shares_HW * 255, 0, 255).astype(np.uint8)).resize(size, Image.Resampling.BICUBIC)
    pixels_HWC = np.asarray(picture.resize(size, Image.Resampling.LANCZOS), dtype=np.float32)
    shares = np.asarray(light, dtype=np.float32)[..., None] / 255
    # Black stays black however bright the light: dark pictures get a glow too.
    glow = GLOW * shares * (1 - pixels_HWC.mean() / 255)
    lit_HWC = pixels_HWC * (DIMMEST + (1 - DIMMEST) * shares) + glow
    return Image.fromarray(np.clip(lit_HWC, 0, 255).astype(np.uint8))

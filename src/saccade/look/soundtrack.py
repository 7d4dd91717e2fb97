"""Letters over a recording: its spectrogram, below it where each letter looked, and lines where words begin."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from saccade.look.lettering import width
from saccade.look.shapes import BLUES, FAINT, INK, Box, Raster, Shape, Word
from saccade.runtime.contract import Floats

if TYPE_CHECKING:
    from PIL.Image import Image

SECOND = 240
"""Pixels of a second, where the recording is short."""
WIDEST = 2_400
ROW = 16
"""Pixels of a letter's row."""
BAND = 2
"""Pixels of a bin of the mel scale."""
LETTERS = 13
LINE = "#c0392b"
"""Where a word begins."""


@dataclass(frozen=True)
class SpokenWord:
    """A word and when it was said, in seconds from the beginning of the stretch."""

    text: str
    start: float
    end: float
    confidence: float


@dataclass(frozen=True)
class Soundtrack:
    """What was heard in a stretch of a recording."""

    frames_TF: np.ndarray = field(repr=False)
    """Normalised log-mel energies."""
    step: float
    """Seconds between two frames."""
    look_step: float
    """Seconds between two positions that are looked at."""
    start: float
    """Where the stretch begins in the recording."""
    words: tuple[SpokenWord, ...]


@dataclass(frozen=True)
class SoundSheet:
    """The drawing."""

    track: Soundtrack
    letters: list[str]
    weights_TS: Floats
    """Where each letter looked."""
    title: str

    @cached_property
    def small(self) -> int:
        return int(0.85 * LETTERS)

    @cached_property
    def _second(self) -> float:
        seconds = len(self.track.frames_TF) * self.track.step
        return min(float(SECOND), WIDEST / max(seconds, 1e-3))

    @cached_property
    def _across(self) -> int:
        return max(1, round(len(self.track.frames_TF) * self.track.step * self._second))

    @cached_property
    def _left(self) -> int:
        return 2 * LETTERS + max(width(letter, LETTERS) for letter in self.letters)

    @property
    def _top(self) -> int:
        return 2 * LETTERS

    @cached_property
    def _heights(self) -> tuple[int, int]:
        """Of the spectrogram and of the looks."""
        return BAND * self.track.frames_TF.shape[1], ROW * len(self.letters)

    @cached_property
    def shape(self) -> tuple[int, int]:
        across = self._left + self._across + 2 * LETTERS
        down = self._top + sum(self._heights) + 6 * LETTERS
        return max(across, width(self.title, self.small) + 2 * LETTERS), down

    def shapes(self, x: int = 0, y: int = 0) -> Iterator[Shape]:
        """Everything, its upper left corner at x and y."""
        left, top = x + self._left, y + self._top
        spectrum, looks = self._heights
        below = top + spectrum + LETTERS // 2
        yield Raster(left, top, self._spectrogram())
        yield Raster(left, below, self._looks())
        yield Word(left - LETTERS // 2, top + LETTERS // 2, "mel", self.small, "end", colour=FAINT)
        for row, letter in enumerate(self.letters):
            yield Word(left - LETTERS // 2, below + int((row + 0.5) * ROW), letter, LETTERS, "end")
        yield from self._words(left, y, top, below + looks)
        yield from self._seconds(left, below + looks)
        bottom = y + self.shape[1] - LETTERS
        yield Word(x + self.shape[0] // 2, bottom, self.title, self.small, "middle", colour=FAINT)

    def _words(self, left: int, above: int, top: int, bottom: int) -> Iterator[Shape]:
        free = 0
        for word in self.track.words:
            at = left + int(word.start * self._second)
            yield Box(at, top, 1, bottom - top, LINE)
            if at >= free:  # a label that would cover the one before is left out
                yield Word(at, above + LETTERS, word.text, LETTERS, colour=INK)
                free = at + width(word.text, LETTERS) + 4

    def _seconds(self, left: int, bottom: int) -> Iterator[Shape]:
        """A scale: as many marks as have room."""
        seconds = len(self.track.frames_TF) * self.track.step
        between = next(one for one in (0.2, 0.5, 1, 2, 5, 10, 20, 60) if one * self._second >= 48 or one == 60)
        for number in range(int(seconds / between) + 1):
            at = left + int(number * between * self._second)
            yield Box(at, bottom, 1, 4, FAINT)
            label = f"{self.track.start + number * between:.1f} s"
            yield Word(at, bottom + LETTERS, label, self.small, "middle", colour=FAINT)

    def _spectrogram(self) -> "Image":
        frames_TF = self.track.frames_TF
        low, high = np.percentile(frames_TF, [2, 99.5])
        shades = np.clip((frames_TF - low) / max(float(high - low), 1e-6), 0, 1)
        grey = (255 * (1 - shades)).astype(np.uint8).T[::-1]
        from PIL import Image

        return Image.fromarray(np.ascontiguousarray(grey)).convert("RGB").resize((self._across, self._heights[0]))

    def _looks(self) -> "Image":
        from PIL import Image

        shares = np.clip(self.weights_TS / np.maximum(self.weights_TS.max(), 1e-9), 0, 1)
        palette = np.array([[int(shade[i : i + 2], 16) for i in (1, 3, 5)] for shade in BLUES], dtype=np.float32)
        place = shares * (len(palette) - 1)
        under = np.minimum(place.astype(int), len(palette) - 2)
        part = (place - under)[..., None]
        colours = palette[under] * (1 - part) + palette[under + 1] * part
        # A position is as wide as the time that it stands for: the last one may reach past the end of the sound.
        wide = max(1, round(shares.shape[1] * self.track.look_step * self._second))
        image = Image.fromarray(colours.astype(np.uint8))
        image = image.resize((wide, self._heights[1]), Image.Resampling.NEAREST)
        return image.crop((0, 0, self._across, self._heights[1]))

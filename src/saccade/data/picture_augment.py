"""Pictures changed at random for training: shifts, mirrors, turns, blots, mixtures. Pure functions, each drawing from
the generator it is given.

Pictures are arrays [B, H, W, C]; a function takes some and gives as many back.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from saccade.config import Record


class PictureAugmentConfig(Record):
    """How training pictures are changed. By default they are not."""

    shift: int = Field(0, ge=0, le=1000)
    """Up to so many pixels to each side; what is missing is mirrored from the edge."""
    mirror: bool = False
    """Each picture is mirrored in every second epoch."""
    degrees: float = Field(0.0, ge=0, le=180)
    """Turned by up to so many degrees."""
    zoom: float = Field(0.0, ge=0, lt=1)
    """Made larger or smaller by up to this share."""
    light: float = Field(0.0, ge=0, lt=1)
    """Brightness and contrast changed by up to this share."""
    blot: int = Field(0, ge=0, le=1000)
    """Side of a grey square put somewhere (DeVries & Taylor 2017)."""
    mix: float = Field(0.0, ge=0, le=10)
    """Pictures are mixed in pairs, the share drawn from a beta distribution of this parameter (Zhang et al. 2018)."""


@dataclass(frozen=True)
class PictureAugmenter:
    """Changes the pictures of a batch. What becomes of them depends on the seed and on their numbers alone, so that a
    training that was interrupted goes on as if it had not been."""

    config: PictureAugmentConfig
    seed: int
    count: int
    """Pictures of the training part: number n is picture n modulo this, in epoch n divided by it."""

    def __call__(self, pixels_BHWC: np.ndarray, numbers_B: np.ndarray) -> np.ndarray:
        """float32 from 0 to 1."""
        config, random = self.config, self.random(numbers_B)
        if config.mirror:
            pixels_BHWC = mirrored(pixels_BHWC, self._mirrors(numbers_B))
        if config.shift:
            pixels_BHWC = shifted(pixels_BHWC, random, config.shift)
        values = pixels_BHWC.astype(np.float32) / np.float32(255)
        if config.degrees or config.zoom:
            values = turned(values, random, config.degrees, config.zoom)
        if config.light:
            values = lit(values, random, config.light)
        if config.blot:
            values = blotted(values, random, config.blot)
        return values

    def random(self, numbers_B: np.ndarray) -> np.random.Generator:
        """The generator of a batch."""
        return np.random.default_rng([self.seed, int(numbers_B[0]), int(numbers_B[-1]), len(numbers_B)])

    def _mirrors(self, numbers_B: np.ndarray) -> np.ndarray:
        """In turn, so that two epochs show both sides of every picture (Jordan 2024, 3.6)."""
        epochs, places = np.divmod(numbers_B, self.count)
        first: np.ndarray = np.random.default_rng([self.seed]).integers(0, 2, self.count)
        chosen: np.ndarray = (first[places] + epochs) % 2 == 1
        return chosen


def mirrored(pictures_BHWC: np.ndarray, chosen_B: np.ndarray) -> np.ndarray:
    """The chosen ones, left and right exchanged."""
    return np.where(chosen_B[:, None, None, None], pictures_BHWC[:, :, ::-1], pictures_BHWC)


def shifted(pictures_BHWC: np.ndarray, random: np.random.Generator, most: int) -> np.ndarray:
    """Each moved by up to `most` pixels down or up and across."""
    pictures, height, width = pictures_BHWC.shape[:3]
    most = min(most, height - 1, width - 1)
    wide = np.pad(pictures_BHWC, ((0, 0), (most, most), (most, most), (0, 0)), mode="reflect")
    down, across = random.integers(0, 2 * most + 1, (2, pictures))
    rows_BH, columns_BW = down[:, None] + np.arange(height), across[:, None] + np.arange(width)
    found: np.ndarray = wide[np.arange(pictures)[:, None, None], rows_BH[:, :, None], columns_BW[:, None, :]]
    return found


def turned(values_BHWC: np.ndarray, random: np.random.Generator, degrees: float, zoom: float) -> np.ndarray:
    """Each turned about its middle and made larger or smaller; outside of it is what stands at its edge."""
    pictures, height, width = values_BHWC.shape[:3]
    angle_B = np.deg2rad(random.uniform(-degrees, degrees, pictures))
    scale_B = np.exp(random.uniform(-zoom, zoom, pictures))
    cos_B, sin_B = np.cos(angle_B) / scale_B, np.sin(angle_B) / scale_B
    rows_H1 = (np.arange(height) - (height - 1) / 2)[:, None]
    columns_1W = (np.arange(width) - (width - 1) / 2)[None]
    at = (slice(None), None, None)
    from_rows = cos_B[at] * rows_H1 - sin_B[at] * columns_1W + (height - 1) / 2
    from_columns = sin_B[at] * rows_H1 + cos_B[at] * columns_1W + (width - 1) / 2
    return sampled(values_BHWC, from_rows, from_columns)


def sampled(values_BHWC: np.ndarray, rows_BHW: np.ndarray, columns_BHW: np.ndarray) -> np.ndarray:
    """The values between four pixels each; places outside count as the edge."""
    height, width = values_BHWC.shape[1:3]
    rows_BHW, columns_BHW = np.clip(rows_BHW, 0, height - 1), np.clip(columns_BHW, 0, width - 1)
    top, left = np.minimum(rows_BHW.astype(np.intp), height - 2), np.minimum(columns_BHW.astype(np.intp), width - 2)
    top, left = np.maximum(top, 0), np.maximum(left, 0)
    below, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    down = (rows_BHW - top).astype(np.float32)[..., None]
    across = (columns_BHW - left).astype(np.float32)[..., None]
    each = np.arange(len(values_BHWC))[:, None, None]
    upper = values_BHWC[each, top, left] * (1 - across) + values_BHWC[each, top, right] * across
    lower = values_BHWC[each, below, left] * (1 - across) + values_BHWC[each, below, right] * across
    found: np.ndarray = upper * (1 - down) + lower * down
    return found


def lit(values_BHWC: np.ndarray, random: np.random.Generator, share: float) -> np.ndarray:
    """Each with another brightness and another contrast."""
    contrast, light = random.uniform(-share, share, (2, len(values_BHWC), 1, 1, 1)).astype(np.float32)
    middle = values_BHWC.mean(axis=(1, 2, 3), keepdims=True)
    found: np.ndarray = np.clip((values_BHWC - middle) * (1 + contrast) + middle + light / 2, 0, 1)
    return found


def blotted(values_BHWC: np.ndarray, random: np.random.Generator, side: int) -> np.ndarray:
    """Each with a grey square somewhere, perhaps partly outside."""
    pictures, height, width = values_BHWC.shape[:3]
    row_B1, column_B1 = random.integers(0, height, (pictures, 1)), random.integers(0, width, (pictures, 1))
    inside_BH = np.abs(np.arange(height) - row_B1) * 2 < side
    inside_BW = np.abs(np.arange(width) - column_B1) * 2 < side
    return np.where((inside_BH[:, :, None] & inside_BW[:, None, :])[..., None], np.float32(0.5), values_BHWC)


@dataclass(frozen=True)
class Mixed:
    """Pictures mixed with those of the same batch in another order."""

    values_BHWC: np.ndarray
    order_B: np.ndarray
    """Which picture each was mixed with."""
    share: float
    """Of the picture itself; the rest is the other's."""


def mixed(values_BHWC: np.ndarray, random: np.random.Generator, parameter: float) -> Mixed:
    """All with one share: a batch of mixtures costs no more than the pictures themselves."""
    share, order_B = float(random.beta(parameter, parameter)), random.permutation(len(values_BHWC))
    share = max(share, 1 - share)
    both = np.float32(share) * values_BHWC + np.float32(1 - share) * values_BHWC[order_B]
    return Mixed(both, order_B, share)

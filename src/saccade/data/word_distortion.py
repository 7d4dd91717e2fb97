"""Pictures of words as cameras spoil them: blur, coarse pixels, noise, poor light, a little moved. Pure functions of
batches [B, H, W, 1], each drawing from the generator it is given."""

import numpy as np

from saccade.data.picture_augment import lit, sampled

Random = np.random.Generator


def distorted(pixels_BHW: np.ndarray, random: Random) -> np.ndarray:
    """float32 from 0 to 1, [B, H, W, 1], each picture in its own way."""
    values = pixels_BHW[..., None].astype(np.float32) / np.float32(255)
    values = moved(values, random, 0.06)
    values = blurred(values, random, 0.5)
    values = coarse(values, random, 0.3)
    values = lit(values, random, 0.4)
    values = inverted(values, random, 0.3)
    return noisy(values, random, 0.12)


def moved(values_BHWC: np.ndarray, random: Random, share: float) -> np.ndarray:
    """Shifted, stretched and sheared by up to a share of the height, and twice that across."""
    pictures, height, width = values_BHWC.shape[:3]
    scale, shift, shear = random.uniform(-share, share, (3, pictures, 2, 1, 1))
    rows_H1 = np.arange(height)[:, None] - (height - 1) / 2
    columns_1W = np.arange(width)[None] - (width - 1) / 2
    rows = rows_H1 * (1 + scale[:, 0]) + shear[:, 0] * columns_1W * height / width + shift[:, 0] * height
    columns = columns_1W * (1 + scale[:, 1] / 2) + 2 * shear[:, 1] * rows_H1 + shift[:, 1] * height
    return sampled(values_BHWC, rows + (height - 1) / 2, columns + (width - 1) / 2)


def blurred(values_BHWC: np.ndarray, random: Random, probability: float) -> np.ndarray:
    """A mean of neighbours along rows, columns or both, one to three times: out of focus, or moved."""
    chosen = random.random((2, len(values_BHWC))) < probability
    found = values_BHWC
    for axis, some in zip((1, 2), chosen, strict=True):
        share = np.where(some, random.uniform(0.2, 1.0, len(found)), 0).astype(np.float32)[:, None, None, None]
        for _ in range(int(random.integers(1, 4))):
            wide = np.pad(found, [(0, 0), *((1, 1) if axis == place else (0, 0) for place in (1, 2)), (0, 0)], "edge")
            size = found.shape[axis]
            mean = (wide.take(range(size), axis) + wide.take(range(2, size + 2), axis) + found) / np.float32(3)
            found = found + share * (mean - found)
    return found


def coarse(values_BHWC: np.ndarray, random: Random, probability: float) -> np.ndarray:
    """Every second pixel, across or both ways, stands for two: small pictures that were made larger."""
    chosen = (random.random(len(values_BHWC)) < probability)[:, None, None, None]
    down = int(random.integers(1, 3))
    small = values_BHWC[:, ::down, ::2]
    return np.where(chosen, small.repeat(down, axis=1).repeat(2, axis=2), values_BHWC)


def inverted(values_BHWC: np.ndarray, random: Random, probability: float) -> np.ndarray:
    """Dark and light exchanged."""
    return np.where((random.random(len(values_BHWC)) < probability)[:, None, None, None], 1 - values_BHWC, values_BHWC)


def noisy(values_BHWC: np.ndarray, random: Random, most: float) -> np.ndarray:
    """Grain of each picture's own strength; mostly little."""
    strength = (most * random.random(len(values_BHWC)) ** 3).astype(np.float32)[:, None, None, None]
    grain = random.standard_normal(values_BHWC.shape, dtype=np.float32)
    return np.asarray(np.clip(values_BHWC + strength * grain, 0, 1))

"""Drawn words made new whenever they are loaded: moved, out of focus, coarse, in other light, inverted, grainy.
Pure functions of batches [B, H, W, 1], each drawing from the generator it is given.

Cheap on purpose: the cores that train do this too. Each changes a share of the pictures only.
"""

import numpy as np

from saccade.data.picture_augment import lit

Random = np.random.Generator


def distorted(pixels_BHW: np.ndarray, random: Random) -> np.ndarray:
    """float32 from 0 to 1, [B, H, W, 1], each picture in its own way."""
    values = moved(pixels_BHW, random, 0.04).astype(np.float32)[..., None] / np.float32(255)
    values = blurred(values, random, 0.25)
    values = coarse(values, random, 0.1)
    values = lit(values, random, 0.4)
    values = inverted(values, random, 0.3)
    return noisy(values, random, 0.3, 0.06)


def moved(pixels_BHW: np.ndarray, random: Random, share: float) -> np.ndarray:
    """uint8 [B, H, W], shifted, stretched and sheared by up to a share of the height, and twice that across; what
    comes into the picture at an edge is like that edge."""
    from PIL import Image

    pictures, height, width = pixels_BHW.shape
    middle_y, middle_x, room = (height - 1) / 2, (width - 1) / 2, 8
    wide = np.pad(pixels_BHW, ((0, 0), (room, room), (room, room)), "edge")
    found = np.empty_like(pixels_BHW)
    for number, (scale, shift, shear) in enumerate(random.uniform(-share, share, (pictures, 3, 2))):
        across, down = 1 + scale[1] / 2, 1 + scale[0]
        lean_x, lean_y = 2 * shear[1], shear[0] * height / width
        # From where each pixel comes: (a x + b y + c, d x + e y + f).
        from_x = middle_x - across * middle_x - lean_x * middle_y + shift[1] * height + room
        from_y = middle_y - down * middle_y - lean_y * middle_x + shift[0] * height + room
        affine = (across, lean_x, from_x, lean_y, down, from_y)
        image = Image.fromarray(wide[number])
        found[number] = image.transform((width, height), Image.Transform.AFFINE, affine, Image.Resampling.BILINEAR)
    return found


def blurred(values_BHWC: np.ndarray, random: Random, probability: float) -> np.ndarray:
    """A mean of neighbours along rows, columns or both, one to three times: out of focus, or moved."""
    found = values_BHWC.copy()
    for axis in (1, 2):
        chosen = np.flatnonzero(random.random(len(found)) < probability)
        share = random.uniform(0.2, 1.0, (len(chosen), 1, 1, 1)).astype(np.float32)
        part, size = found[chosen], found.shape[axis]
        for _ in range(int(random.integers(1, 4))):
            wide = np.pad(part, [(0, 0), *((1, 1) if axis == place else (0, 0) for place in (1, 2)), (0, 0)], "edge")
            mean = (wide.take(range(size), axis) + wide.take(range(2, size + 2), axis) + part) / np.float32(3)
            part = part + share * (mean - part)
        found[chosen] = part
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


def noisy(values_BHWC: np.ndarray, random: Random, probability: float, most: float) -> np.ndarray:
    """Grain of each chosen picture's own strength."""
    chosen = np.flatnonzero(random.random(len(values_BHWC)) < probability)
    found = values_BHWC.copy()
    strength = random.uniform(0, most, (len(chosen), 1, 1, 1)).astype(np.float32)
    grain = random.standard_normal((len(chosen), *found.shape[1:]), dtype=np.float32)
    found[chosen] = np.clip(found[chosen] + strength * grain, 0, 1)
    return found

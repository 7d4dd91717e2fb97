"""A drawn word as a camera and a file leave it: far away, out of focus, moved, grainy, sharpened, compressed."""

import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

Random = np.random.Generator
TALLEST = 64
"""Pixels of a crop's height at most, as data sets of words have them."""


def photographed(values_HW: np.ndarray, random: Random) -> np.ndarray:
    """Grey values from 0 to 255 in, uint8 of any size out."""
    from PIL import Image, ImageFilter

    height, width = values_HW.shape
    image = Image.fromarray(np.clip(values_HW, 0, 255).astype(np.uint8))
    seen = _height(random)
    if seen < height:  # small in the picture: what is lost does not come back when it is made larger
        how = Image.Resampling.BOX if random.random() < 0.5 else Image.Resampling.BICUBIC
        image = image.resize((max(8, round(width * seen / height)), seen), how)
    blur = random.random()
    if blur < 0.45:  # of the height
        image = image.filter(ImageFilter.GaussianBlur(float(abs(random.normal(0, 0.024))) * image.height))
    elif blur < 0.55:
        along = float(random.uniform(0.01, 0.04)) * image.height
        image = image.filter(ImageFilter.BoxBlur((along, 0) if random.random() < 0.7 else (0, along)))
    grain = 14 * random.random() ** 3
    if grain > 1:
        noisy = np.asarray(image, dtype=np.float32) + grain * random.standard_normal(image.size[::-1], dtype=np.float32)
        image = Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))
    if random.random() < 0.2:  # as cameras do, with halos
        image = image.filter(ImageFilter.UnsharpMask(float(random.uniform(0.6, 2)), int(random.integers(60, 250)), 0))
    if random.random() < 0.5:
        image = _compressed(np.asarray(image), int(random.integers(12, 90)))
    found: np.ndarray = np.asarray(image, dtype=np.uint8)
    return found


def _height(random: Random) -> int:
    """Pixels of a word's height in the photograph."""
    kind = random.random()
    if kind < 0.6:
        return int(random.integers(28, TALLEST))
    return int(random.integers(15, 28)) if kind < 0.93 else int(random.integers(10, 15))


def _compressed(pixels_HW: np.ndarray, quality: int) -> "Image":
    from PIL import Image

    kept = io.BytesIO()
    Image.fromarray(pixels_HW).save(kept, "JPEG", quality=quality)
    return Image.open(kept)

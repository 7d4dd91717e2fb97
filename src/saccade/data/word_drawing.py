"""Pictures of words, drawn: fonts, sizes, slants, curves, perspective, outlines, shadows, textured grounds, other text
beside them, tight and loose crops, dark on light and light on dark.

What becomes of a picture depends on the seed and its number alone. What blurs it, noise and lighting, comes when it is
loaded (`word_distortion.py`), so that one drawing serves many epochs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from saccade.data.word_fonts import Font
from saccade.data.word_texts import WordTexts

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

HEIGHT, WIDTH = 32, 128
"""Pixels of a drawn word, as the reader sees it."""
SMALLEST, LARGEST = 22, 48
"""Sizes of the letters before the picture is scaled."""
LEAST_CONTRAST = 45
"""Between ink and ground, of 255."""


@dataclass(frozen=True)
class WordDrawer:
    """Draws picture number n; `clean` ones are black on white, straight, by themselves."""

    texts: WordTexts
    fonts: Sequence[Font]
    seed: int
    clean: bool = False

    def __call__(self, number: int) -> tuple[np.ndarray, str]:
        """uint8 [32, 128], and what is written there."""
        random = np.random.default_rng([self.seed, number])
        text = self.texts(random)
        font = _font(self.fonts[int(random.integers(len(self.fonts)))].path, int(random.integers(SMALLEST, LARGEST)))
        if self.clean:
            mask = _mask(text, font, 0, 0)
            left, top, right, bottom = mask.getbbox() or (0, 0, *mask.size)
            pixels = 255 - np.asarray(mask)[max(0, top - 3) : bottom + 3, max(0, left - 4) : right + 4]
        else:
            pixels = _drawn(text, font, self.texts, random)
        return scaled(pixels), text


def scaled(pixels_HW: np.ndarray) -> np.ndarray:
    """A crop of any size, as the reader sees it: stretched to its size."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels_HW)).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
    return np.asarray(image, dtype=np.uint8)


@lru_cache(2_000)
def _font(path: str, size: int) -> "FreeTypeFont":
    from PIL import ImageFont

    return ImageFont.truetype(path, size)


def _mask(text: str, font: "FreeTypeFont", spacing: int, stroke: int) -> "Image":
    """The letters, white on black, with room around them."""
    from PIL import Image, ImageDraw

    size = int(font.size)
    across = int(font.getlength(text)) + spacing * len(text)
    image = Image.new("L", (max(across, 1) + 2 * size, 3 * size))
    pen, x = ImageDraw.Draw(image), float(size)
    if not spacing:
        pen.text((x, 1.5 * size), text, fill=255, font=font, anchor="lm", stroke_width=stroke)
        return image
    for letter in text:
        pen.text((x, 1.5 * size), letter, fill=255, font=font, anchor="lm", stroke_width=stroke)
        x += font.getlength(letter) + spacing
    return image


def _drawn(text: str, font: "FreeTypeFont", texts: WordTexts, random: np.random.Generator) -> np.ndarray:
    size = int(font.size)
    spacing = int(random.integers(1, max(2, size // 4))) if random.random() < 0.2 else 0
    stroke = int(random.integers(1, 3)) if random.random() < 0.1 else 0
    mask = _mask(text, font, spacing, stroke)
    box = mask.getbbox() or (0, 0, *mask.size)
    around = _neighbours(mask, box, font, texts, random) if random.random() < 0.25 else mask
    word_HW, ink_HW = (np.asarray(one, dtype=np.uint8) for one in (mask, around))
    both = np.stack([word_HW, ink_HW], axis=-1)
    both = _curved(both, random) if random.random() < 0.2 else both
    both = _bent(both, random)
    rows, columns = (np.flatnonzero(both[..., 0].max(axis=axis) > 64) for axis in (1, 0))
    if not len(rows) or not len(columns):
        return 255 - word_HW
    crop = _crop((rows[0], rows[-1] + 1, columns[0], columns[-1] + 1), size, both.shape[:2], random)
    return _inked(both[crop][..., 1].astype(np.float32) / 255, random)


def _neighbours(
    mask: "Image", box: tuple[int, int, int, int], font: "FreeTypeFont", texts: WordTexts, random: np.random.Generator
) -> "Image":
    """Parts of the words beside and above, as tightly cut lines have them."""
    from PIL import ImageDraw

    image, size = mask.copy(), int(font.size)
    pen, gap = ImageDraw.Draw(image), size * float(random.uniform(0.25, 0.5))
    if random.random() < 0.5:
        pen.text((box[0] - gap, 1.5 * size), texts(random), fill=255, font=font, anchor="rm")
    if random.random() < 0.5:
        pen.text((box[2] + gap, 1.5 * size), texts(random), fill=255, font=font, anchor="lm")
    if random.random() < 0.3:
        line = 1.2 if random.random() < 0.5 else -1.2
        pen.text((size, (1.5 + line) * size), texts(random) + " " + texts(random), fill=255, font=font, anchor="lm")
    return image


def _curved(both_HWC: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Along an arc or a wave: each column is moved up or down."""
    height, width = both_HWC.shape[:2]
    phase, turns = random.uniform(0, 2 * np.pi), random.uniform(0.3, 1.0)
    depth = random.uniform(0.03, 0.12) * height
    moved = np.rint(depth * np.sin(phase + turns * np.pi * np.arange(width) / width)).astype(np.intp)
    rows_HW = np.clip(np.arange(height)[:, None] + moved, 0, height - 1)
    found: np.ndarray = both_HWC[rows_HW, np.arange(width)]
    return found


def _bent(both_HWC: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Turned, slanted and in perspective, by moving the four corners."""
    from PIL import Image

    if random.random() < 0.3:
        return both_HWC
    height, width = both_HWC.shape[:2]
    angle, slant = random.normal(0, 0.06), random.normal(0, 0.15)
    corners = np.array([[0, 0], [0, height], [width, height], [width, 0]], dtype=np.float64)
    middle = np.array([width / 2, height / 2])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shear = np.array([[1.0, 0.0], [slant, 1.0]])
    moved = (corners - middle) @ shear @ turn + middle
    moved += random.normal(0, 0.04, (4, 2)) * height
    image = Image.fromarray(np.concatenate([both_HWC, both_HWC[..., :1]], axis=-1))
    quad = tuple(moved.reshape(-1).tolist())
    turned = image.transform((width, height), Image.Transform.QUAD, quad, Image.Resampling.BILINEAR)
    return np.asarray(turned)[..., :2]


def _crop(
    box: tuple[int, int, int, int], size: int, whole: tuple[int, int], random: np.random.Generator
) -> tuple[slice, slice]:
    """Tight or loose: up to a third of the letters' size around the word, sometimes a little into it."""
    margins = random.uniform(-0.04, 0.3, 4) * random.random() * size
    top, bottom = box[0] - margins[0], box[1] + margins[1]
    left, right = box[2] - margins[2], box[3] + margins[3]
    rows = slice(max(0, int(top)), min(whole[0], max(int(bottom), int(top) + 4)))
    return rows, slice(max(0, int(left)), min(whole[1], max(int(right), int(left) + 4)))


def _inked(share_HW: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Letters of one grey on a ground of another, either the darker one; grounds have textures, letters shadows."""
    ground = float(random.uniform(0, 255))
    apart = random.uniform(LEAST_CONTRAST, 255)
    ink = ground + apart if random.random() < 0.5 else ground - apart
    if not -20 <= ink <= 275:
        ink = ground - apart if ink > 275 else ground + apart
    ink = float(np.clip(ink, 0, 255))
    if abs(ink - ground) < LEAST_CONTRAST:
        ink, ground = (255.0, 120.0) if ground < 128 else (0.0, 135.0)
    strength = random.random() ** 2 * 0.5 * abs(ink - ground)
    ground_HW = ground + strength * _texture(share_HW.shape, random)
    if random.random() < 0.2:  # a shadow, or an outline to one side
        down, across = random.integers(-3, 4, 2)
        shadow_HW = np.roll(share_HW, (int(down), int(across)), axis=(0, 1))
        grey = random.uniform(0, 255)
        ground_HW = ground_HW + shadow_HW * (grey - ground_HW) * random.uniform(0.3, 0.9)
    ink_HW = ink + 0.4 * strength * _texture(share_HW.shape, random)
    return np.clip(ground_HW + share_HW * (ink_HW - ground_HW), 0, 255).astype(np.uint8)


def _texture(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Smooth blots of several sizes, from -1 to 1, or a slope of light."""
    from PIL import Image

    height, width = shape[:2]
    if random.random() < 0.3:
        down, across = random.uniform(-1, 1, 2)
        slope: np.ndarray = down * np.linspace(-1, 1, height)[:, None] + across * np.linspace(-1, 1, width)
        return np.asarray(np.clip(slope, -1, 1))
    total: np.ndarray = np.zeros((height, width), np.float32)
    for _ in range(2):
        cells = int(random.integers(2, 24))
        blots = random.uniform(-1, 1, (max(2, cells * height // max(width, 1) + 1), cells)).astype(np.float32)
        total += np.asarray(Image.fromarray(blots).resize((width, height), Image.Resampling.BICUBIC))
    return np.asarray(np.clip(total, -1, 1))

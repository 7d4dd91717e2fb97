"""Pictures of words, drawn: what is written, in which font, how the letters stand, what is beside them, how tightly
they are cut out. `word_painting.py` colours them, `word_camera.py` takes the photograph.

What becomes of a picture depends on the seed and its number alone. Drawing is slow, so it is done once; what makes one
drawing look new in every epoch comes when it is loaded (`word_distortion.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from saccade.data.word_camera import photographed
from saccade.data.word_fonts import Font, by_family
from saccade.data.word_painting import painted
from saccade.data.word_texts import ALPHABET, WordTexts

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

Random = np.random.Generator
HEIGHT, WIDTH = 32, 128
"""Pixels of a drawn word, as the reader sees it."""
SMALLEST, LARGEST = 24, 48
"""Sizes of the letters before the picture is scaled."""
TRIES = 20
"""Texts are drawn in a font that has all their characters, if so many fonts taken at random have one among them."""
LAST_PIXEL = 64
"""Shades from which on a pixel belongs to the word."""


@dataclass(frozen=True)
class WordDrawer:
    """Draws picture number n; `clean` ones are black on white, straight, by themselves."""

    texts: WordTexts
    fonts: Sequence[Font]
    seed: int
    clean: bool = False

    @cached_property
    def _families(self) -> list[list[Font]]:
        return by_family(self.fonts)

    def __call__(self, number: int) -> tuple[np.ndarray, str]:
        """uint8 [32, 128], and what is written there."""
        random = np.random.default_rng([self.seed, number])
        text = self.texts(random)
        font = self._font_for(text, random)
        text = text.upper() if font.capitals else text
        kind = _opened(font.path, int(random.integers(SMALLEST, LARGEST)))
        if self.clean:
            mask = _mask(text, kind)
            left, top, right, bottom = mask.getbbox() or (0, 0, *mask.size)
            return scaled(255 - np.asarray(mask)[max(0, top - 3) : bottom + 3, max(0, left - 4) : right + 4]), text
        return scaled(photographed(painted(_cut_out(text, kind, self.texts, random), random), random)), text

    def _font_for(self, text: str, random: Random) -> Font:
        """One that has all characters of the text. The family comes first, or one of twenty weights would be drawn
        twenty times as often."""
        for _ in range(TRIES):
            family = self._families[int(random.integers(len(self._families)))]
            font = family[int(random.integers(len(family)))]
            if _characters(font.path) >= set(text):
                break
        return font


def scaled(pixels_HW: np.ndarray) -> np.ndarray:
    """A crop of any size, as the reader sees it: stretched to its size."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels_HW)).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
    return np.asarray(image, dtype=np.uint8)


@lru_cache(4_000)
def _opened(path: str, size: int) -> "FreeTypeFont":
    from PIL import ImageFont

    return ImageFont.truetype(path, size)


@lru_cache(2_000)
def _characters(path: str) -> frozenset[str]:
    """Those that a font has: the others have no ink, or that of a character which no font has."""
    font = _opened(path, 12)
    missing = ("", _shape(font, "\uffff"))
    return frozenset(letter for letter in ALPHABET if _shape(font, letter) not in missing)


def _shape(font: "FreeTypeFont", letter: str) -> str:
    mask = font.getmask(letter)
    return bytes(mask).hex() if mask.getbbox() else ""


def _mask(text: str, font: "FreeTypeFont", random: Random | None = None) -> "Image":
    """The letters, white on black, with room around them; with a generator some are wide apart, bold or uneven."""
    from PIL import Image, ImageDraw

    size, spacing, stroke, uneven = int(font.size), 0.0, 0, 0.0
    if random is not None:
        spacing = float(random.uniform(-0.04, 0.35)) * size if random.random() < 0.2 else 0.0
        stroke = int(random.integers(1, 3)) if random.random() < 0.1 else 0
        uneven = float(random.uniform(0.02, 0.08)) * size if random.random() < 0.08 else 0.0
    across = int(font.getlength(text) + spacing * len(text))
    image = Image.new("L", (max(across, 1) + 2 * size, 3 * size))
    pen, x, y = ImageDraw.Draw(image), float(size), 1.5 * size
    if not spacing and not uneven:
        pen.text((x, y), text, fill=255, font=font, anchor="lm", stroke_width=stroke)
        return image
    for letter in text:
        lift = float(random.normal(0, uneven)) if random is not None and uneven else 0.0
        pen.text((x, y + lift), letter, fill=255, font=font, anchor="lm", stroke_width=stroke)
        x += font.getlength(letter) + spacing
    return image


def _cut_out(text: str, font: "FreeTypeFont", texts: WordTexts, random: Random) -> np.ndarray:
    """How much of each pixel is ink, from 0 to 1: the word, bent, with what is beside it, as tightly cut as it may
    be."""
    size, mask = int(font.size), _mask(text, font, random)
    box = mask.getbbox()
    if box is None:
        return np.asarray(mask, dtype=np.float32) / np.float32(255)
    around = _beside(mask, box, font, texts, random) if random.random() < 0.25 else None
    images = [mask] if around is None else [mask, around]
    # The whole line's height, as some crops have it, or that of these letters alone.
    top, bottom = (box[1], box[3]) if random.random() < 0.75 else (int(0.95 * size), int(2.05 * size))
    layers = [np.asarray(one, dtype=np.float32) for one in images]
    layers = _curved(layers, random) if random.random() < 0.18 else layers
    if random.random() < 0.65:
        layers = _bent(layers, (box[2] - box[0]) / (box[3] - box[1]), random)
    rows, columns = (np.flatnonzero(layers[0].max(axis=axis) > LAST_PIXEL) for axis in (1, 0))
    if not len(rows) or not len(columns):
        return layers[0] / np.float32(255)
    found = (min(rows[0], top), max(rows[-1] + 1, bottom), columns[0], columns[-1] + 1)
    share: np.ndarray = layers[-1][_crop(found, layers[0].shape, random)] / np.float32(255)
    return share


def _beside(
    mask: "Image", box: tuple[int, int, int, int], font: "FreeTypeFont", texts: WordTexts, random: Random
) -> "Image":
    """Parts of the words beside, above and below, lines under it and frames around it, as signs have them."""
    from PIL import ImageDraw

    image, size = mask.copy(), int(font.size)
    pen, gap = ImageDraw.Draw(image), size * float(random.uniform(0.25, 0.5))
    if random.random() < 0.15:
        _frame(pen, box, size, random)
        return image
    if random.random() < 0.4:
        pen.text((box[0] - gap, 1.5 * size), texts(random), fill=255, font=font, anchor="rm")
    if random.random() < 0.4:
        pen.text((box[2] + gap, 1.5 * size), texts(random), fill=255, font=font, anchor="lm")
    if random.random() < 0.5:
        line = float(random.uniform(1.0, 1.3)) * (1 if random.random() < 0.5 else -1)
        pen.text((size, (1.5 + line) * size), f"{texts(random)} {texts(random)}", fill=255, font=font, anchor="lm")
    return image


def _frame(pen: "ImageDraw", box: tuple[int, int, int, int], size: int, random: Random) -> None:
    room, thick = int(size * random.uniform(0.1, 0.25)), int(random.integers(1, 4))
    left, top, right, bottom = box[0] - room, box[1] - room, box[2] + room, box[3] + room
    if random.random() < 0.5:
        pen.rectangle((left, top, right, bottom), outline=255, width=thick)
    else:
        pen.line((left, bottom, right, bottom), fill=255, width=thick)


def _curved(layers: list[np.ndarray], random: Random) -> list[np.ndarray]:
    """Along an arc or a wave: each column is moved up or down."""
    height, width = layers[0].shape
    phase, turns = random.uniform(0, 2 * np.pi), random.uniform(0.3, 1.0)
    depth = random.uniform(0.03, 0.1) * height
    shift_W = depth * np.sin(phase + turns * np.pi * np.arange(width) / width)
    rows_HW = np.clip(np.arange(height)[:, None] + shift_W, 0, height - 1.001)
    upper_HW, columns = rows_HW.astype(np.intp), np.arange(width)
    share = (rows_HW - upper_HW).astype(np.float32)
    return [one[upper_HW, columns] * (1 - share) + one[upper_HW + 1, columns] * share for one in layers]


def _bent(layers: list[np.ndarray], wide: float, random: Random) -> list[np.ndarray]:
    """Turned, slanted and in perspective, by moving the four corners. A word that is `wide` times as wide as high is
    turned the less: what counts is how far its end rises."""
    from PIL import Image

    height, width = layers[0].shape
    angle, slant = random.normal(0, 0.14) / max(wide, 1.5), random.normal(0, 0.13)
    corners = np.array([[0, 0], [0, height], [width, height], [width, 0]], dtype=np.float64)
    middle = np.array([width / 2, height / 2])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shear = np.array([[1.0, 0.0], [slant, 1.0]])
    moved = (corners - middle) @ shear @ turn + middle
    moved += random.normal(0, 0.035, (4, 2)) * height
    quad = tuple(moved.reshape(-1).tolist())

    def turned(layer: np.ndarray) -> np.ndarray:
        image = Image.fromarray(layer.astype(np.uint8))
        bent = image.transform((width, height), Image.Transform.QUAD, quad, Image.Resampling.BILINEAR)
        return np.asarray(bent, dtype=np.float32)

    return [turned(layer) for layer in layers]


def _crop(box: tuple[int, int, int, int], whole: tuple[int, ...], random: Random) -> tuple[slice, slice]:
    """Tight or loose: up to a quarter of the word's height around it, sometimes a little into it."""
    margins = random.uniform(-0.03, 0.28, 4) * random.random() * (box[1] - box[0])
    top, bottom = box[0] - margins[0], box[1] + margins[1]
    left, right = box[2] - margins[2], box[3] + margins[3]
    rows = slice(max(0, int(top)), min(whole[0], max(round(bottom), int(top) + 4)))
    return rows, slice(max(0, int(left)), min(whole[1], max(round(right), int(left) + 4)))

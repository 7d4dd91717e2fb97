"""Draws scenes: glyphs of an emoji font, rendered once, pasted on a ground with some texture."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saccade.data.scene_layout import SIDE, Scene
from saccade.data.scene_things import GROUNDS, THINGS
from saccade.data.word_fonts import FOLDERS, VARIABLE
from saccade.errors import MissingData

if TYPE_CHECKING:
    from PIL.Image import Image

FONT = "NotoColorEmoji.ttf"
BITMAP = 109
"""The one size of the font's bitmaps."""
NOISE = np.random.default_rng(0).normal(0, 8, (2 * SIDE, 2 * SIDE)).astype(np.int16)


def find_emoji_font() -> Path:
    """Debian's fonts-noto-color-emoji, or the same file in $SACCADE_FONTS."""
    searched = [*filter(None, [os.environ.get(VARIABLE)]), *FOLDERS]
    for folder in searched:
        for path in sorted(Path(folder).rglob(FONT)):
            return path
    raise MissingData(
        f"no {FONT} in {', '.join(searched)}: scenes are drawn with it; install Debian's fonts-noto-color-emoji, or "
        f"set {VARIABLE} to its folder"
    )


@cache
def emoji_glyphs(path: Path) -> "tuple[Image, ...]":
    """Each thing, cut to what is drawn of it, in a square."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(str(path), BITMAP)
    found = []
    for thing in THINGS:
        sheet = Image.new("RGBA", (160, 160))
        ImageDraw.Draw(sheet).text((10, 10), thing.glyph, font=font, embedded_color=True)
        found.append(squared(sheet))
    return tuple(found)


def squared(drawn: "Image") -> "Image":
    """What is drawn of a picture, in the middle of a square."""
    from PIL import Image

    inked = drawn.crop(drawn.getbbox())
    side = max(inked.size)
    whole = Image.new("RGBA", (side, side))
    whole.paste(inked, ((side - inked.width) // 2, (side - inked.height) // 2))
    return whole


@dataclass(frozen=True)
class SceneDrawer:
    """Draws scenes with glyphs, a square picture for each kind of thing."""

    glyphs: "Sequence[Image]" = field(repr=False)
    _scaled: "dict[tuple[int, int, bool], Image]" = field(default_factory=dict, repr=False)

    @classmethod
    def with_emoji(cls) -> "SceneDrawer":
        return cls(emoji_glyphs(find_emoji_font()))

    def __call__(self, scene: Scene) -> np.ndarray:
        """uint8 [SIDE, SIDE, 3]"""
        random = np.random.default_rng(scene.texture)
        picture = _ground(scene.ground, random)
        for one in scene.things:
            glyph = self._glyph(one.kind, round(one.side), one.mirrored)
            picture.paste(glyph, (round(one.left), round(one.top)), glyph)
        light, (down, across) = random.uniform(0.85, 1.1), random.integers(0, SIDE, 2)
        picture = picture.point([min(255, int(light * value)) for value in range(256)] * 3)
        # The same noise at another place: drawing it anew would take longer than all else.
        grain = NOISE[down : down + SIDE, across : across + SIDE, None] // random.integers(1, 8)
        return np.clip(np.asarray(picture, dtype=np.int16) + grain, 0, 255).astype(np.uint8)

    def _glyph(self, kind: int, side: int, mirrored: bool) -> "Image":
        from PIL import Image, ImageOps

        key = (kind, side, mirrored)
        if key not in self._scaled:
            glyph = self.glyphs[kind].resize((side, side), Image.Resampling.LANCZOS)
            self._scaled[key] = ImageOps.mirror(glyph) if mirrored else glyph
        return self._scaled[key]


def _ground(number: int, random: np.random.Generator) -> "Image":
    """Its colour, lighter and darker in soft patches."""
    from PIL import Image

    coarse = Image.fromarray(random.integers(0, 256, (6, 6), dtype=np.uint8))
    patches = coarse.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    colour, strength = np.array(GROUNDS[number].colour) + random.uniform(-10, 10, 3), random.uniform(4, 18)
    tones = np.clip(colour[:, None] + strength * (np.arange(256) - 128) / 128, 0, 255).astype(np.uint8)
    return Image.merge("RGB", [patches.point(tone.tolist()) for tone in tones])

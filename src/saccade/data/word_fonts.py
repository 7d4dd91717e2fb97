"""Fonts found on this machine, by family: some families are held out to test with."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saccade.errors import MissingData

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

VARIABLE = "SACCADE_FONTS"
"""Names a folder of fonts beside the system's own."""
FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts")
LETTERS = "AQEGM0459&"
"""A font that draws some of these alike has no Latin letters."""
PAIRS = (("A", "a"), ("E", "e"), ("G", "g"), ("R", "r"))
"""A font that draws both of each alike, in any size, has capitals only."""
ALIKE = 0.9
"""Share of the pixels that such a pair has in common."""
SYMBOLS = frozenset({"D050000L", "Standard Symbols PS", "Symbola", "OpenSymbol", "Linux Biolinum Keyboard O"})
"""Families that draw other signs in the places of letters."""


@dataclass(frozen=True)
class Font:
    """A font file and its family."""

    path: str
    family: str
    capitals: bool = False
    """Small letters are drawn as capitals."""


def find_fonts(folders: Sequence[str] = ()) -> list[Font]:
    """Every font with Latin letters, in the order of families and files. Fonts are known by their names, not by where
    they are, so that another machine with the same packages draws the same pictures."""
    from PIL import ImageFont

    searched = [*folders, *filter(None, [os.environ.get(VARIABLE)]), *FOLDERS]
    files = {path.name: path for folder in reversed(searched) for path in Path(folder).rglob("*.[ot]tf")}
    found = []
    for path in files.values():
        try:
            font = ImageFont.truetype(str(path), 24)
            masks = {bytes(font.getmask(letter)) for letter in LETTERS}
            family = str(font.getname()[0])
            if len(masks) == len(LETTERS) and family not in SYMBOLS:
                found.append(Font(str(path), family, _has_capitals_only(font)))
        except OSError:
            continue
    if not found:
        raise MissingData(f"no fonts in {', '.join(searched)}: install some, such as fonts-lato, or set {VARIABLE}")
    return sorted(found, key=lambda font: (font.family, Path(font.path).name))


def split_families(fonts: Sequence[Font], held_out: Sequence[str]) -> tuple[list[Font], list[Font]]:
    """Fonts to train on, and those of the held-out families."""
    names = {name.casefold() for name in held_out}
    held = [font for font in fonts if font.family.casefold() in names]
    return [font for font in fonts if font not in held], held


def by_family(fonts: Sequence[Font]) -> list[list[Font]]:
    """The fonts of each family: one with twenty weights is to be drawn no more often than one with a single file."""
    families: dict[str, list[Font]] = {}
    for font in fonts:
        families.setdefault(font.family, []).append(font)
    return list(families.values())


def _has_capitals_only(font: "FreeTypeFont") -> bool:
    from PIL import Image

    def shape(letter: str) -> np.ndarray:
        mask = font.getmask(letter)
        image = Image.frombytes("L", mask.size, bytes(mask))
        return np.asarray(image.crop(image.getbbox()).resize((16, 16))) > 127

    try:
        return all(np.mean(shape(one) == shape(other)) >= ALIKE for one, other in PAIRS)
    except (ValueError, SystemError):  # a letter without ink
        return False

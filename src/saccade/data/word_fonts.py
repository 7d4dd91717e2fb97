"""Fonts found on this machine, by family: some families are held out to test with."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade.errors import MissingData

VARIABLE = "SACCADE_FONTS"
"""Names a folder of fonts beside the system's own."""
FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts")
LETTERS = "AQaegm0459&"
"""A font that draws some of these alike has no Latin letters."""


@dataclass(frozen=True)
class Font:
    """A font file and its family."""

    path: str
    family: str


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
        except OSError:
            continue
        if len(masks) == len(LETTERS):
            found.append(Font(str(path), str(font.getname()[0])))
    if not found:
        raise MissingData(f"no fonts in {', '.join(searched)}: install some, such as fonts-lato, or set {VARIABLE}")
    return sorted(found, key=lambda font: (font.family, Path(font.path).name))


def split_families(fonts: Sequence[Font], held_out: Sequence[str]) -> tuple[list[Font], list[Font]]:
    """Fonts to train on, and those of the held-out families."""
    names = {name.casefold() for name in held_out}
    held = [font for font in fonts if font.family.casefold() in names]
    return [font for font in fonts if font not in held], held

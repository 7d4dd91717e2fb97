"""Which font draws a label: DejaVu Sans, which comes along and knows most alphabets, or one of this machine's."""

import os
import sys
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

VARIABLE = "SACCADE_FONT"
"""Names a font file for what DejaVu Sans cannot draw."""
OTHERS = (
    *("NotoSansCJK-Regular.ttc", "NotoSansCJKjp-Regular.otf", "NotoSansJP-Regular.otf", "NotoSansSC-Regular.otf"),
    *("SourceHanSans-Regular.ttc", "DroidSansFallbackFull.ttf", "wqy-microhei.ttc", "wqy-zenhei.ttc", "ipag.ttf"),
    *("Hiragino Sans GB.ttc", "ヒラギノ角ゴシック W3.ttc", "Arial Unicode.ttf", "AppleSDGothicNeo.ttc"),
    *("msgothic.ttc", "YuGothM.ttc", "msyh.ttc", "malgun.ttf", "seguisym.ttf", "Nirmala.ttf"),
)
"""Files of fonts with Chinese, Japanese, Korean or Indian letters, as systems name them."""
REPLACEMENT = "□"
NO_LETTER = "\U0010ffff"


def width(text: str, size: int) -> int:
    """In pixels."""
    font, shown = lettering(text, size)
    return int(font.getlength(shown))


def lettering(text: str, size: int) -> "tuple[FreeTypeFont, str]":
    """A font for the whole of a label, and the label as it can draw it."""
    if not _missing(None, text):
        return _font(None, size), text
    other = _other(text)
    missing = _missing(other, text)
    if missing:
        _complain("".join(sorted(missing)))
    return _font(other, size), "".join(REPLACEMENT if letter in missing else letter for letter in text)


def _missing(path: str | None, text: str) -> set[str]:
    """The letters that a font cannot draw."""
    return {letter for letter in text if ord(letter) > 0x24F and not _draws(path, letter)}


@cache
def _draws(path: str | None, letter: str) -> bool:
    """Fonts draw all they do not know alike."""
    font = _font(path, 24)
    return bytes(font.getmask(letter)) != bytes(font.getmask(NO_LETTER))


@cache
def _other(text: str) -> str | None:
    """The font on this machine that lacks the fewest letters of a text; None for our own."""
    fonts = _others()
    return min((None, *fonts), key=lambda path: len(_missing(path, text))) if fonts else None


@cache
def _others() -> tuple[str, ...]:
    from PIL import ImageFont

    found = []
    # Pillow looks for a file name in the system's font folders.
    for name in (*filter(None, [os.environ.get(VARIABLE)]), *OTHERS):
        try:
            found.append(str(ImageFont.truetype(name, 24).path))
        except OSError:
            continue
    return tuple(found)


@cache
def _font(path: str | None, size: int) -> "FreeTypeFont":
    from PIL import ImageFont

    if path is not None:
        return ImageFont.truetype(path, size)
    with as_file(files(__package__) / "fonts" / "DejaVuSans.ttf") as own:
        return ImageFont.truetype(str(own), size)


_complained: set[str] = set()


def _complain(letters: str) -> None:
    """Once, in one line."""
    if not _complained:
        more = f" and {len(letters) - 8} others" if len(letters) > 8 else ""
        print(
            f"saccade: no font here draws {letters[:8]}{more}, shown as {REPLACEMENT}: draw an SVG, which keeps the "
            f"text, or set {VARIABLE} to a font file such as NotoSansCJK-Regular.ttc",
            file=sys.stderr,
        )
    _complained.update(letters)

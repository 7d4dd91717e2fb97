"""An episode as pictures: before each action what was seen, lit where it was looked at, and the words that were."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saccade.errors import UserError, WrongUse
from saccade.folder import replace_file
from saccade.look.lettering import lettering, width
from saccade.look.picture import MOVING
from saccade.runtime.contract import Floats

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

SIDE = 168
"""Pixels of what was seen, along its longer side."""
LARGE = 280
"""The same in a moving picture."""
LETTERS, GAP = 14, 10
ACROSS = 6
"""Frames beside each other."""
MOST = 60
"""Frames of a strip; a moving picture has all."""
DIMMEST = 0.3
"""Brightness of a field that nobody looks at."""
GLOW = 70
"""What a black field gains where all look at it."""
EDGE = (255, 214, 10)
"""Around the field with the largest weight."""
WORD = (52, 101, 164)
"""Behind the word with the largest weight."""
FRAME_TIME, LAST_TIME = 500, 2000
"""Milliseconds."""


@dataclass(frozen=True)
class Film:
    """What an episode was, step by step; all lists have one entry for each action."""

    words: Sequence[str]
    actions: Sequence[str]
    seen: Sequence[np.ndarray]
    """Pictures, uint8."""
    word_weights: Sequence[Floats]
    field_weights: Sequence[Floats]
    """[rows, columns]"""
    whole: Sequence[np.ndarray] = ()
    """Pictures of the whole world, for people; may be empty."""
    outcome: str = ""
    """How it ended."""


def check_film(file: Path) -> None:
    """Refuse a name that cannot be drawn before any work is done for it."""
    if file.suffix.lower() not in (".png", MOVING):
        raise WrongUse(f"{file}: an episode is drawn as .png, a filmstrip, or as {MOVING}")
    if not file.parent.is_dir():
        raise UserError(f"{file}: there is no folder {file.parent}")


def draw_film(film: Film, file: Path) -> Path:
    """Write a filmstrip (.png) or a moving picture (.gif)."""
    check_film(file)
    if not film.actions:
        raise UserError(f"{file}: nothing was done, so there is nothing to draw")
    replace_file(file, moving(film) if file.suffix.lower() == MOVING else strip(film))
    return file


def strip(film: Film) -> bytes:
    """Frames in rows, as a PNG."""
    from PIL import Image

    frames = list(islice(_frames(film, SIDE, beside=False), MOST))
    columns = min(ACROSS, len(frames))
    rows = -(-len(frames) // columns)
    across, down = frames[0].width + GAP, max(frame.height for frame in frames) + GAP
    sheet = Image.new("RGB", (columns * across + GAP, rows * down + GAP), "white")
    for number, frame in enumerate(frames):
        sheet.paste(frame, (GAP + number % columns * across, GAP + number // columns * down))
    content = BytesIO()
    sheet.save(content, "PNG")
    return content.getvalue()


def moving(film: Film) -> bytes:
    """A frame for each action, the whole world beside what was seen, as a GIF."""
    frames = list(_frames(film, LARGE, beside=True))
    content = BytesIO()
    times = [FRAME_TIME] * (len(frames) - 1) + [LAST_TIME]
    frames[0].save(content, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0)
    return content.getvalue()


def _frames(film: Film, side: int, *, beside: bool) -> Iterator["Image"]:
    from PIL import Image, ImageDraw

    height, across = film.seen[0].shape[:2]
    scale = side / max(height, across)
    size = (round(across * scale), round(height * scale))
    left = side if beside and film.whole else 0
    broad = size[0] + (left + GAP if left else 0)
    lines = _lines(film.words, broad)
    top = 2 * LETTERS
    for number, action in enumerate(film.actions):
        page = Image.new("RGB", (broad, top + size[1] + GAP + len(lines) * (LETTERS + 8)), "white")
        pen = ImageDraw.Draw(page)
        last = film.outcome if number == len(film.actions) - 1 else ""
        _write(pen, broad // 2, LETTERS, f"{number + 1}  {action}" + (f"  ({last})" if last else ""))
        if left:
            page.paste(_fitted(film.whole[number], side), (0, top))
        page.paste(_lit(film.seen[number], film.field_weights[number], size), (broad - size[0], top))
        _write_words(pen, film.words, lines, film.word_weights[number], top + size[1] + GAP)
        yield page


def _lit(seen_HWC: np.ndarray, weights_HW: Floats, size: tuple[int, int]) -> "Image":
    """The picture, field by field as bright as it was looked at, and an edge around the brightest one."""
    from PIL import Image, ImageDraw

    share_HW = weights_HW / max(float(weights_HW.max()), 1e-9)
    light = np.asarray(Image.fromarray(share_HW.astype(np.float32)).resize(size, Image.Resampling.NEAREST))[..., None]
    pixels = np.asarray(_coloured(seen_HWC).resize(size, Image.Resampling.NEAREST), dtype=np.float32)
    lit = pixels * (DIMMEST + (1 - DIMMEST) * light) + GLOW * light * (1 - pixels / 255)
    drawn = Image.fromarray(np.clip(lit, 0, 255).astype(np.uint8))
    row, column = divmod(int(weights_HW.argmax()), weights_HW.shape[1])
    high, broad = size[1] / weights_HW.shape[0], size[0] / weights_HW.shape[1]
    box = (column * broad, row * high, (column + 1) * broad - 1, (row + 1) * high - 1)
    ImageDraw.Draw(drawn).rectangle(box, outline=EDGE, width=max(2, size[0] // 80))
    return drawn


def _fitted(picture_HWC: np.ndarray, side: int) -> "Image":
    from PIL import Image

    picture = _coloured(picture_HWC)
    scale = side / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    page = Image.new("RGB", (side, side), "white")
    page.paste(picture.resize(size, Image.Resampling.BILINEAR), ((side - size[0]) // 2, (side - size[1]) // 2))
    return page


def _coloured(picture_HWC: np.ndarray) -> "Image":
    """Of what has other channels than red, green and blue, the mean of all is shown."""
    from PIL import Image

    if picture_HWC.shape[2] != 3:
        picture_HWC = np.repeat(picture_HWC.mean(axis=2, keepdims=True).astype(np.uint8), 3, axis=2)
    return Image.fromarray(picture_HWC)


def _lines(words: Sequence[str], broad: int) -> list[list[int]]:
    """Numbers of the words of each line."""
    lines: list[list[int]] = [[]]
    used = 0
    for number, word in enumerate(words):
        needed = width(word, LETTERS) + GAP
        if lines[-1] and used + needed > broad:
            lines.append([])
            used = 0
        lines[-1].append(number)
        used += needed
    return lines


def _write_words(
    pen: "ImageDraw", words: Sequence[str], lines: Sequence[Sequence[int]], weights_S: Floats, top: int
) -> None:
    """The darker behind a word, the more it was looked at."""
    shares = weights_S / max(float(weights_S.max()), 1e-9)
    for row, line in enumerate(lines):
        x, y = 0, top + row * (LETTERS + 8)
        for number in line:
            font, shown = lettering(words[number], LETTERS)
            long, share = int(font.getlength(shown)), float(shares[number])
            back = tuple(round(255 + share * (part - 255)) for part in WORD)
            pen.rectangle((x, y, x + long + 6, y + LETTERS + 5), fill=back)
            pen.text((x + 3, y + 2), shown, fill="white" if share > 0.6 else "black", font=font)
            x += long + GAP


def _write(pen: "ImageDraw", x: int, y: int, text: str) -> None:
    font, shown = lettering(text, LETTERS)
    pen.text((x, y), shown, fill="black", font=font, anchor="mm")

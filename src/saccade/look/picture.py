"""Alignments as pictures: one heat-map, or several side by side where an answer has several parts or memories."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.errors import UserError, WrongUse
from saccade.folder import replace_file
from saccade.look.alignment import Alignment
from saccade.look.heatmap import Heatmap
from saccade.look.lettering import width
from saccade.look.overlay import PicturePanels
from saccade.look.shapes import FAINT, Shape, Word, to_png, to_svg
from saccade.look.soundtrack import SoundSheet
from saccade.sources.opener import open_picture

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".png", ".svg")
PAGE = ".html"
"""Of looks at a recording; of others `look/page/` makes one."""
MOVING = ".gif"
"""Of looks at a picture, a frame for each word."""
WIDEST_ROW = 1_600
"""Pixels of heat-maps that stand side by side."""
MOST_PIXELS = 100_000_000
"""Of a PNG: 300 MB while it is drawn."""


def check_suffix(path: Path, more: Sequence[str] = ()) -> None:
    """Refuse a picture that cannot be drawn before any work is done for it; `more` are other kinds that can be."""
    if path.suffix.lower() not in (*SUFFIXES, MOVING, *more):
        page = "; `saccade look MODEL INPUT -o FILE.html` writes a page" if path.suffix.lower() == PAGE else ""
        raise WrongUse(
            f"{path}: pictures are {' or '.join((*SUFFIXES, *more))}; a bare --look draws in the terminal{page}"
        )
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")


def draw(alignments: Sequence[Alignment], path: Path, image: "str | Path | Image | None" = None) -> Path:
    """Source words from left to right, target words downwards; darker is more. Looks at a picture are drawn into the
    `image`, if it is given."""
    check_suffix(path, (PAGE,) if any(one.sound is not None for one in alignments) else ())
    opened = None if image is None else open_picture(image)[1].convert("RGB")
    if path.suffix.lower() == MOVING:
        one = next((one for one in alignments if one.grid is not None), None)
        if one is None or one.grid is None or opened is None:
            raise WrongUse(f"{path}: a GIF shows looks at a picture; draw {' or '.join(SUFFIXES)}")
        replace_file(path, PicturePanels(one, one.grid, opened).moving())
        return path
    match path.suffix.lower():
        case ".svg":
            replace_file(path, svg(alignments, opened))
        case _ if path.suffix.lower() == PAGE:
            replace_file(path, page(alignments, opened))
        case _:
            replace_file(path, png(alignments, opened))
    return path


def write_shapes(shapes: Sequence[Shape], across: int, down: int, path: Path) -> Path:
    """Any sheet of shapes into a PNG or SVG file."""
    check_suffix(path)
    if path.suffix.lower() == MOVING:
        raise WrongUse(f"{path}: a GIF shows looks at a picture; draw {' or '.join(SUFFIXES)}")
    if path.suffix.lower() == ".svg":
        replace_file(path, to_svg(shapes, across, down))
        return path
    if across * down > MOST_PIXELS:
        raise UserError(f"a picture of {across:,} × {down:,} pixels is too large; draw an SVG, or a shorter text")
    replace_file(path, to_png(shapes, across, down))
    return path


def svg(alignments: Sequence[Alignment], image: "Image | None" = None) -> bytes:
    return to_svg(*_arrange(alignments, image))


def png(alignments: Sequence[Alignment], image: "Image | None" = None) -> bytes:
    shapes, across, down = _arrange(alignments, image)
    if across * down > MOST_PIXELS:
        raise UserError(f"a picture of {across:,} × {down:,} pixels is too large; draw an SVG, or a shorter text")
    return to_png(shapes, across, down)


def page(alignments: Sequence[Alignment], image: "Image | None" = None) -> bytes:
    """A page that needs nothing else: the drawing as SVG, whose words can be searched and copied."""
    drawn = svg(alignments, image).decode().partition("\n")[2]
    title = escape(" ".join(alignments[0].target)[:80])
    head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
    return f'{head}\n<body style="margin:1rem;overflow:auto">\n{drawn}</body></html>\n'.encode()


def html(alignments: Sequence[Alignment], caption: str) -> str:
    """A figure for a page, which needs nothing else."""
    picture = b64encode(png(alignments)).decode()
    return f'<figure><img src="data:image/png;base64,{picture}"/><figcaption>{escape(caption)}</figcaption></figure>'


def _sounds(sheets: Sequence[SoundSheet]) -> tuple[list[Shape], int, int]:
    """Stretch below stretch."""
    shapes: list[Shape] = []
    across = down = 0
    for sheet in sheets:
        shapes += sheet.shapes(0, down)
        across, down = max(across, sheet.shape[0]), down + sheet.shape[1]
    return shapes, across, down


def _arrange(alignments: Sequence[Alignment], image: "Image | None") -> tuple[list[Shape], int, int]:
    """The shapes of a sheet, its width and its height. All heat-maps share a scale, and a title that is the same."""
    if any(one.sound is not None for one in alignments):
        return _sounds([one.sound for one in alignments if one.sound is not None])
    texts = [one for one in alignments if one.grid is None]
    shared = len(alignments) > 1 and len({one.title for one in texts}) == 1 and len(texts) == len(alignments)
    top, cell = max((one.top for one in texts), default=1.0), 40 if len(alignments) > 1 else 56
    maps = [
        Heatmap(one, top, cell, titled=not shared) if one.grid is None else PicturePanels(one, one.grid, image)
        for one in alignments
    ]
    shapes: list[Shape] = []
    x = y = across = row_height = 0
    for one in maps:
        if x and x + one.shape[0] > WIDEST_ROW:
            x, y, row_height = 0, y + row_height, 0
        shapes += one.shapes(x, y)
        x, row_height = x + one.shape[0], max(row_height, one.shape[1])
        across = max(across, x)
    down = y + row_height
    if shared:
        title, size = alignments[0].title, maps[0].small
        across, down = max(across, width(title, size) + 2 * size), down + 2 * size
        shapes.append(Word(across // 2, down - size - size // 2, title, size, "middle", colour=FAINT))
    return shapes, across, down

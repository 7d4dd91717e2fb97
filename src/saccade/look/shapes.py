"""Boxes, lines and words on a sheet, written as PNG or SVG. Drawn with Pillow: importing a plotting library would take
longer than answering does."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Literal

from saccade.look.lettering import lettering

if TYPE_CHECKING:
    from PIL import Image

INK, FAINT, LINE = "#000000", "#555555", "#dddddd"
BLUES = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")
"""From 0 to the top of the scale (ColorBrewer, by Cynthia Brewer)."""
Anchor = Literal["start", "middle", "end"]
_PILLOW_ANCHORS = {"start": "lm", "middle": "mm", "end": "rm"}
FAMILIES = "DejaVu Sans, Noto Sans CJK JP, Noto Sans, sans-serif"


@dataclass(frozen=True)
class Box:
    """A filled rectangle, or, without width or height, a line."""

    left: int
    top: int
    width: int
    height: int
    colour: str


@dataclass(frozen=True)
class Word:
    """A label; a slanted one rises to the right from its place."""

    x: int
    y: int
    text: str
    size: int
    anchor: Anchor = "start"
    slanted: bool = False
    colour: str = INK


@dataclass(frozen=True)
class Raster:
    """A small picture."""

    left: int
    top: int
    picture: "Image.Image"

    def png(self) -> bytes:
        content = BytesIO()
        self.picture.save(content, "PNG")
        return content.getvalue()


@dataclass(frozen=True)
class Curve:
    """Points joined by straight lines."""

    points: tuple[tuple[int, int], ...]
    colour: str
    thick: int


Shape = Box | Word | Raster | Curve


def to_png(shapes: Sequence[Shape], width: int, height: int) -> bytes:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(picture)
    for shape in shapes:
        if isinstance(shape, Box):
            right, bottom = shape.left + max(1, shape.width) - 1, shape.top + max(1, shape.height) - 1
            pen.rectangle((shape.left, shape.top, right, bottom), fill=shape.colour)
        elif isinstance(shape, Raster):
            picture.paste(shape.picture, (shape.left, shape.top))
        elif isinstance(shape, Curve):
            _trace(picture, shape)
        elif shape.slanted:
            _slant(picture, shape)
        else:
            font, text = lettering(shape.text, shape.size)
            anchor = _PILLOW_ANCHORS[shape.anchor]
            pen.text((shape.x, shape.y), text, fill=shape.colour, font=font, anchor=anchor)
    content = BytesIO()
    picture.save(content, "PNG")
    return content.getvalue()


def _slant(picture: "Image.Image", word: Word) -> None:
    from PIL import Image, ImageDraw

    # Twice as large and then reduced: slanted edges stay smooth.
    font, text = lettering(word.text, 2 * word.size)
    length, height = int(font.getlength(text)) + 4, 3 * word.size
    label = Image.new("L", (length, height), 0)
    ImageDraw.Draw(label).text((0, height // 2), text, fill=255, font=font, anchor="lm")
    label = label.rotate(45, expand=True, resample=Image.Resampling.BICUBIC)
    label = label.resize((max(1, label.width // 2), max(1, label.height // 2)), Image.Resampling.LANCZOS)
    corner = int(height / 2 * 0.36)
    place = (word.x - corner, word.y + word.size // 2 - label.height + corner // 3)
    picture.paste(Image.new("RGB", label.size, word.colour), place, label)


def _trace(picture: "Image.Image", curve: Curve) -> None:
    from PIL import Image, ImageDraw

    # Four times as large and then reduced: Pillow's lines have steps.
    left, top = (min(point[axis] for point in curve.points) - curve.thick for axis in (0, 1))
    right, bottom = (max(point[axis] for point in curve.points) + curve.thick + 1 for axis in (0, 1))
    line = Image.new("L", (4 * (right - left), 4 * (bottom - top)), 0)
    points = [(4 * (x - left) + 2, 4 * (y - top) + 2) for x, y in curve.points]
    ImageDraw.Draw(line).line(points, fill=255, width=4 * curve.thick, joint="curve")
    line = line.resize((right - left, bottom - top), Image.Resampling.BOX)
    picture.paste(Image.new("RGB", line.size, curve.colour), (left, top), line)


def to_svg(shapes: Sequence[Shape], width: int, height: int) -> bytes:
    """Text stays text: it can be searched and copied, and the reader's fonts draw it."""
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="{FAMILIES}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for shape in shapes:
        if isinstance(shape, Box):
            place = f'x="{shape.left}" y="{shape.top}" width="{max(1, shape.width)}" height="{max(1, shape.height)}"'
            parts.append(f'<rect {place} fill="{shape.colour}"/>')
            continue
        if isinstance(shape, Raster):
            place = f'x="{shape.left}" y="{shape.top}" width="{shape.picture.width}" height="{shape.picture.height}"'
            parts.append(f'<image {place} href="data:image/png;base64,{b64encode(shape.png()).decode()}"/>')
            continue
        if isinstance(shape, Curve):
            points = " ".join(f"{x},{y}" for x, y in shape.points)
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{shape.colour}" stroke-width="{shape.thick}"/>'
            )
            continue
        turned = f'transform="rotate(-45 {shape.x} {shape.y})"' if shape.slanted else 'dominant-baseline="central"'
        place = f'x="{shape.x}" y="{shape.y}" font-size="{shape.size}" text-anchor="{shape.anchor}"'
        parts.append(f'<text {place} fill="{shape.colour}" {turned}>{escape(shape.text)}</text>')
    return "\n".join([*parts, "</svg>", ""]).encode()

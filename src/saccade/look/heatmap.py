"""A heat-map with words at its edges, as PNG or SVG. Drawn with Pillow: importing a plotting library would take longer
than answering does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib.resources import as_file, files
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageFont import FreeTypeFont

BLUES = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")
"""From 0 to 1 (ColorBrewer, by Cynthia Brewer)."""
INK, FAINT, LINE = "#000000", "#555555", "#dddddd"
LARGEST = 6_000
"""Pixels of the cells in one direction, at most: long texts have smaller cells."""
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Heatmap:
    """Weights from 0 to 1, words above the columns and before the rows, a title below, a scale of colours beside it."""

    weights_TS: np.ndarray
    columns: Sequence[str]
    rows: Sequence[str]
    title: str

    @cached_property
    def cell(self) -> int:
        """Side of a cell in pixels."""
        return max(4, min(56, LARGEST // max(len(self.rows), len(self.columns))))

    @cached_property
    def size(self) -> int:
        """Of the letters."""
        return max(4, int(self.cell * 0.38))

    @cached_property
    def font(self) -> "FreeTypeFont":
        return _font(self.size)

    @cached_property
    def left(self) -> int:
        return self.size + max(self._width(word) for word in self.rows) + self.size // 2

    @cached_property
    def top(self) -> int:
        """Slanted words need 1/√2 of their length, and their height."""
        return int(0.72 * max(self._width(word) for word in self.columns)) + 2 * self.size

    @cached_property
    def right(self) -> int:
        """The last words lean out of the picture; the scale of colours stands there anyway."""
        lean = max(
            int(0.72 * self._width(word)) - (len(self.columns) - place) * self.cell
            for place, word in enumerate(self.columns)
        )
        return max(lean + self.size, 4 * self.size + self._width("0.0"))

    @property
    def shape(self) -> tuple[int, int]:
        """Width and height of the picture."""
        height, width = (self.cell * count for count in self.weights_TS.shape)
        return max(
            self.left + width + self.right, self._width(self.title) + 2 * self.size
        ), self.top + height + self.below

    @property
    def below(self) -> int:
        return 2 * self.size

    def _width(self, text: str) -> int:
        return int(self.font.getlength(text))

    def boxes(self) -> "list[tuple[int, int, int, int, str]]":
        """Every cell, and every step of the scale: left, top, right, bottom, colour."""
        found = []
        for row, weights in enumerate(self.weights_TS.tolist()):
            for column, weight in enumerate(weights):
                x, y = self.left + column * self.cell, self.top + row * self.cell
                found.append((x, y, x + self.cell, y + self.cell, colour(weight)))
        x, y, height = self._scale()
        for step in range(height):
            found.append((x, y + step, x + self.size, y + step + 1, colour(1 - step / max(1, height - 1))))
        return found

    def ticks(self) -> list[tuple[int, int, str]]:
        """Where the numbers of the scale stand."""
        x, y, height = self._scale()
        return [(x + int(1.4 * self.size), y + int((1 - tick) * (height - 1)), f"{tick:.1f}") for tick in TICKS]

    def _scale(self) -> tuple[int, int, int]:
        height = self.cell * len(self.rows)
        return self.left + self.cell * len(self.columns) + self.size, self.top, height

    def png(self) -> bytes:
        from PIL import Image, ImageDraw

        picture = Image.new("RGB", self.shape, "white")
        pen = ImageDraw.Draw(picture)
        for x, y, right, bottom, shade in self.boxes():
            pen.rectangle((x, y, right - 1, bottom - 1), fill=shade)
        self._grid(lambda box: pen.line(box, fill=LINE, width=1))
        for row, word in enumerate(self.rows):
            at = (self.left - self.size // 2, self.top + int((row + 0.5) * self.cell))
            pen.text(at, word, fill=INK, font=self.font, anchor="rm")
        for column, word in enumerate(self.columns):
            self._slant(picture, word, self.left + int((column + 0.5) * self.cell))
        small = _font(max(4, int(0.8 * self.size)))
        for x, y, text in self.ticks():
            pen.text((x, y), text, fill=INK, font=small, anchor="lm")
        pen.text((self._middle, self.shape[1] - self.size), self.title, fill=FAINT, font=small, anchor="mm")
        content = BytesIO()
        picture.save(content, "PNG")
        return content.getvalue()

    def _slant(self, picture: "Image.Image", word: str, x: int) -> None:
        """A word that rises to the right, its beginning above the middle of its column."""
        from PIL import Image, ImageDraw

        length, height = self._width(word) + 2, int(1.5 * self.size)
        # Twice as large and then reduced: slanted edges stay smooth.
        label = Image.new("L", (2 * length, 2 * height), 0)
        ImageDraw.Draw(label).text((0, height), word, fill=255, font=_font(2 * self.size), anchor="lm")
        label = label.rotate(45, expand=True, resample=Image.Resampling.BICUBIC)
        label = label.resize((label.width // 2, label.height // 2), Image.Resampling.LANCZOS)
        corner = int(height * 0.36)
        picture.paste(Image.new("RGB", label.size, INK), (x - corner, self.top - label.height + corner // 3), label)

    @property
    def _middle(self) -> int:
        return max(self.left + self.cell * len(self.columns) // 2, self._width(self.title) // 2 + self.size)

    def _grid(self, line: "Callable[[tuple[int, int, int, int]], object]") -> None:
        height, width = (self.cell * count for count in self.weights_TS.shape)
        for column in range(1, len(self.columns)):
            x = self.left + column * self.cell
            line((x, self.top, x, self.top + height - 1))
        for row in range(1, len(self.rows)):
            y = self.top + row * self.cell
            line((self.left, y, self.left + width - 1, y))

    def svg(self) -> bytes:
        width, height = self.shape
        parts = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="DejaVu Sans, sans-serif" font-size="{self.size}">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
        ]
        for x, y, right, bottom, shade in self.boxes():
            parts.append(f'<rect x="{x}" y="{y}" width="{right - x}" height="{bottom - y}" fill="{shade}"/>')
        self._grid(
            lambda box: parts.append(
                f'<line x1="{box[0]}" y1="{box[1]}" x2="{box[2]}" y2="{box[3]}" stroke="{LINE}" stroke-width="1"/>'
            )
        )
        middle = 'dominant-baseline="central"'
        for row, word in enumerate(self.rows):
            x, y = self.left - self.size // 2, self.top + int((row + 0.5) * self.cell)
            parts.append(f'<text x="{x}" y="{y}" text-anchor="end" {middle}>{escape(word)}</text>')
        for column, word in enumerate(self.columns):
            x, y = self.left + int((column + 0.5) * self.cell), self.top - self.size // 2
            parts.append(f'<text x="{x}" y="{y}" transform="rotate(-45 {x} {y})">{escape(word)}</text>')
        small = f'font-size="{max(4, int(0.8 * self.size))}"'
        parts += [f'<text x="{x}" y="{y}" {small} {middle}>{text}</text>' for x, y, text in self.ticks()]
        place = f'x="{self._middle}" y="{height - self.size}" text-anchor="middle"'
        parts.append(f'<text {place} {small} {middle} fill="{FAINT}">{escape(self.title)}</text>')
        return "\n".join([*parts, "</svg>", ""]).encode()


def colour(weight: float) -> str:
    """Between the two nearest of the blues."""
    place = min(1.0, max(0.0, weight)) * (len(BLUES) - 1)
    below = min(int(place), len(BLUES) - 2)
    one, other = ([int(shade[i : i + 2], 16) for i in (1, 3, 5)] for shade in BLUES[below : below + 2])
    mixed = (round(a + (b - a) * (place - below)) for a, b in zip(one, other, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _font(size: int) -> "FreeTypeFont":
    """DejaVu Sans, which knows most alphabets."""
    from PIL import ImageFont

    with as_file(files(__package__) / "fonts" / "DejaVuSans.ttf") as path:
        return ImageFont.truetype(str(path), size)

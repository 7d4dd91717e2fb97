"""Drawn shapes: small grey pictures of a shape on the left or on the right, and tables of them."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SHAPES = ("square", "cross", "stripe")
SIDES = ("left", "right")
SIZE = 16


def draw(shape: str, side: str, random: np.random.Generator) -> Image.Image:
    """One shape of some height and brightness on a dark ground."""
    image = Image.fromarray(random.integers(0, 40, (SIZE, SIZE), dtype=np.uint8))
    pen, ink = ImageDraw.Draw(image), int(random.integers(150, 256))
    left, top = 8 if side == "right" else 0, 4 * int(random.integers(0, 3))
    if shape == "square":
        pen.rectangle((left + 1, top + 1, left + 6, top + 6), fill=ink)
    elif shape == "cross":
        pen.line((left, top + 3, left + 7, top + 3), fill=ink, width=2)
        pen.line((left + 3, top, left + 3, top + 7), fill=ink, width=2)
    else:
        pen.line((left + 3, 0, left + 3, SIZE), fill=ink, width=2)
    return image


def write_drawings(folder: Path, count: int, *, seed: int = 0) -> list[tuple[Path, str, str]]:
    """Picture files in a folder, each with its shape and its side."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for number in range(count):
        shape, side = SHAPES[number % 3], SIDES[number // 3 % 2]
        path = folder / f"{number:04}.png"
        draw(shape, side, random).save(path)
        found.append((path, shape, side))
    return found


def write_table(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")
    return path

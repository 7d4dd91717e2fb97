"""Explanations as pictures: words coloured, a picture lit, a sound over time; curves of deletion and insertion."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saccade.axes import Grid, Time
from saccade.explaining.covers import PictureCover, SoundCover
from saccade.explaining.curves import Curves
from saccade.look.heatmap import colour
from saccade.look.lettering import width
from saccade.look.picture import write_shapes
from saccade.look.plot import Plot, Series
from saccade.look.shapes import FAINT, Box, Raster, Shape, Word
from saccade.runtime.contract import Floats

if TYPE_CHECKING:
    from PIL.Image import Image

    from saccade.explaining.explain import Explanation

REDS = ("#fff5f0", "#fcbba1", "#fb6a4a", "#cb181d", "#67000d")
"""Of what speaks against the output (ColorBrewer, by Cynthia Brewer)."""
SIZE, EDGE, ACROSS = 18, 24, 980
NUMBERED = 80
"""Words below which each has its number."""
PANEL = 320
WAVE = 90


def draw_explanation(explanation: "Explanation", path: Path, image: "Image | None" = None) -> Path:
    """Into a PNG or SVG file; `image`: the picture in more detail than the model saw it."""
    shapes, across, down = explanation_shapes(explanation, image)
    return write_shapes(shapes, across, down, path)


def explanation_shapes(explanation: "Explanation", image: "Image | None" = None) -> tuple[list[Shape], int, int]:
    """The shapes, their width and height."""
    cover, values = explanation.subject.cover, explanation.values_P
    if isinstance(cover, PictureCover) and isinstance(explanation.axis, Grid):
        body, across, down = _picture(cover, values, explanation.axis, image)
    elif isinstance(cover, SoundCover) and isinstance(explanation.axis, Time):
        body, across, down = _sound(cover, values, explanation.axis)
    else:
        body, across, down = _words(explanation.labels, values)
    lines = captions(explanation)
    shapes = list(body)
    for number, line in enumerate(lines):
        shapes.append(Word(EDGE, down + SIZE + number * (SIZE + 6), line, SIZE - 4, colour=FAINT))
    widest = max(width(line, SIZE - 4) for line in lines) + 2 * EDGE
    return shapes, max(across, widest), down + len(lines) * (SIZE + 6) + EDGE


def captions(explanation: "Explanation") -> list[str]:
    """What is seen, in words."""
    what = f"{explanation.method}: what each part of the input adds to “{_short(explanation.text)}”"
    if explanation.method in ("attention", "rollout"):
        what = f"{explanation.method}: how much “{_short(explanation.text)}” looked at each part of the input"
    elif explanation.method == "random":
        what = "random values, which know nothing"
    found = [what]
    if explanation.errors_P is not None:
        error = float(np.median(explanation.errors_P))
        found.append(f"{explanation.masks:,} random masks; standard error of a value {error:.2g}")
    return found


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 70 else plain[:69] + "…"


def shade(share: float) -> str:
    """Blue for what adds, red for what takes away."""
    if share >= 0:
        return colour(0.75 * share)
    place = min(1.0, -share) * (len(REDS) - 1)
    below = min(int(place), len(REDS) - 2)
    one, other = ([int(part[i : i + 2], 16) for i in (1, 3, 5)] for part in REDS[below : below + 2])
    mixed = (round(a + (b - a) * (place - below)) for a, b in zip(one, other, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _words(labels: Sequence[str], values_P: Floats) -> tuple[list[Shape], int, int]:
    """Words in their order, line after line, each on its colour."""
    top = float(np.abs(values_P).max()) or 1.0
    size = SIZE if len(labels) <= NUMBERED else 12
    numbered = len(labels) <= NUMBERED
    step = size * (4 if numbered else 2)
    shapes: list[Shape] = []
    x, y = EDGE, EDGE
    for label, value in zip(labels, values_P.tolist(), strict=True):
        number = f"{value:.2f}".replace("0.", ".", 1)
        across = max(width(label, size), width(number, size - 6) if numbered else 0) + size // 2
        if x > EDGE and x + across > ACROSS:
            x, y = EDGE, y + step
        share = value / top
        shapes.append(Box(x, y, across, int(1.7 * size), shade(share)))
        dark = "#ffffff" if abs(share) > 0.75 else "#000000"
        shapes.append(Word(x + across // 2, y + int(0.85 * size), label, size, "middle", colour=dark))
        if numbered:
            shapes.append(Word(x + across // 2, y + int(2.3 * size), number, size - 6, "middle", colour=FAINT))
        x += across + 4
    return shapes, ACROSS + 2 * EDGE, y + step


def _picture(cover: PictureCover, values_P: Floats, grid: Grid, image: "Image | None") -> tuple[list[Shape], int, int]:
    """The picture, the picture lit where it matters, and the values alone."""
    from PIL import Image

    shown = cover.pixels if cover.pixels.ndim == 2 else cover.pixels[..., :3]
    if shown.ndim == 3 and shown.shape[2] != 3:
        shown = shown[..., 0]
    if shown.dtype != np.uint8:
        low, high = float(shown.min()), float(shown.max())
        shown = ((shown - low) / max(high - low, 1e-9) * 255).astype(np.uint8)
    plain = Image.fromarray(shown).convert("RGB") if image is None else image.convert("RGB")
    scale = PANEL / max(grid.height, grid.width)
    size = max(1, round(grid.width * scale)), max(1, round(grid.height * scale))
    plain = plain.resize(size, Image.Resampling.BICUBIC)
    values_HW = values_P.reshape(grid.height, grid.width)
    low, high = float(values_HW.min()), float(values_HW.max())
    shares = Image.fromarray(((values_HW - low) / max(high - low, 1e-12)).astype(np.float32))
    light = np.asarray(shares.resize(size, Image.Resampling.BICUBIC)).clip(0, 1)[..., None]
    lit = Image.fromarray((np.asarray(plain) * (0.15 + 0.85 * light)).astype(np.uint8))
    palette = np.array(
        [[int(shade(step / 63)[i : i + 2], 16) for i in (1, 3, 5)] for step in range(64)], dtype=np.uint8
    )
    map_ = Image.fromarray(palette[(light[..., 0] * 63).astype(int)])
    shapes: list[Shape] = []
    for number, (one, title) in enumerate(zip((plain, lit, map_), ("input", "what matters", "values"), strict=True)):
        left = EDGE + number * (size[0] + EDGE)
        shapes += [Word(left + size[0] // 2, EDGE, title, SIZE, "middle"), Raster(left, EDGE + SIZE, one)]
    below = EDGE + SIZE + size[1] + SIZE
    text = f"from {low:.2g} to {high:.2g}"
    shapes.append(Word(EDGE + 2 * (size[0] + EDGE) + size[0] // 2, below, text, SIZE - 4, "middle", colour=FAINT))
    return shapes, EDGE + 3 * (size[0] + EDGE), below + SIZE


def _sound(cover: SoundCover, values_P: Floats, axis: Time) -> tuple[list[Shape], int, int]:
    """The loudness of every moment, on the colour of its value."""
    top = float(np.abs(values_P).max()) or 1.0
    padded = np.pad(np.abs(cover.samples.astype(np.float32)), (0, axis.count * cover.length - len(cover.samples)))
    loud_P = padded.reshape(axis.count, cover.length).max(axis=1)
    loud_P = loud_P / max(float(loud_P.max()), 1e-9)
    each = max(1, ACROSS // axis.count)
    shapes: list[Shape] = []
    for place, (value, loud) in enumerate(zip(values_P.tolist(), loud_P.tolist(), strict=True)):
        left, high = EDGE + place * each, max(1, int(loud * WAVE))
        shapes.append(Box(left, EDGE, each, 2 * WAVE, shade(value / top)))
        shapes.append(Box(left, EDGE + WAVE - high // 2, max(1, each - 1), high, "#333333"))
    for mark in range(int(axis.count * axis.seconds) + 1):
        at = EDGE + round(mark / axis.seconds) * each
        shapes.append(Word(at, EDGE + 2 * WAVE + SIZE // 2, f"{mark} s", SIZE - 6, colour=FAINT))
    return shapes, 2 * EDGE + axis.count * each, EDGE + 2 * WAVE + 2 * SIZE


def draw_curves(found: "dict[str, Curves]", path: Path) -> Path:
    """Deletion and insertion, a line for each method."""
    shapes, across, down = curve_shapes(found)
    return write_shapes(shapes, across, down, path)


def curve_shapes(found: "dict[str, Curves]") -> tuple[list[Shape], int, int]:
    plots = []
    for title, name in (("covered, most important first", "deletion"), ("shown, most important first", "insertion")):
        lines = [
            Series(f"{method} {getattr(one, name):.3f}", one.shares_K, getattr(one, f"{name}_K"))
            for method, one in found.items()
        ]
        plots.append(Plot(f"{name}: {title}", "share of the input", "score", lines, "behind each name the area"))
    shapes: list[Shape] = []
    x = 0
    for plot in plots:
        shapes += plot.shapes(x, 0)
        x += plot.shape[0]
    return shapes, x, max(plot.shape[1] for plot in plots)

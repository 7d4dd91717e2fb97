"""The path of the looks over a picture, letter after letter: its saccades, as arrows, and as a moving picture."""

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from saccade.axes import Grid
from saccade.look.lettering import lettering
from saccade.runtime.contract import Floats

if TYPE_CHECKING:
    from PIL.Image import Image

Point = tuple[float, float]
DIM = 0.55
"""Brightness of the picture under the path."""
COLOURS = ((66, 133, 244), (234, 67, 53))
"""Of the first arrow and of the last."""
FRAME_SIDE = 480
"""Pixels of the longer side of a moving picture."""
FRAME_TIME = 600
"""Milliseconds."""
TWICE = 3
"""Arrows are drawn larger and then reduced, so that their edges are smooth."""


def attended_points(weights_TS: Floats, grid: Grid, size: tuple[int, int]) -> list[Point]:
    """Where each look rests, in pixels of a picture of this size: the mean place of the fields around its largest
    weight."""
    points = []
    for weights_S in weights_TS:
        weights_HW = weights_S.reshape(grid.height, grid.width)
        row, column = divmod(int(weights_HW.argmax()), grid.width)
        rows, columns = slice(max(0, row - 1), row + 2), slice(max(0, column - 1), column + 2)
        near = weights_HW[rows, columns] / max(float(weights_HW[rows, columns].sum()), 1e-9)
        y = float((near.sum(axis=1) * (np.arange(grid.height)[rows] + 0.5)).sum()) / grid.height
        x = float((near.sum(axis=0) * (np.arange(grid.width)[columns] + 0.5)).sum()) / grid.width
        points.append((x * size[0], y * size[1]))
    return points


def path_picture(picture: "Image", points: Sequence[Point], size: tuple[int, int]) -> "Image":
    """The picture, dimmed, with an arrow from each point to the next; the colour goes from blue to red."""
    from PIL import Image, ImageDraw

    large = (size[0] * TWICE, size[1] * TWICE)
    pixels = np.asarray(picture.convert("RGB").resize(large, Image.Resampling.LANCZOS), dtype=np.float32)
    drawn = Image.fromarray((pixels * DIM).astype(np.uint8))
    pen, radius = ImageDraw.Draw(drawn), max(4, large[0] // 70)
    scaled = [(x * TWICE, y * TWICE) for x, y in points]
    for number, (one, other) in enumerate(pairwise(scaled)):
        colour = _between(number / max(1, len(scaled) - 2))
        pen.line([one, other], fill=colour, width=max(3, radius // 2))
        _arrow_head(pen, one, other, radius, colour)
    for number, (x, y) in enumerate(scaled):
        colour = _between(number / max(1, len(scaled) - 1))
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour, outline="white", width=radius // 4)
    return drawn.resize(size, Image.Resampling.LANCZOS)


def moving_picture(frames: Sequence["Image"], titles: Sequence[str]) -> bytes:
    """A GIF: a frame for each letter, the letter above it."""
    from PIL import Image, ImageDraw

    width, height = frames[0].size
    room = max(24, height // 6)
    pages = []
    for frame, title in zip(frames, titles, strict=True):
        page = Image.new("RGB", (width, height + room), "white")
        page.paste(frame, (0, room))
        font, text = lettering(title, int(room * 0.7))
        ImageDraw.Draw(page).text((width // 2, room // 2), text, fill="black", font=font, anchor="mm")
        pages.append(page)
    content = BytesIO()
    pages[0].save(content, "GIF", save_all=True, append_images=pages[1:], duration=FRAME_TIME, loop=0)
    return content.getvalue()


def _between(share: float) -> tuple[int, int, int]:
    first, last = (np.array(colour) for colour in COLOURS)
    red, green, blue = (first + (last - first) * share).astype(int).tolist()
    return red, green, blue


def _arrow_head(pen: "object", one: Point, other: Point, radius: int, colour: tuple[int, int, int]) -> None:
    along = np.array(other) - np.array(one)
    length = float(np.linalg.norm(along))
    if length < 3 * radius:
        return
    step = along / length
    across = np.array([-step[1], step[0]])
    tip = np.array(other) - 1.1 * radius * step
    corners = [tip, tip - 2 * radius * step + radius * across, tip - 2 * radius * step - radius * across]
    pen.polygon([tuple(corner.tolist()) for corner in corners], fill=colour)  # type: ignore[attr-defined]

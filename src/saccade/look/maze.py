"""A way through a maze, drawn into its map."""

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.errors import UserError, WrongUse
from saccade.folder import replace_file
from saccade.look.lettering import lettering
from saccade.look.saccades import COLOURS
from saccade.worlds.maps import STEPS, Maze, Pose

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

HALL = 76
"""Pixels from one place to the next."""
MARGIN = 60
LETTERS = 13
MOST_PLACES = 200
"""From one side of a drawn map to the other."""
FLOOR_COLOURS = {
    "blue": "#7ea6d9",
    "brick": "#b5654a",
    "concrete": "#bdbdbd",
    "flower": "#e8a5c8",
    "grass": "#86b874",
    "gravel": "#8a8378",
    "wood": "#c79a62",
    "yellow": "#ecd25c",
}
WALL_COLOURS = {"butterfly": "#8e44ad", "fish": "#1f77b4", "tower": "#333333"}


def draw_walk(maze: Maze, path: Sequence[Pose], file: Path) -> Path:
    """Write a PNG of the map with the path in it: from the blue ring to the red arrow."""
    if file.suffix.lower() != ".png":
        raise WrongUse(f"{file}: a path is drawn into a .png")
    if not file.parent.is_dir():
        raise UserError(f"{file}: there is no folder {file.parent}")
    content = BytesIO()
    walk_picture(maze, path).save(content, "PNG")
    replace_file(file, content.getvalue())
    return file


def walk_picture(maze: Maze, path: Sequence[Pose]) -> "Image":
    """Halls in the colours of their floors, edged in those of their walls; things by name; below, the legend."""
    from PIL import Image, ImageDraw

    left, right, top, bottom = maze.bounds
    if max(right - left, bottom - top) > MOST_PLACES:
        raise UserError(
            f"the map {maze.name} has {right - left + 1} x {bottom - top + 1} places: too large to be drawn"
        )
    width, legend = max(560, (right - left) * HALL + 2 * MARGIN), 3 * LETTERS * 2
    picture = Image.new("RGB", (width, (bottom - top) * HALL + 2 * MARGIN + legend), "white")
    pen = ImageDraw.Draw(picture)

    def at(x: int, y: int) -> tuple[int, int]:
        return MARGIN + (x - left) * HALL, MARGIN + (y - top) * HALL

    for (one, other), hall in maze.halls.items():
        if one < other:
            pen.line([at(*one), at(*other)], fill=WALL_COLOURS[hall.wall], width=22)
            pen.line([at(*one), at(*other)], fill=FLOOR_COLOURS[hall.floor], width=14)
    for place, thing in maze.things.items():
        x, y = at(*place)
        pen.ellipse((x - 11, y - 11, x + 11, y + 11), fill="#f4f4f4", outline="#777777")
        _write(pen, x, y + 22, thing or f"{place[0]},{place[1]}", "#000000" if thing else "#aaaaaa")
    _draw_path(pen, [at(*pose.place) for pose in path], path[-1])
    row = picture.height - legend
    _legend(pen, 10, row + LETTERS, FLOOR_COLOURS)
    _legend(pen, 10, row + 3 * LETTERS, WALL_COLOURS)
    return picture


def _draw_path(pen: "ImageDraw", points: Sequence[tuple[int, int]], end: Pose) -> None:
    for one, other in pairwise(points):
        if one != other:
            pen.line([one, other], fill=COLOURS[1], width=4)
    x, y = points[0]
    pen.ellipse((x - 9, y - 9, x + 9, y + 9), outline=COLOURS[0], width=4)
    (x, y), (dx, dy) = points[-1], STEPS[end.heading]
    tip, back = (x + 16 * dx, y + 16 * dy), (x - 8 * dx, y - 8 * dy)
    pen.polygon([tip, (back[0] + 9 * dy, back[1] + 9 * dx), (back[0] - 9 * dy, back[1] - 9 * dx)], fill=COLOURS[1])


def _legend(pen: "ImageDraw", x: int, y: int, colours: dict[str, str]) -> None:
    for name, colour in colours.items():
        pen.rectangle((x, y - 6, x + 12, y + 6), fill=colour)
        font, text = lettering(name, LETTERS)
        pen.text((x + 16, y), text, fill="black", font=font, anchor="lm")
        x += 16 + int(font.getlength(text)) + 12


def _write(pen: "ImageDraw", x: int, y: int, text: str, colour: str) -> None:
    font, shown = lettering(text, LETTERS)
    pen.text((x, y), shown, fill=colour, font=font, anchor="mm", stroke_width=2, stroke_fill="white")

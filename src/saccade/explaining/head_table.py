"""The table of heads as a picture: layers downwards, heads from left to right, darker for dearer."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from saccade.explaining.drawing import shade
from saccade.explaining.heads import HeadStudy
from saccade.look.lettering import width
from saccade.look.picture import write_shapes
from saccade.look.shapes import FAINT, Box, Shape, Word

CELL, HIGH, SIZE, EDGE = 118, 50, 14, 24
NOTE = "in each cell what a piece of the output loses without the head, in nats, and what the head looks at"


def draw_studies(studies: Sequence[HeadStudy], path: Path) -> Path:
    """Into a PNG or SVG file."""
    top = max(0.001, *(one.cost for one in studies))
    families = list(dict.fromkeys(one.layer.family for one in studies))
    shapes: list[Shape] = []
    y, across = EDGE, 0
    for family in families:
        some = [one for one in studies if one.layer.family == family]
        shapes.append(Word(EDGE, y, family, SIZE + 2))
        shapes += _cells(some, top, y + SIZE)
        across = max(across, 2 * EDGE + 2 * SIZE + CELL * max(one.head for one in some))
        y += SIZE + HIGH * max(one.layer.number for one in some) + 2 * EDGE
    shapes.append(Word(EDGE, y, NOTE, SIZE - 2, colour=FAINT))
    return write_shapes(shapes, max(across, width(NOTE, SIZE - 2) + 2 * EDGE), y + EDGE, path)


def _cells(studies: Sequence[HeadStudy], top: float, y: int) -> Iterator[Shape]:
    for one in studies:
        left, above = EDGE + 2 * SIZE + (one.head - 1) * CELL, y + (one.layer.number - 1) * HIGH
        if one.head == 1:
            yield Word(EDGE, above + HIGH // 2, str(one.layer.number), SIZE)
        share = one.cost / top
        yield Box(left, above, CELL - 3, HIGH - 3, shade(share))
        ink = "#ffffff" if share > 0.75 else "#000000"
        yield Word(left + CELL // 2, above + HIGH // 3, f"{one.cost:.3f}", SIZE, "middle", colour=ink)
        yield Word(left + CELL // 2, above + 2 * HIGH // 3, one.role, SIZE - 3, "middle", colour=ink)

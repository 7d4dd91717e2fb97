"""Every head of every layer, small, in a grid: layers downwards, heads from left to right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from saccade.errors import UserError
from saccade.look.heatmap import colour
from saccade.look.lettering import width
from saccade.look.picture import write_shapes
from saccade.look.record import LayerLooks, Looks
from saccade.look.shapes import FAINT, LINE, Box, Raster, Shape, Word
from saccade.runtime.contract import Floats
from saccade.sites import KINDS

SIDE, GAP, EDGE, SIZE = 132, 14, 24, 14
SHADES = np.array([[int(colour(step / 255)[i : i + 2], 16) for i in (1, 3, 5)] for step in range(256)], dtype=np.uint8)
NAMES = {"encoder": "what is read looks at itself", "decoder": "what is written looks at its past"}


def draw_heads(looks: Sequence[Looks], titles: Sequence[str], path: Path) -> Path:
    """One grid for each kind of attention, one below the other."""
    blocks = [
        _Block(f"{title}: {name}" if title else name, layers)
        for one, title in zip(looks, titles, strict=True)
        for name, layers in _kinds(one)
    ]
    if not blocks:
        raise UserError("this model has no attention, and there is nothing to draw")
    shapes: list[Shape] = []
    y = 0
    for block in blocks:
        shapes += block.shapes(y)
        y += block.shape[1]
    return write_shapes(shapes, max(block.shape[0] for block in blocks), y, path)


def _kinds(looks: Looks) -> Iterator[tuple[str, list[LayerLooks]]]:
    for kind in KINDS:
        some = [one for one in looks.layers if one.kind == kind and one.name != "rollout"]
        for memory in dict.fromkeys(one.memory for one in some):
            yield NAMES.get(kind, f"what is written looks at the {memory}"), [o for o in some if o.memory == memory]


@dataclass(frozen=True)
class _Block:
    """The layers of one kind."""

    title: str
    layers: Sequence[LayerLooks]

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Width and height of one map: what is long is small, but no map is thinner than can be seen."""
        rows, columns = self.layers[0].weights_NTS.shape[1:]
        scale = SIDE / max(rows, columns)
        return max(12, round(columns * scale)), max(12, round(rows * scale))

    @cached_property
    def shape(self) -> tuple[int, int]:
        across, down = self.sizes
        heads = max(len(one.weights_NTS) for one in self.layers)
        wide = EDGE + 4 * SIZE + heads * (across + GAP) + EDGE
        note = max(width(line, SIZE - 3) for line in (self.title, self._note)) + 2 * EDGE
        return max(wide, note), 4 * SIZE + len(self.layers) * (down + GAP + SIZE) + 2 * SIZE

    @property
    def _note(self) -> str:
        rows, columns = self.layers[0].weights_NTS.shape[1:]
        return f"{rows} rows × {columns} columns; below each head its entropy as a share of the largest; dark: 1"

    def shapes(self, y: int) -> Iterator[Shape]:
        across, down = self.sizes
        yield Word(EDGE, y + SIZE, self.title, SIZE + 1)
        for row, one in enumerate(self.layers):
            top = y + 3 * SIZE + row * (down + GAP + SIZE)
            yield Word(EDGE, top + down // 2, f"{row + 1}", SIZE)
            for head, weights_TS in enumerate(one.weights_NTS):
                left = EDGE + 4 * SIZE + head * (across + GAP)
                if not row:
                    yield Word(left + across // 2, top - SIZE // 2, f"{head + 1}", SIZE - 2, "middle", colour=FAINT)
                yield from _framed(weights_TS, left, top, across, down)
                share = f"{entropy_share(weights_TS):.2f}"
                yield Word(left + across // 2, top + down + SIZE // 2 + 2, share, SIZE - 4, "middle", colour=FAINT)
        yield Word(EDGE, y + self.shape[1] - SIZE, self._note, SIZE - 3, colour=FAINT)


def _framed(weights_TS: Floats, left: int, top: int, across: int, down: int) -> Iterator[Shape]:
    from PIL import Image

    pixels = Image.fromarray(SHADES[(weights_TS * 255).clip(0, 255).astype(int)])
    # Where there are more weights than pixels each pixel is the mean of some: single dark ones fade, none is lost.
    enlarged = across >= pixels.width and down >= pixels.height
    kind = Image.Resampling.NEAREST if enlarged else Image.Resampling.BOX
    yield Raster(left, top, pixels.resize((across, down), kind))
    for x, y, wide, high in ((0, 0, across, 0), (0, down, across, 0), (0, 0, 0, down), (across, 0, 0, down)):
        yield Box(left + x, top + y, wide, high, LINE)


def entropy_share(weights_TS: Floats) -> float:
    """The mean entropy of the rows, as a share of that of looking everywhere alike: 0 for one place, 1 for all."""
    allowed_T = np.maximum((weights_TS > 0).sum(axis=1), 1)
    logs = np.log(np.where(weights_TS > 0, weights_TS, 1))
    entropy_T = -(weights_TS * logs).sum(axis=1)
    several = allowed_T > 1
    return float((entropy_T[several] / np.log(allowed_T[several])).mean()) if several.any() else 0.0

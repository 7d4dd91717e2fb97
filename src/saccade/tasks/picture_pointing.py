"""Whether a model looks at the thing that it names: scenes and drawings whose things have known places."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade.axes import Grid
from saccade.data.picture_texts import HeldOut
from saccade.data.scene_captions import KINDS
from saccade.data.scene_layout import SIDE, Area, Scene
from saccade.evaluate.metrics import Score
from saccade.evaluate.reading import pointing
from saccade.look.record import Looks
from saccade.pipelines.picture_writer import PictureWriter

Writer = PictureWriter[Any, Any]
MOST = 300
"""Pictures that are looked at."""


@dataclass(frozen=True)
class Pointed:
    """Looks of words that name something."""

    hits_L: list[list[bool]]
    """Of each layer, look by look: whether the middle of the most attended field lies on the thing."""
    chances: list[float]
    """Of each look the share of the picture that the thing covers."""

    @property
    def best_layer(self) -> int:
        """The one that points best, counted from 1."""
        return 1 + int(np.argmax([np.mean(hits) for hits in self.hits_L]))


def point(pipeline: Writer, held: HeldOut, ids: Sequence[list[int]]) -> Pointed | None:
    """None where no places are known, nothing named is there, or nothing is looked at."""
    hits_L: list[list[bool]] = []
    chances: list[float] = []
    count = min(MOST, len(held)) if held.scenes or held.boxes else 0
    for number in range(count):
        question = held.questions[number] if held.questions else ""
        looks = pipeline.look_at(held.pictures_NHWC[number], question, ids[number])
        layers = looks.select("cross", pipeline.memory) if pipeline.memory in looks.memories else []
        hits_L = hits_L or [[] for _ in layers]
        for row, areas in _named(held, number, looks, pipeline.memory) if layers else ():
            for hits, layer in enumerate(layers):
                hits_L[hits].append(_falls_on(layer.weights_NTS.mean(axis=0)[row], pipeline.input.grid, areas))
            chances.append(float(sum((right - left) * (bottom - top) for left, top, right, bottom in areas)))
    return Pointed(hits_L, chances) if chances else None


def pointing_of(pointed: Pointed, layer: int, name: str) -> list[Score]:
    """How often looks fall on what is named, and how often ones taken at random would."""
    return pointing(pointed.hits_L[min(layer, len(pointed.hits_L)) - 1], pointed.chances, of="looks", name=name)


def _named(held: HeldOut, number: int, looks: Looks, memory: str) -> list[tuple[list[int], list[Area]]]:
    """The pieces of each word that names something in the picture, and where that is, in shares of its sides."""
    rows = looks.select("cross", memory)[0].rows
    groups = [(rows.name(group).casefold(), group) for group in rows.groups()]
    if held.boxes:
        return [(groups[0][1], [held.boxes[number]])]
    scene = held.scenes[number]
    found = [(group, places) for word, group in groups if (places := _places(scene, word))]
    if found or not held.questions:
        return found
    # An answer such as "two" or "left" names nothing: the thing is named by the question.
    asked = [places for word in held.questions[number].rstrip("?").split() if (places := _places(scene, word))]
    return [(groups[0][1], places) for places in asked[:1] if len(asked) == 1]


def _places(scene: Scene, word: str) -> list[Area]:
    """In shares of the picture's sides."""
    boxes = [thing.box for thing in scene.of(KINDS[word])] if word in KINDS else []
    return [(left / SIDE, top / SIDE, right / SIDE, bottom / SIDE) for left, top, right, bottom in boxes]


def _falls_on(weights_TS: np.ndarray, grid: Grid, areas: Sequence[Area]) -> bool:
    row, column = divmod(int(weights_TS.mean(axis=0).argmax()), grid.width)
    x, y = (column + 0.5) / grid.width, (row + 0.5) / grid.height
    return any(left <= x <= right and top <= y <= bottom for left, top, right, bottom in areas)

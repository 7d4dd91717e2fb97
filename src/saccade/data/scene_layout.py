"""A scene before it is drawn: which things, how many, how large, where. Seed and number alone decide it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from saccade.data.scene_things import GROUNDS, THINGS

SIDE = 96
"""Pixels of a scene's side."""
MOST_THINGS, MOST_KINDS = 5, 3
Size = Literal["small", "medium", "large"]
SIDES: dict[Size, tuple[int, int]] = {"small": (16, 20), "medium": (25, 35), "large": (42, 72)}
"""Pixels of a thing's side. No thing stands between two sizes."""
Relation = Literal["left", "right", "above", "below", "behind", "before"]
OPPOSITE: dict[Relation, Relation] = {
    "left": "right", "right": "left", "above": "below", "below": "above", "behind": "before", "before": "behind",
}  # fmt: skip
APART = 6.0
"""Pixels between the middles of things of which one is left of, or above, another."""
HIDDEN = (0.2, 0.42)
"""Share of a thing's side that another one before it covers."""
Area = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class Placed:
    """A thing in its place."""

    kind: int
    """Which of `THINGS`."""
    left: float
    top: float
    side: float
    mirrored: bool = False

    @property
    def middle(self) -> tuple[float, float]:
        """Across and down."""
        return self.left + self.side / 2, self.top + self.side / 2

    @property
    def box(self) -> Area:
        return self.left, self.top, self.left + self.side, self.top + self.side


@dataclass(frozen=True)
class Scene:
    """Things on a ground. All things of a kind are of one size."""

    things: tuple[Placed, ...]
    """Those further back first."""
    ground: int
    """Which of `GROUNDS`."""
    texture: int = 0
    """Seed of the ground's texture and of the light."""

    @property
    def kinds(self) -> list[int]:
        return list(dict.fromkeys(one.kind for one in self.things))

    def of(self, kind: int) -> list[Placed]:
        """All things of a kind."""
        return [one for one in self.things if one.kind == kind]

    def size(self, kind: int) -> Size:
        """How large the things of a kind are."""
        side = self.of(kind)[0].side
        return next(size for size, (_, most) in SIDES.items() if side <= most)

    def holds(self, one: int, relation: Relation, other: int) -> bool:
        """Whether all things of one kind stand so to all things of another."""
        return all(_stands(self.things, a, relation, b) for a in self.of(one) for b in self.of(other))

    def relations(self, one: int, other: int) -> list[Relation]:
        """All that hold between two kinds. One that stands behind another is not said to be left of it, or above."""
        found: list[Relation] = [relation for relation in OPPOSITE if self.holds(one, relation, other)]
        deep: list[Relation] = [relation for relation in found if relation in ("behind", "before")]
        return deep or found


def _stands(things: tuple[Placed, ...], a: Placed, relation: Relation, b: Placed) -> bool:
    (ax, ay), (bx, by) = a.middle, b.middle
    match relation:
        case "left":
            return ax < bx - APART
        case "right":
            return ax > bx + APART
        case "above":
            return ay < by - APART
        case "below":
            return ay > by + APART
        case "behind":
            return _overlap(a, b) and things.index(a) < things.index(b)
        case _:
            return _overlap(a, b) and things.index(a) > things.index(b)


def _overlap(a: Placed, b: Placed) -> bool:
    """Whether one covers a good part of the other; the corners of a box are mostly empty."""
    across = min(a.box[2], b.box[2]) - max(a.box[0], b.box[0])
    down = min(a.box[3], b.box[3]) - max(a.box[1], b.box[1])
    least = 0.12 * min(a.side, b.side)
    return across > least and down > least


def held_out(counts: dict[int, int]) -> bool:
    """Whether scenes with so many things of these kinds are kept from training: every eleventh pair of kinds, and every
    tenth number of a kind."""
    pairs = any((one + other) % 11 == 3 for one, other in combinations(counts, 2))
    return pairs or any(count > 1 and (3 * kind + count) % 10 == 4 for kind, count in counts.items())


@dataclass(frozen=True)
class SceneComposer:
    """Composes scenes by number."""

    seed: int
    combinations: Literal["trained", "held out"] = "trained"
    """Whether all scenes leave out, or all have, what is held out."""

    def __call__(self, number: int) -> Scene:
        random = np.random.default_rng([self.seed, int(self.combinations == "held out"), number])
        while True:
            scene = self._compose(random, self._counts(random))
            if scene is not None:
                return scene

    def _counts(self, random: np.random.Generator) -> dict[int, int]:
        """How many of each kind."""
        while True:
            total = int(random.integers(1, MOST_THINGS + 1))
            # One kind alone is easy: scenes of several are more frequent.
            kinds = min(total, MOST_KINDS, int(random.integers(1, 2 * MOST_KINDS)) // 2 + 1)
            cuts = (
                np.sort(random.choice(total - 1, kinds - 1, replace=False) + 1).tolist() if kinds > 1 else list[int]()
            )
            parts = np.diff([0, *cuts, total]).tolist()
            chosen = random.choice(len(THINGS), kinds, replace=False).tolist()
            counts = dict(zip(chosen, parts, strict=True))
            if held_out(counts) == (self.combinations == "held out"):
                return counts

    def _compose(self, random: np.random.Generator, counts: dict[int, int]) -> Scene | None:
        """None where the things do not fit."""
        groups = list(counts.items())
        edge = 3.0
        leaves = _leaves(random, groups)
        areas = _split(random, (edge, edge, SIDE - edge, SIDE - edge), [sum(c for _, c in leaf) for leaf in leaves])
        things: list[Placed] = []
        for leaf, area in zip(leaves, areas, strict=True):
            found = _overlapping(random, leaf, area) if len(leaf) == 2 else _scattered(random, *leaf[0], area)
            if found is None:
                return None
            things += found
        scene = Scene(tuple(things), int(random.integers(len(GROUNDS))), int(random.integers(2**31)))
        related = all(scene.relations(one, other) for one, other in combinations(scene.kinds, 2))
        return scene if related else None


def _leaves(random: np.random.Generator, groups: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Groups that have an area to themselves; two things of which one stands behind the other share one."""
    singles = [group for group in groups if group[1] == 1]
    if len(singles) < 2 or random.random() > 0.5:
        return [[group] for group in groups]
    leaves = [singles[:2], *([group] for group in groups if group not in singles[:2])]
    return [leaves[place] for place in random.permutation(len(leaves))]


def _split(random: np.random.Generator, area: Area, weights: list[int]) -> Iterator[Area]:
    """The area, cut across or down again and again; parts with more things are larger."""
    if len(weights) == 1:
        yield area
        return
    first = 1 if len(weights) == 2 or random.random() < 0.5 else len(weights) - 1
    share = (0.6 + sum(weights[:first])) / (1.2 + sum(weights)) + random.uniform(-0.08, 0.08)
    left, top, right, bottom = area
    if (right - left) * random.uniform(0.6, 1.6) > bottom - top:
        cut = left + share * (right - left)
        one, other = (left, top, cut, bottom), (cut, top, right, bottom)
    else:
        cut = top + share * (bottom - top)
        one, other = (left, top, right, cut), (left, cut, right, bottom)
    yield from _split(random, one, weights[:first])
    yield from _split(random, other, weights[first:])


def _side(random: np.random.Generator, most: float) -> float | None:
    """Of a thing that has so much room; None where it has not enough."""
    fitting = [(least, min(largest, most)) for least, largest in SIDES.values() if least <= most]
    if not fitting:
        return None
    return float(random.uniform(*fitting[int(random.integers(len(fitting)))]))


def _scattered(random: np.random.Generator, kind: int, count: int, area: Area) -> list[Placed] | None:
    """Things of a kind in an area, none over another."""
    left, top, right, bottom = area
    shapes = [(rows, -(-count // rows)) for rows in range(1, count + 1)]
    cells = [((right - left) / columns, (bottom - top) / rows, rows, columns) for rows, columns in shapes]
    wide, tall, rows, columns = max(cells, key=lambda cell: min(cell[:2]))
    if (side := _side(random, 0.97 * min(wide, tall))) is None:
        return None
    places = random.permutation(rows * columns)[:count]
    things = []
    for place in sorted(places.tolist()):
        x = left + place % columns * wide + random.uniform(0, wide - side)
        y = top + place // columns * tall + random.uniform(0, tall - side)
        things.append(Placed(kind, x, y, side, bool(random.random() < 0.5)))
    return things


def _overlapping(random: np.random.Generator, pair: list[tuple[int, int]], area: Area) -> list[Placed] | None:
    """Two things, the first behind the second, which covers a part of it."""
    left, top, right, bottom = area
    most = 0.62 * min(right - left, bottom - top)
    back, front = _side(random, most), _side(random, most)
    if back is None or front is None or front > 1.5 * back:
        return None
    covered = random.uniform(*HIDDEN) * min(back, front)
    along, over = back - covered, random.uniform(-0.2, 0.2) * min(back, front) + (back - front) / 2
    if random.random() < 0.5:
        along = covered - front
    dx, dy = (along, over) if random.random() < 0.5 else (over, along)
    least_x, least_y = min(0.0, dx), min(0.0, dy)
    wide, tall = max(back, dx + front) - least_x, max(back, dy + front) - least_y
    if wide > right - left or tall > bottom - top:
        return None
    x = left - least_x + random.uniform(0, right - left - wide)
    y = top - least_y + random.uniform(0, bottom - top - tall)
    mirrored = [bool(one) for one in random.random(2) < 0.5]
    return [
        Placed(pair[0][0], x, y, back, mirrored[0]),
        Placed(pair[1][0], x + dx, y + dy, front, mirrored[1]),
    ]

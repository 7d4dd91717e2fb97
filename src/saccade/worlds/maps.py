"""Mazes of halls as in SAIL (MacMahon et al. 2006): crossings with things, halls with floors and walls; who stands in
one, what is seen from there, and what an action does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from saccade.errors import UserError
from saccade.worlds.contract import Effect, View

FLOORS = ("blue", "brick", "concrete", "flower", "grass", "gravel", "wood", "yellow")
WALLS = ("butterfly", "fish", "tower")
THINGS = ("barstool", "chair", "easel", "hatrack", "lamp", "sofa")
SIDES = ("ahead", "right", "behind", "left")
"""Where one can look, row by row of what is seen."""
FAR = 8
"""Columns of what is seen: here, then the halls one after the other up to the seventh."""
CHANNELS = 3 + len(FLOORS) + len(WALLS) + len(THINGS)
"""A hall is there; at its end a hall goes off to the left, to the right; its floor; its wall; the thing at its end."""
ACTIONS = ("LEFT", "RIGHT", "FORWARD")
COMPASS = {0: "north", 90: "east", 180: "south", 270: "west"}
STEPS = {0: (0, -1), 90: (1, 0), 180: (0, 1), 270: (-1, 0)}
"""Headings in degrees and where they lead: y grows to the south."""
LARGEST_MAP = 1_000_000
"""Bytes."""
Place = tuple[int, int]


@dataclass(frozen=True)
class Pose:
    """Where somebody stands, and where they look."""

    x: int
    y: int
    heading: int
    """In degrees: 0 is north, 90 east."""

    @property
    def place(self) -> Place:
        return self.x, self.y

    def turned(self, degrees: int) -> "Pose":
        return Pose(self.x, self.y, (self.heading + degrees) % 360)

    @property
    def ahead(self) -> Place:
        dx, dy = STEPS[self.heading]
        return self.x + dx, self.y + dy

    def __str__(self) -> str:
        return f"{self.x},{self.y} facing {COMPASS[self.heading]}"


@dataclass(frozen=True)
class Hall:
    """What connects two neighbouring places."""

    floor: str
    wall: str


@dataclass(frozen=True)
class Maze:
    """A map."""

    name: str
    things: Mapping[Place, str]
    """What stands at each place; an empty string: nothing."""
    halls: Mapping[tuple[Place, Place], Hall]
    """In both directions."""

    def check(self, pose: Pose) -> Pose:
        """A pose that the map does not have is an error."""
        if pose.place not in self.things:
            near = sorted(self.things, key=lambda place: abs(place[0] - pose.x) + abs(place[1] - pose.y))[:3]
            named = ", ".join(f"{x},{y}" for x, y in near)
            raise UserError(f"{pose.x},{pose.y} is no place of the map {self.name}; the nearest are {named}")
        if pose.heading not in STEPS:
            raise UserError(f"a heading is 0 (north), 90 (east), 180 (south) or 270 (west), not {pose.heading}")
        return pose

    def after(self, pose: Pose, action: str) -> Pose:
        """Where an action leads; who walks against a wall stays."""
        if action != "FORWARD":
            return pose.turned(-90 if action == "LEFT" else 90)
        x, y = pose.ahead
        return Pose(x, y, pose.heading) if (pose.place, pose.ahead) in self.halls else pose

    def path(self, pose: Pose, actions: Sequence[str]) -> list[Pose]:
        """All poses, the first one too."""
        found = [pose]
        for action in actions:
            found.append(self.after(found[-1], action))
        return found

    def seen(self, pose: Pose) -> np.ndarray:
        """What is seen along the four halls, relative to who looks: [4, 8, C], 255 where something is so. It is the
        world state of Mei et al. 2016, 3.1, in order of distance."""
        view_DFC = np.zeros((len(SIDES), FAR, CHANNELS), dtype=np.uint8)
        for side in range(len(SIDES)):
            view_DFC[side, 0] = self._at(pose.place)
            looking = pose.turned(90 * side)
            for far in range(1, FAR):
                hall = self.halls.get((looking.place, looking.ahead))
                if hall is None:
                    break
                looking = self.after(looking, "FORWARD")
                view_DFC[side, far] = self._at(looking.place, hall, looking)
        return view_DFC

    def _at(self, place: Place, hall: Hall | None = None, looking: Pose | None = None) -> np.ndarray:
        """A hall and what is at its end; without one, just what is at a place."""
        found = np.zeros(CHANNELS, dtype=np.uint8)
        thing = self.things[place]
        if hall is not None and looking is not None:
            sides = [(place, looking.turned(turn).ahead) in self.halls for turn in (-90, 90)]
            found[:3] = np.array([True, *sides]) * 255
            found[3 + FLOORS.index(hall.floor)] = 255
            found[3 + len(FLOORS) + WALLS.index(hall.wall)] = 255
        if thing:
            found[3 + len(FLOORS) + len(WALLS) + THINGS.index(thing)] = 255
        return found

    @cached_property
    def bounds(self) -> tuple[int, int, int, int]:
        """Smallest and largest x, smallest and largest y."""
        xs, ys = [x for x, _ in self.things], [y for _, y in self.things]
        return min(xs), max(xs), min(ys), max(ys)


class MazeWorld:
    """A route through a maze as a world: the command, and where it begins. Who walks has to stop."""

    actions = ACTIONS
    ends = False

    def __init__(self, maze: Maze, start: Pose, command: str) -> None:
        self.maze, self.start, self.command, self.pose = maze, maze.check(start), command, start

    def reset(self, seed: int = 0) -> View:
        self.pose = self.start
        return View(self.command, self.maze.seen(self.pose))

    def step(self, action: int) -> Effect:
        self.pose = self.maze.after(self.pose, ACTIONS[action])
        return Effect(View(self.command, self.maze.seen(self.pose)))


def read_maze(path: Path) -> Maze:
    """A map of SAIL: XML with nodes (x, y, item) and edges (node1, node2, wall, floor)."""
    if not path.is_file():
        raise UserError(f"{path}: no such map; one of SAIL is sail_navigation/map-l.xml")
    if path.stat().st_size > LARGEST_MAP:
        raise UserError(f"{path}: {path.stat().st_size:,} bytes; a map has at most {LARGEST_MAP:,}")
    text = path.read_bytes()
    if b"<!" in text.replace(b"<!--", b""):
        raise UserError(f"{path}: a map has no declarations (<!…)")
    try:
        root = ElementTree.fromstring(text)
        things = {_place(node, "x", "y"): _one_of(node, "item", ("", *THINGS)) for node in root.iter("node")}
        halls: dict[tuple[Place, Place], Hall] = {}
        for edge in root.iter("edge"):
            ends = [tuple(int(part) for part in edge.get(end, "").split(",")) for end in ("node1", "node2")]
            one, other = ((x, y) for x, y in ends)
            if one not in things or other not in things or abs(one[0] - other[0]) + abs(one[1] - other[1]) != 1:
                raise ValueError(f"the edge from {one} to {other} does not connect neighbouring nodes")
            hall = Hall(_one_of(edge, "floor", FLOORS), _one_of(edge, "wall", WALLS))
            halls[one, other] = halls[other, one] = hall
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise UserError(f"{path}: not a map of SAIL: {error}") from None
    if not halls:
        raise UserError(f"{path}: a map without halls")
    return Maze(root.get("name") or path.stem, things, halls)


def _place(node: ElementTree.Element, x: str, y: str) -> Place:
    return int(node.get(x, "")), int(node.get(y, ""))


def _one_of(element: ElementTree.Element, key: str, known: Sequence[str]) -> str:
    value = element.get(key, "")
    if value not in known:
        raise ValueError(f"{key} = {value[:20]!r} is not one of {', '.join(one for one in known if one)}")
    return value

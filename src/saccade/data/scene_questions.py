"""Questions about scenes, with the one answer that each has: what, how many, where, is there, which."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from saccade.data.scene_captions import NUMBERS, PLACES
from saccade.data.scene_layout import SIDE, Relation, Scene
from saccade.data.scene_things import GROUNDS, THINGS

CLEAR = 0.05
"""Share of the side that keeps a thing away from the borders between places."""


@dataclass(frozen=True)
class SceneQuestion:
    """A question about a scene."""

    kind: str
    text: str
    answer: str


def ask_about(scene: Scene, random: np.random.Generator) -> SceneQuestion:
    """One of the questions that a scene answers."""
    for kind in random.choice(list(QUESTIONS), len(QUESTIONS), replace=False, p=FREQUENCIES).tolist():
        ask = QUESTIONS[kind]
        if (found := ask(scene, random)) is not None:
            return SceneQuestion(kind, *found)
    raise AssertionError("how many there are can always be asked")


def _what(scene: Scene, random: np.random.Generator) -> tuple[str, str] | None:
    """What stands so to something else: where only one kind of thing does."""
    found = []
    for kind in scene.kinds:
        for relation in PLACES:
            there = [other for other in scene.kinds if other != kind and scene.holds(other, relation, kind)]
            if len(there) == 1:
                found.append((relation, kind, there[0]))
    if not found:
        return None
    relation, kind, answer = found[int(random.integers(len(found)))]
    words = PLACES[relation][int(random.integers(len(PLACES[relation])))]
    return f"what is {words} {_the(scene, kind, random)}?", THINGS[answer].name


def _how_many(scene: Scene, random: np.random.Generator) -> tuple[str, str]:
    kind = _absent(scene, random) if random.random() < 0.1 else _present(scene, random)
    several = THINGS[kind].names[int(random.integers(len(THINGS[kind].names)))][1]
    return f"how many {several} are there?", NUMBERS[len(scene.of(kind))]


def _where(scene: Scene, random: np.random.Generator) -> tuple[str, str] | None:
    """In which ninth of the picture: where that is clear."""
    found = []
    for kind in scene.kinds:
        if len(things := scene.of(kind)) > 1:
            continue
        across, down = (share / SIDE for share in things[0].middle)
        if all(abs(share - border) > CLEAR for share in (across, down) for border in (1 / 3, 2 / 3)):
            names = ("top", "", "bottom")[int(3 * down)], ("left", "", "right")[int(3 * across)]
            found.append((kind, " ".join(filter(None, names)) or "middle"))
    if not found:
        return None
    kind, answer = found[int(random.integers(len(found)))]
    return f"where is {_the(scene, kind, random)}?", answer


def _is_there(scene: Scene, random: np.random.Generator) -> tuple[str, str]:
    there = random.random() < 0.5
    kind = _present(scene, random) if there else _absent(scene, random)
    one = THINGS[kind].names[int(random.integers(len(THINGS[kind].names)))][0]
    return f"is there {'an' if one[0] in 'aeiou' else 'a'} {one}?", "yes" if there else "no"


def _which(scene: Scene, random: np.random.Generator) -> tuple[str, str] | None:
    """Which of two kinds is further left, or larger."""
    sides: dict[str, Relation] = {"left": "left", "right": "right", "above": "above", "below": "below"}
    found = []
    for one, other in permutations(scene.kinds, 2):
        found += [(word, one, other) for word, relation in sides.items() if scene.holds(one, relation, other)]
        if scene.of(one)[0].side > 1.3 * scene.of(other)[0].side:
            found += [("larger", one, other), ("smaller", other, one)]
    if not found:
        return None
    word, answer, other = found[int(random.integers(len(found)))]
    pair = [_the(scene, kind, random) for kind in ((answer, other) if random.random() < 0.5 else (other, answer))]
    return f"which is {word}, {pair[0]} or {pair[1]}?", THINGS[answer].name


def _ground(scene: Scene, _: np.random.Generator) -> tuple[str, str]:
    return "what is the ground?", GROUNDS[scene.ground].names[0]


QUESTIONS: dict[str, Callable[[Scene, np.random.Generator], tuple[str, str] | None]] = {
    "what": _what,
    "how many": _how_many,
    "where": _where,
    "is there": _is_there,
    "which": _which,
    "ground": _ground,
}
"""What makes a question and its answer, by the kind of question; None where a scene has none of the kind."""
FREQUENCIES = (0.25, 0.15, 0.2, 0.15, 0.2, 0.05)
"""Those that only some scenes answer are asked first more often."""


def _present(scene: Scene, random: np.random.Generator) -> int:
    return scene.kinds[int(random.integers(len(scene.kinds)))]


def _absent(scene: Scene, random: np.random.Generator) -> int:
    others = [kind for kind in range(len(THINGS)) if kind not in scene.kinds]
    return others[int(random.integers(len(others)))]


def _the(scene: Scene, kind: int, random: np.random.Generator) -> str:
    names = THINGS[kind].names[int(random.integers(len(THINGS[kind].names)))]
    return f"the {names[len(scene.of(kind)) > 1]}"

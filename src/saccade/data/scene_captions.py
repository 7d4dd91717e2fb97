"""A small grammar of captions for scenes: it writes them, reads them, and says what a caption has wrong.

caption  := [opening] group [place group ["and" group place "the" noun]] ["on" ["the"] ground]
group    := number ["small" | "large"] noun          (or another word for the same)
place    := "left of" | "right of" | "above" | "below" | "behind" | "in front of"
"""

from dataclasses import dataclass

import numpy as np

from saccade.data.scene_layout import Relation, Scene, Size
from saccade.data.scene_things import GROUNDS, THINGS

PLACES: dict[Relation, tuple[str, ...]] = {
    "left": ("left of", "to the left of"),
    "right": ("right of", "to the right of"),
    "above": ("above", "over"),
    "below": ("below", "under"),
    "behind": ("behind",),
    "before": ("in front of",),
}
SIZES: dict[Size, tuple[str, ...]] = {"small": ("small", "little"), "large": ("large", "big")}
NUMBERS = ("zero", "one", "two", "three", "four", "five")
OPENINGS = ("there is", "there are", "a picture of")
KINDS = {word: kind for kind, thing in enumerate(THINGS) for pair in thing.names for word in pair}
"""Every word for a thing, and for several."""
SIZE_WORDS: dict[str, Size] = {word: size for size, words in SIZES.items() for word in words}
GROUND_WORDS = {word: number for number, ground in enumerate(GROUNDS) for word in ground.names}
PLACE_WORDS = sorted(
    ((tuple(words.split()), relation) for relation, some in PLACES.items() for words in some),
    key=lambda one: -len(one[0]),
)


@dataclass(frozen=True)
class ThingGroup:
    """Some things of a kind, as a caption has them."""

    kind: int
    count: int
    size: Size = "medium"


@dataclass(frozen=True)
class Description:
    """What a caption says."""

    groups: tuple[ThingGroup, ...]
    relations: tuple[tuple[int, Relation, int], ...] = ()
    ground: int | None = None


@dataclass(frozen=True)
class Checked:
    """What of a caption is right."""

    read: bool
    """It is a sentence of the grammar; else nothing else is right."""
    things: bool = False
    """It names all kinds of things that are there, and no others."""
    counts: bool = False
    """Of the kinds that are there, it says how many."""
    relations: bool = False
    """They stand as it says."""
    sizes: bool = False
    ground: bool = False

    @property
    def right(self) -> bool:
        """No wrong thing, count or relation."""
        return self.things and self.counts and self.relations


def describe(scene: Scene, random: np.random.Generator) -> str:
    """One of the captions of a scene."""
    kinds = [scene.kinds[place] for place in random.permutation(len(scene.kinds)).tolist()]
    nouns = {kind: int(random.integers(len(THINGS[kind].names))) for kind in kinds}
    first = kinds[0]
    opening = str(random.choice(["", "a picture of ", f"there {'is' if len(scene.of(first)) == 1 else 'are'} "]))
    text = opening + _group(scene, first, nouns[first], random)
    if len(kinds) > 1:
        text += f" {_place(scene, first, kinds[1], random)} {_group(scene, kinds[1], nouns[kinds[1]], random)}"
    if len(kinds) > 2:
        other = kinds[int(random.integers(2))]
        text += f" and {_group(scene, kinds[2], nouns[kinds[2]], random)} {_place(scene, kinds[2], other, random)}"
        text += f" the {_noun(other, nouns[other], len(scene.of(other)))}"
    ground = _one_of(GROUNDS[scene.ground].names, random)
    return f"{text} on {'the ' if random.random() < 0.5 else ''}{ground}"


def _group(scene: Scene, kind: int, name: int, random: np.random.Generator) -> str:
    count, size = len(scene.of(kind)), scene.size(kind)
    words = [_one_of(SIZES[size], random)] if size in SIZES else []
    words.append(_noun(kind, name, count))
    number = NUMBERS[count] if count > 1 or random.random() < 0.2 else "an" if words[0][0] in "aeiou" else "a"
    return " ".join([number, *words])


def _noun(kind: int, name: int, count: int) -> str:
    return THINGS[kind].names[name][count > 1]


def _place(scene: Scene, one: int, other: int, random: np.random.Generator) -> str:
    relations = scene.relations(one, other)
    return _one_of(PLACES[relations[int(random.integers(len(relations)))]], random)


def _one_of(words: tuple[str, ...], random: np.random.Generator) -> str:
    """The first is the most frequent."""
    return words[0] if random.random() < 0.6 else words[int(random.integers(len(words)))]


class _Unread(Exception):
    """A text that is no sentence of the grammar."""


class _Words:
    """Words that are taken one after the other."""

    def __init__(self, text: str) -> None:
        self.left = text.casefold().rstrip(" .").split()

    def take(self, *words: str) -> bool:
        """Whether these come next; if so, they are gone."""
        if tuple(self.left[: len(words)]) != words:
            return False
        del self.left[: len(words)]
        return True

    def next(self) -> str:
        if not self.left:
            raise _Unread
        return self.left.pop(0)

    def kind(self) -> int:
        if (kind := KINDS.get(self.next())) is None:
            raise _Unread
        return kind

    def group(self) -> ThingGroup:
        number = self.next()
        if number not in ("a", "an", *NUMBERS[1:]):
            raise _Unread
        count = NUMBERS.index(number) if number in NUMBERS else 1
        size: Size = SIZE_WORDS[self.next()] if self.left and self.left[0] in SIZE_WORDS else "medium"
        return ThingGroup(self.kind(), count, size)

    def place(self) -> Relation | None:
        return next((relation for words, relation in PLACE_WORDS if self.take(*words)), None)


def read_caption(text: str) -> Description | None:
    """What a caption says; None where it is no sentence of the grammar."""
    words = _Words(text)
    try:
        return _description(words)
    except _Unread:
        return None


def _description(words: _Words) -> Description:
    for opening in OPENINGS:
        if words.take(*opening.split()):
            break
    groups, relations = [words.group()], []
    if (place := words.place()) is not None:
        groups.append(words.group())
        relations.append((groups[0].kind, place, groups[1].kind))
        if words.take("and"):
            groups.append(words.group())
            if (place := words.place()) is None or not words.take("the"):
                raise _Unread
            relations.append((groups[2].kind, place, words.kind()))
    ground = None
    if words.take("on"):
        words.take("the")
        if (ground := GROUND_WORDS.get(words.next())) is None:
            raise _Unread
    if words.left:
        raise _Unread
    return Description(tuple(groups), tuple(relations), ground)


def check_caption(text: str, scene: Scene) -> Checked:
    """What of a caption is right about a scene."""
    said = read_caption(text)
    if said is None:
        return Checked(read=False)
    there = [group for group in said.groups if group.kind in scene.kinds]
    return Checked(
        read=True,
        things=sorted(group.kind for group in said.groups) == sorted(scene.kinds),
        counts=all(group.count == len(scene.of(group.kind)) for group in there),
        relations=all(_holds(scene, *relation) for relation in said.relations),
        sizes=all(group.size == scene.size(group.kind) for group in there),
        ground=said.ground in (None, scene.ground),
    )


def _holds(scene: Scene, one: int, relation: Relation, other: int) -> bool:
    return one != other and {one, other} <= set(scene.kinds) and scene.holds(one, relation, other)

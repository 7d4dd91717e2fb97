"""What can be taken away from a model while it answers, by the names that people type: heads, layers, words, cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from saccade.axes import BEGIN_LABEL, END_LABEL, Axis, Grid, Groups, Positions
from saccade.errors import WrongUse, did_you_mean
from saccade.look.record import DRAWN_FIRST, Looks
from saccade.look.watch import watch
from saccade.pipelines.answer import Answer
from saccade.pipelines.pipeline import Pipeline
from saccade.sites import KINDS, SOURCE, TARGET, Edit, Kind


@dataclass(frozen=True)
class AttentionLayer:
    """One attention layer of a model."""

    name: str
    """As `saccade.watch` tells it, such as `decoder.blocks.2.cross_attention`."""
    kind: Kind
    memory: str
    """What it looks at."""
    number: int
    """Among those of its kind and memory, counted from 1."""
    heads: int

    @property
    def label(self) -> str:
        """As it is typed: `cross:2`, `picture:1`."""
        return f"{self.family}:{self.number}"

    @property
    def family(self) -> str:
        """Its kind, or the memory that it looks at, where there are several."""
        return self.memory if self.memory not in (SOURCE, TARGET) and self.kind == "cross" else self.kind

    def head(self, number: int) -> str:
        """A head as it is typed, counted from 1: `cross:2.3`."""
        return f"{self.label}.{number}"


def attention_layers(pipeline: Pipeline[Any, Any], answer: Answer) -> list[AttentionLayer]:
    """All attention layers that worked on an answer, in the order they looked."""
    with watch(pipeline) as heard:
        pipeline.forced(answer)
    found: dict[str, AttentionLayer] = {}
    for look in heard:
        if look.name not in found:
            before = sum(one.kind == look.kind and one.memory == look.memory for one in found.values())
            heads = look.weights_BNTS.shape[1]
            found[look.name] = AttentionLayer(look.name, look.kind, look.memory, before + 1, heads)
    if not found:
        raise WrongUse("this model has no attention: there is no head to take away")
    return list(found.values())


def layer_named(text: str, layers: Sequence[AttentionLayer]) -> AttentionLayer:
    """`2` is the second of the layers that are drawn by default; `encoder:2`, `decoder:2`, `cross:2` say which."""
    family, _, number = text.rpartition(":")
    if not number.isdigit():
        raise WrongUse(f"{text!r}: a layer is a number, such as 2, or a kind and a number, such as encoder:2")
    known = list(dict.fromkeys(one.family for one in layers))
    chosen = family or next(one for one in (*(kind for kind in DRAWN_FIRST if kind in known), *known))
    if chosen not in known:
        raise WrongUse(f"{text!r}: this model has no {chosen} attention{did_you_mean(chosen, known)}")
    some = [one for one in layers if one.family == chosen]
    if not 1 <= int(number) <= len(some):
        raise WrongUse(f"{text!r}: there are {len(some)} layers of {chosen} attention, counted from 1")
    return some[int(number) - 1]


def head_named(text: str, layers: Sequence[AttentionLayer]) -> tuple[str, int]:
    """`2.3` is the third head of the second layer; as an `Edit` names it."""
    before, _, number = text.rpartition(".")
    if not before or not number.isdigit():
        raise WrongUse(f"{text!r}: a head is a layer and a number, such as 2.3 or encoder:2.3")
    layer = layer_named(before, layers)
    if not 1 <= int(number) <= layer.heads:
        raise WrongUse(f"{text!r}: {layer.label} has {layer.heads} heads, counted from 1")
    return layer.name, int(number) - 1


@dataclass(frozen=True)
class Hideable:
    """The words or cells of one memory, and the positions that each of them takes."""

    memory: str
    labels: list[str]
    groups: Groups
    grid: Grid | None = None

    @classmethod
    def of(cls, memory: str, axis: Axis, first: int = 0) -> "Hideable":
        """`first`: positions before those of the axis, which are no part of the input."""
        kept = [group for group in axis.groups() if axis.name(group) not in (BEGIN_LABEL, END_LABEL)]
        moved = [[first + place for place in group] for group in kept]
        return cls(memory, [axis.name(group) for group in kept], moved, axis if isinstance(axis, Grid) else None)

    def words(self, numbers: Sequence[int]) -> list[int]:
        """The positions of some words, counted from 1."""
        for number in numbers:
            if not 1 <= number <= len(self.groups):
                raise WrongUse(f"word {number} asked, but there are {len(self.groups)}, counted from 1")
        return [place for number in numbers for place in self.groups[number - 1]]

    def cells(self, places: Sequence[tuple[int, int]]) -> list[int]:
        """The positions of some cells of a picture, row and column counted from 1."""
        if self.grid is None:
            raise WrongUse(f"{self.memory} is no picture: hide its words or moments")
        height, width = self.grid.height, self.grid.width
        for row, column in places:
            if not (1 <= row <= height and 1 <= column <= width):
                raise WrongUse(f"cell {row},{column} asked, but there are {height} rows and {width} columns, from 1")
        return [self.groups[(row - 1) * width + column - 1][0] for row, column in places]


def hideables(looks: Looks) -> dict[str, Hideable]:
    """What can be hidden of what was read, by the names of memories; of a language model, of its text."""
    if looks.parts > 1:
        raise WrongUse(f"the input was read in {looks.parts} parts: hide words of one sentence")
    layers = [one for one in looks.layers if one.name != "rollout"]
    grids = [one.columns for one in looks.layers if isinstance(one.columns, Grid)]
    found: dict[str, Hideable] = {}
    read = [one for one in layers if one.kind != "decoder"] or layers
    for one in read:
        axis, first = one.columns, 0
        if isinstance(axis, Positions):  # marks stand before the fields of the picture
            grid = next((grid for grid in grids if len(grid) <= len(axis)), None)
            axis, first = (axis, 0) if grid is None else (grid, len(axis) - len(grid))
        found.setdefault(one.memory, Hideable.of(one.memory, axis, first))
    return found


def edit_of(
    pipeline: Pipeline[Any, Any],
    answer: Answer,
    *,
    heads: Sequence[str] = (),
    layers: Sequence[str] = (),
    words: Sequence[int] = (),
    cells: Sequence[tuple[int, int]] = (),
) -> Edit:
    """What people type as what `saccade.watch` does: heads `2.3`, layers `encoder:1`, words and cells from 1."""
    known = attention_layers(pipeline, answer) if heads or layers else []
    hidden: dict[str, list[int]] = {}
    if words or cells:
        some = hideables(answer.looks)
        for numbers, pictures in ((words, False), (cells, True)):
            if not numbers:
                continue
            fitting = [one for one in some.values() if (one.grid is not None) == pictures]
            if not fitting:
                raise WrongUse(f"this model reads no {'picture: hide words' if pictures else 'text: hide cells'}")
            for one in fitting[:1]:
                hidden[one.memory] = one.cells(cells) if pictures else one.words(words)
    return Edit(
        without_heads=[head_named(text, known) for text in heads],
        without_layers=[layer_named(text, known).name for text in layers],
        without_memory=hidden,
    )


def all_heads(layers: Sequence[AttentionLayer]) -> list[tuple[AttentionLayer, int]]:
    """Every head of every layer, the head counted from 1; kinds in the order of the model."""
    ordered = sorted(layers, key=lambda one: KINDS.index(one.kind))
    return [(one, number) for one in ordered for number in range(1, one.heads + 1)]

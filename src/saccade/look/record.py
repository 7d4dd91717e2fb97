"""Where a model looked while it answered: every layer and head as plain numbers, with what stands along their edges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saccade.axes import Axis, Pieces, Positions
from saccade.errors import UserError, WrongUse
from saccade.look.alignment import Alignment, align, clearest
from saccade.look.soundtrack import SoundSheet, Soundtrack
from saccade.runtime.contract import Floats
from saccade.runtime.watch import ArraysHeard
from saccade.sites import SOURCE, TARGET, Kind

if TYPE_CHECKING:
    from PIL.Image import Image

DRAWN_FIRST: tuple[Kind, ...] = ("cross", "decoder", "encoder")
"""What a picture shows, if it was heard: looks at a memory before looks at oneself."""


@dataclass(frozen=True)
class LayerLooks:
    """All looks of one layer, nothing averaged."""

    name: str
    """The layer's name in the model, such as `decoder.blocks.2.cross_attention`."""
    kind: Kind
    memory: str
    """What was looked at: a memory by its name, or `target`, what was written before."""
    weights_NTS: Floats
    """Of every head, row and column; rows sum to 1."""
    rows: Axis
    columns: Axis
    part: int = 0
    """Which part of the input, where it was read in several, counted from 0."""
    title: str = ""
    """What stands below its picture, where that is not which layer and heads it shows."""


@dataclass(frozen=True, eq=False)
class Looks:
    """Where a model looked while it gave one answer: the attention weights of every layer and head. `answer.looks`.

    >>> looks = saccade.load("en-es")("this cat is very large").looks
    >>> looks.target
    [' este', ' gato', ' es', ' muy', ' grande', '(end)']
    >>> looks.cross.shape  # layers, heads, tokens written, tokens read
    (2, 5, 6, 6)
    """

    layers: tuple[LayerLooks, ...]
    """In the order they looked."""
    layer: int | None = None
    """The layer that is drawn unless another is asked for, counted from 1; None: the clearest one."""
    sounds: tuple[Soundtrack, ...] = ()
    """What was heard in each part of a recording; no part of what `save` writes."""

    def over(self, sounds: "Sequence[Soundtrack]") -> "Looks":
        """The same, drawn over what was heard."""
        return replace(self, sounds=tuple(sounds))

    @classmethod
    def of(
        cls, heard: ArraysHeard, axes: Mapping[str, Axis], *, written: Axis | None = None, layer: int | None = None
    ) -> "Looks":
        """What was heard in one pass over one text. `axes` are what is looked at, by the names of memories; `written`
        labels each look of a decoder."""
        found = []
        for look in heard:
            weights_NTS = look.weights_BNTS[0]
            columns = axes.get(look.memory) or Positions(count=weights_NTS.shape[2])
            rows = columns if look.kind == "encoder" else written or Positions(count=weights_NTS.shape[1])
            found.append(LayerLooks(look.name, look.kind, look.memory, weights_NTS, rows, columns))
        return cls(tuple(found), layer)

    @classmethod
    def join(cls, parts: "Sequence[Looks]") -> "Looks":
        """Of an input that was read in several parts."""
        layers = [replace(one, part=number) for number, part in enumerate(parts) for one in part.layers]
        return cls(tuple(layers), parts[0].layer)

    @cached_property
    def parts(self) -> int:
        """In how many parts the input was read."""
        return 1 + max((one.part for one in self.layers), default=0)

    def part(self, number: int) -> "Looks":
        """The looks of one part, counted from 0."""
        if not 0 <= number < self.parts:
            raise WrongUse(f"part {number} asked, but there are {self.parts}, counted from 0")
        kept = (replace(one, part=0) for one in self.layers if one.part == number)
        return replace(self, layers=tuple(kept), sounds=self.sounds[number : number + 1])

    @cached_property
    def memories(self) -> list[str]:
        """What was looked at by what was written, in the order it was."""
        return list(dict.fromkeys(one.memory for one in self.layers if one.kind == "cross"))

    def select(self, kind: Kind, memory: str | None = None) -> list[LayerLooks]:
        """The layers of one kind, first to last; of one memory, and of one part, of which there may be several."""
        found = [one for one in self.layers if one.kind == kind and memory in (None, one.memory)]
        if len(names := list(dict.fromkeys(one.memory for one in found))) > 1:
            raise WrongUse(f"there are looks at {' and '.join(names)}: name one of them")
        if self.parts > 1:
            raise WrongUse(
                f"the input was read in {self.parts} parts: take one with .part(0) to .part({self.parts - 1})"
            )
        return found

    def of_kind(self, kind: Kind, memory: str | None = None) -> Floats:
        """[L, N, T, S]; no layers if none looked."""
        found = [one.weights_NTS for one in self.select(kind, memory)]
        return np.stack(found) if found else np.zeros((0, 1, 1, 1), dtype=np.float32)

    @property
    def cross(self) -> Floats:
        """[L, N, T, S]: the decoder's looks at the memory."""
        return self.of_kind("cross")

    @property
    def encoder(self) -> Floats:
        """[L, N, S, S]: the source's looks at itself."""
        return self.of_kind("encoder")

    @property
    def decoder(self) -> Floats:
        """[L, N, T, T]: the target's looks at its own past."""
        return self.of_kind("decoder")

    @property
    def source(self) -> list[str]:
        """What is looked at in a picture, position by position."""
        return _labels(self._drawn()[0].columns)

    @property
    def target(self) -> list[str]:
        """What looks in a picture, position by position."""
        return _labels(self._drawn()[0].rows)

    def _drawn(self, memory: str | None = None) -> list[LayerLooks]:
        for kind in DRAWN_FIRST:
            chosen = memory if memory is not None else self.memories[0] if kind == "cross" and self.memories else None
            if found := self.select(kind, chosen):
                return found
        if memory is not None and (known := [*dict.fromkeys(one.memory for one in self.layers)]):
            raise WrongUse(f"there are no looks at {memory!r}, but at {', '.join(known)}")
        raise WrongUse("this model has no attention: it hands over one vector, and there is nothing to draw")

    def alignment(
        self, layer: int | None = None, head: int | None = None, *, memory: str | None = None, part: int | None = None
    ) -> Alignment:
        """Attention between words: one layer, one head or the mean over its heads, both counted from 1.

        A target word's look is the mean of its pieces'; a source word collects the sum over its pieces.
        """
        if part is not None:
            return self.part(part).alignment(layer, head, memory=memory)
        found = self._drawn(memory)
        asked = self.layer if layer is None else layer
        number = (
            1 + clearest([one.weights_NTS for one in found]) if asked is None else _within(asked, len(found), "layer")
        )
        one = found[number - 1]
        heads = len(one.weights_NTS)
        chosen = None if head is None else _within(head, heads, "head")
        weights_TS = one.weights_NTS.mean(axis=0) if chosen is None else one.weights_NTS[chosen - 1]
        which = "one head" if heads == 1 else f"mean of {heads} heads" if head is None else f"head {head} of {heads}"
        kind = "cross-attention" if one.kind == "cross" else "self-attention"
        at = f" at the {one.memory}" if one.kind == "cross" and one.memory != SOURCE else ""
        title = one.title or f"{kind}{at}, layer {number} of {len(found)}, {which}"
        found_one = align(weights_TS, one.rows, one.columns, title)
        if not self.sounds or one.kind != "cross":
            return found_one
        letters = [one.rows.name([place]) for place in range(len(one.rows))]
        return replace(found_one, sound=SoundSheet(self.sounds[0], letters, weights_TS, title))

    def alignments(self, layer: int | None = None, head: int | None = None) -> list[Alignment]:
        """One for every part of the input and every memory."""
        found = []
        for number in range(self.parts):
            part = self.part(number)
            if part.memories:
                found += [part.alignment(layer, head, memory=memory) for memory in part.memories]
            else:
                found.append(part.alignment(layer, head))
        return found

    def picture(
        self,
        path: str | Path,
        *,
        layer: int | None = None,
        head: int | None = None,
        image: "str | Path | Image | None" = None,
    ) -> Path:
        """Draw the alignments into a PNG or SVG file; `image` is the picture, or its file, that was looked at."""
        from saccade.look.picture import draw

        return draw(self.alignments(layer, head), Path(path), image)

    def save(self, path: str | Path) -> Path:
        """Everything in one file, which `Looks.load` reads."""
        from saccade.look.file import save_looks

        return save_looks(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Looks":
        """Read a file that `save` wrote."""
        from saccade.look.file import load_looks

        return load_looks(Path(path))

    def __repr__(self) -> str:
        said = []
        for kind, memory in dict.fromkeys((one.kind, one.memory) for one in self.layers):
            found = [one for one in self.layers if (one.kind, one.memory, one.part) == (kind, memory, 0)]
            at = f" at {memory}" if memory not in (SOURCE, TARGET) else ""
            shape = " × ".join(map(str, found[0].weights_NTS.shape)) if found else "none in the first part"
            said.append(f"{kind}{at}: {len(found)} layers of {shape}")
        parts = f"{self.parts} parts, the first with " if self.parts > 1 else ""
        return f"<Looks {parts}{'; '.join(said) or 'of no attention'}>"

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        from saccade.look.picture import png

        try:
            return png(self.alignments())
        except UserError:
            return None  # nothing to draw, or too much

    def _repr_html_(self) -> str | None:
        """The picture in a page, with what it is of."""
        from saccade.look.picture import html

        try:
            return html(self.alignments(), repr(self))
        except UserError:
            return None


def _labels(axis: Axis) -> list[str]:
    return list(axis.labels) if isinstance(axis, Pieces) else [axis.name([place]) for place in range(len(axis))]


def _within(number: int, count: int, what: str) -> int:
    if not 1 <= number <= count:
        raise WrongUse(f"{what} {number} asked, but there are {count}, counted from 1")
    return number

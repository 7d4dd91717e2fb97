"""What every runtime promises: an encoder reads into a memory, a decoder writes token by token, arrays in and out.

Plain NumPy, the C kernels and PyTorch (`models/answering.py`) all keep it, so that searches and pipelines are written
once. Rows are texts under way; each knows which memory it looks at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from saccade.arch.memories import check_memories

Array = npt.NDArray[np.generic]
Floats = npt.NDArray[np.floating[Any]]
Ids = npt.NDArray[np.integer[Any]]
Booleans = npt.NDArray[np.bool_]
Source = npt.NDArray[Any]
"""What an encoder's front end takes: ids of tokens, or pictures [M, height, width, channels]."""
ArraySources = Mapping[str, tuple[Source, Booleans | None]]
"""What several encoders read, by the names of their memories: the input, and which of it is real, tokens [M, S] or
pixels [M, height, width]."""
How = Literal["exact", "int16", "int8"]
"""exact: float32 as trained. int16 (12-bit weights) is near lossless; int8 is the smallest and may change a word."""


@dataclass(frozen=True)
class ArrayMemory:
    """What an encoder leaves for a decoder to look at."""

    states_MSD: Floats
    mask_MS: Booleans | None = None
    """True where there is something; None when every position is real."""
    final_MF: Floats | None = None
    """The last states of a recurrent encoder, side by side."""
    grid: tuple[int, int] | None = None
    """Height and width, where the last positions are those of a picture, row by row."""

    def rows(self, chosen: Ids) -> "ArrayMemory":
        """Some of the memories, each as often as it is chosen."""
        return ArrayMemory(
            self.states_MSD[chosen],
            None if self.mask_MS is None else self.mask_MS[chosen],
            None if self.final_MF is None else self.final_MF[chosen],
            self.grid,
        )

    @property
    def summary_MF(self) -> Floats:
        """All of it in one vector: the last states of a recurrent encoder, else the mean over real positions."""
        if self.final_MF is not None:
            return self.final_MF
        if self.mask_MS is None:
            whole: Floats = self.states_MSD.mean(axis=1)
            return whole
        real_MS1 = self.mask_MS[..., None].astype(np.float32)
        mean: Floats = (self.states_MSD * real_MS1).sum(axis=1) / real_MS1.sum(axis=1)
        return mean


@dataclass(frozen=True)
class ArrayMemories:
    """What several encoders left of the same inputs, each under its own name."""

    by_name: Mapping[str, ArrayMemory]

    def rows(self, chosen: Ids) -> "ArrayMemories":
        """Some of the inputs, each as often as it is chosen."""
        return ArrayMemories({name: memory.rows(chosen) for name, memory in self.by_name.items()})


AnyArrayMemory = ArrayMemory | ArrayMemories


def memories_by_name(memory: AnyArrayMemory | None, names: Sequence[str]) -> dict[str, ArrayMemory]:
    """The memories that a decoder looks at, in the order of its `names`; none where there is no memory."""
    if memory is None:
        return {}
    if isinstance(memory, ArrayMemory):
        memory = ArrayMemories(dict.fromkeys(names[:1], memory))
    check_memories(memory.by_name, names)
    return {name: memory.by_name[name] for name in names}


class StateLike(Protocol):
    """What a decoder remembers of what it has written, one row per text under way.

    A state is consumed by the call it is passed to; go on with the one that comes back.
    """

    @property
    def rows(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def reorder(self, rows: Ids) -> Self:
        """Row i of the result is row rows[i]."""
        ...

    def repeat(self, times: int) -> Self:
        """Each row so many times, side by side: a text's beginning is written once for all its beams."""
        ...

    def join(self, other: Self) -> Self:
        """The rows of both."""
        ...


S = TypeVar("S", bound=StateLike)


class EncoderLike(Protocol):
    """Reads padded token rows, or what else its front end takes."""

    def __call__(self, source_MS: Source, mask_MS: Booleans | None = None) -> ArrayMemory: ...


class DecoderLike(Protocol[S]):
    """Writes. Rows are grouped by memory at the start: with K rows each, rows 0…K-1 look at the first."""

    def start(self, memory: AnyArrayMemory | None, rows: int = 1) -> S:
        """A state that has written nothing, with `rows` rows per memory."""
        ...

    def extend(self, tokens_BT: Ids, lengths_B: Ids, state: S, *, every: bool = False) -> tuple[Floats, S]:
        """Write row b's first lengths_B[b] tokens, at least one; logits [B, V] of what follows each row's last one, or
        of what follows `every` token: [B, T, V], past a row's length meaningless."""
        ...

    def step(self, tokens_B: Ids, state: S) -> tuple[Floats, S]:
        """Write one token in every row; logits [B, V] of the next, which the caller may change and the next step of
        this state may overwrite."""
        ...


def last_of(values_BTX: Floats, lengths_B: Ids) -> Floats:
    """Of each row what stands at its last position: [B, X]."""
    last_BX: Floats = values_BTX[np.arange(len(values_BTX)), np.asarray(lengths_B) - 1]
    return last_BX


AnyDecoder = DecoderLike[Any]
"""A decoder whose states only it knows."""


def join_memories(
    mine: list[Floats], theirs: list[Floats], my_mask: Booleans | None, their_mask: Booleans | None
) -> tuple[list[Floats], Booleans]:
    """What two states keep of their memories, each [B, …, S, H], padded to the longer one; and which positions are
    real."""
    longest = max(mine[0].shape[-2], theirs[0].shape[-2])
    masks = []
    for parts, mask in ((mine, my_mask), (theirs, their_mask)):
        rows, source = len(parts[0]), parts[0].shape[-2]
        real = np.ones((rows, source), dtype=bool) if mask is None else mask
        masks.append(np.pad(real, ((0, 0), (0, longest - source))))

    def lengthened(part: Floats) -> Floats:
        return np.pad(part, [*[(0, 0)] * (part.ndim - 2), (0, longest - part.shape[-2]), (0, 0)])

    joined = [np.concatenate([lengthened(one), lengthened(other)]) for one, other in zip(mine, theirs, strict=True)]
    return joined, np.concatenate(masks)

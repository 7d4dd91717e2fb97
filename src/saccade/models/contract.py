"""What every encoder and decoder promises, so that any encoder goes with any decoder and search is written once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from saccade.arch.memories import check_memories
from saccade.nn.pooling import average_pool


@dataclass(frozen=True)
class Memory:
    """What an encoder leaves behind for a decoder to look at."""

    states_MSD: Tensor
    mask_MS: Tensor | None = None
    """True where there is something; None when every position is real."""
    final: Tensor | None = None
    """What a recurrent decoder starts from."""
    grid: tuple[int, int] | None = None
    """Height and width, where the last positions are those of a picture, row by row."""

    @property
    def summary_MF(self) -> Tensor:
        """All of it in one vector: the last states of a recurrent encoder, else the mean over real positions."""
        return average_pool(self.states_MSD, self.mask_MS) if self.final is None else self.final

    def rows(self, chosen: Tensor) -> "Memory":
        """Some of the memories, each as often as it is chosen."""
        mask_MS, final = (None if part is None else part[chosen] for part in (self.mask_MS, self.final))
        return Memory(self.states_MSD[chosen], mask_MS, final, self.grid)


@dataclass(frozen=True)
class NamedMemories:
    """What several encoders left of the same inputs, each under its own name."""

    by_name: Mapping[str, Memory]

    def rows(self, chosen: Tensor) -> "NamedMemories":
        """Some of the inputs, each as often as it is chosen."""
        return NamedMemories({name: memory.rows(chosen) for name, memory in self.by_name.items()})


AnyMemory = Memory | NamedMemories


def memories_by_name(memory: AnyMemory | None, names: Sequence[str]) -> dict[str, Memory]:
    """The memories that a decoder looks at, in the order of its `names`; none where there is no memory."""
    if memory is None:
        return {}
    if isinstance(memory, Memory):
        memory = NamedMemories(dict.fromkeys(names[:1], memory))
    check_memories(memory.by_name, names)
    return {name: memory.by_name[name] for name in names}


def inputs_of(memory: AnyMemory) -> int:
    """How many inputs were read."""
    one = memory if isinstance(memory, Memory) else next(iter(memory.by_name.values()))
    return len(one.states_MSD)


def rows_per_memory(tokens_BT: Tensor, memory: AnyMemory | None) -> int:
    """How many texts look at each memory."""
    return 1 if memory is None else len(tokens_BT) // inputs_of(memory)


def memories_kept(rows: Tensor, before: int, memories: int) -> Tensor | None:
    """Which memories are looked at once `before` rows are reordered to `rows`; None when they stay as they are.

    Beams usually change places within their sentence: then nothing has to be copied.
    """
    share = before // memories
    kept = rows[::share] // share
    return None if torch.equal(kept, torch.arange(memories, device=kept.device)) else kept


def join_memories(
    mine: Sequence[Tensor], theirs: Sequence[Tensor], my_mask_MS: Tensor | None, their_mask_MS: Tensor | None
) -> tuple[list[Tensor], Tensor]:
    """What two states keep of their memories, each [M, …, S, D], as long as the longer one; and which positions are
    real."""
    longest = max(mine[0].shape[-2], theirs[0].shape[-2])
    masks = []
    for parts, mask_MS in ((mine, my_mask_MS), (theirs, their_mask_MS)):
        memories, source = len(parts[0]), parts[0].shape[-2]
        real_MS = parts[0].new_ones(memories, source, dtype=torch.bool) if mask_MS is None else mask_MS
        masks.append(nn.functional.pad(real_MS, (0, longest - source)))

    def lengthened(part: Tensor) -> Tensor:
        return nn.functional.pad(part, (0, 0, 0, longest - part.shape[-2]))

    joined = [torch.cat([lengthened(one), lengthened(other)]) for one, other in zip(mine, theirs, strict=True)]
    return joined, torch.cat(masks)


class State(Protocol):
    """What a decoder remembers of what it has written, one row per text under way.

    A state is consumed by the call it is passed to; go on with the one that comes back.
    """

    @property
    def rows(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def own(self, numbers: np.ndarray) -> Tensor:
        """Rows or tokens as tensors, where the state is."""
        return torch.from_numpy(numbers).to(self.device)

    @property
    def nbytes(self) -> int: ...

    def reorder(self, rows: Tensor) -> Self:
        """Row i of the result is row rows[i]. Rows that share a memory stay together: the rows of one
        memory come from rows of one memory."""
        ...

    def repeat(self, times: int) -> Self:
        """Each row so many times, side by side: a text's beginning is written once for all its beams."""
        ...

    def join(self, other: Self) -> Self:
        """The rows of both."""
        ...


class Encoder(nn.Module):
    """Reads X."""

    width: int
    """Width of its states."""

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None) -> Memory:
        """`source_MS` is what its front end takes: tokens, or pictures [M, height, width, channels]; the mask is True
        where there are any: [M, S], or [M, height, width]."""
        raise NotImplementedError

    def flops(self, source: int) -> float:
        """Floating-point operations of one forward pass over `source` positions, in weight matrices."""
        raise NotImplementedError


class TextEncoder(Encoder):
    """Reads a text, or two as one row, to be classified or tagged."""

    context: int
    """Tokens it reads at once, at most."""

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None, segments_MS: Tensor | None = None) -> Memory:
        """`segments_MS` says which of two texts each token is of; None where there is one."""
        raise NotImplementedError


class Decoder(nn.Module):
    """Writes Y.

    `forward` is teacher forced; `start`, `extend` and `step` write token by token and give the
    same logits. Rows are grouped by memory: with K rows each, rows 0…K-1 look at the first.
    """

    head: nn.Linear
    """The output layer: logits = head(features). A loss may go through it a few rows at a time."""

    def forward(self, tokens_BT: Tensor, memory: AnyMemory | None = None) -> Tensor:
        """Logits [B, T, V] of the token that follows each position."""
        return self.logits(self.features(tokens_BT, memory))

    def features(self, tokens_BT: Tensor, memory: AnyMemory | None = None) -> Tensor:
        """[B, T, D]: what `logits` reads; apart from it, so that a loss can leave out padding first."""
        raise NotImplementedError

    def logits(self, features: Tensor) -> Tensor:
        """[..., D] -> [..., V]"""
        result: Tensor = self.head(features)
        return result

    def start(self, memory: AnyMemory | None, rows: int = 1) -> State:
        """A state that has written nothing, with `rows` rows per memory."""
        raise NotImplementedError

    def extend(self, tokens_BT: Tensor, lengths_B: Tensor, state: State) -> tuple[Tensor, State]:
        """Write row b's first lengths_B[b] tokens; logits [B, T, V], past a row's length meaningless."""
        raise NotImplementedError

    def step(self, tokens_B: Tensor, state: State) -> tuple[Tensor, State]:
        """Write one token in every row; logits [B, V] of the next, which the caller may change and the next
        step of this state may overwrite."""
        raise NotImplementedError

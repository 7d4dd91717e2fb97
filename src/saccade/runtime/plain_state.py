"""What a plain Transformer decoder remembers: cached keys and values, and the memories its rows look at."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from saccade.runtime.contract import Booleans, Floats, Ids, join_memories

KeysValues = tuple[Floats, Floats]
"""[B, N, S, H] each."""


@dataclass(frozen=True)
class PlainMemory:
    """A memory as each layer, and each row, looks at it."""

    layers: list[KeysValues]
    mask_BS: Booleans | None

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for pair in self.layers for part in pair)

    def reorder(self, rows: Ids) -> "PlainMemory":
        mask_BS = None if self.mask_BS is None else self.mask_BS[rows]
        return PlainMemory([(k[rows], v[rows]) for k, v in self.layers], mask_BS)

    def join(self, other: "PlainMemory") -> "PlainMemory":
        mine, theirs = ([part for pair in memory.layers for part in pair] for memory in (self, other))
        joined, mask_BS = join_memories(mine, theirs, self.mask_BS, other.mask_BS)
        return PlainMemory(list(zip(joined[::2], joined[1::2], strict=True)), mask_BS)


@dataclass(frozen=True)
class PlainState:
    """Cached keys and values of what was written, and those of each row's memories."""

    pasts: list[KeysValues]
    lengths_B: Ids
    """How much each row has written."""
    memories: Mapping[str, PlainMemory]
    """By name."""
    memory_of: Ids
    """Which memory each row looks at, by number."""

    @property
    def rows(self) -> int:
        return len(self.lengths_B)

    @property
    def nbytes(self) -> int:
        written = sum(part.nbytes for pair in self.pasts for part in pair)
        return written + sum(memory.nbytes for memory in self.memories.values())

    def reorder(self, rows: Ids) -> "PlainState":
        after = replace(
            self,
            pasts=[(k[rows], v[rows]) for k, v in self.pasts],
            lengths_B=self.lengths_B[rows],
            memory_of=self.memory_of[rows],
        )
        # Beams usually change places within their sentence: then no memory has to be copied.
        if np.array_equal(after.memory_of, self.memory_of):
            return after
        return replace(after, memories={name: memory.reorder(rows) for name, memory in self.memories.items()})

    def repeat(self, times: int) -> "PlainState":
        return self.reorder(np.arange(self.rows).repeat(times))

    def join(self, other: "PlainState") -> "PlainState":
        room = max(state.pasts[0][0].shape[2] for state in (self, other))
        mine, theirs = (state.with_room(room, exactly=True).pasts for state in (self, other))
        return PlainState(
            pasts=[
                (np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))
                for one, other in zip(mine, theirs, strict=True)
            ],
            lengths_B=np.concatenate([self.lengths_B, other.lengths_B]),
            memories={name: memory.join(other.memories[name]) for name, memory in self.memories.items()},
            memory_of=np.concatenate([self.memory_of, other.memory_of + self.memory_of.max() + 1]),
        )

    def with_room(self, length: int, *, exactly: bool = False) -> "PlainState":
        """The same with room for texts of this length; unless told exactly, it doubles, so that steps seldom copy."""
        room = self.pasts[0][0].shape[2]
        if length <= room:
            return self
        more = ((0, 0), (0, 0), (0, (length if exactly else max(length, 2 * room)) - room), (0, 0))
        return replace(self, pasts=[(np.pad(k, more), np.pad(v, more)) for k, v in self.pasts])

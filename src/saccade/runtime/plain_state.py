"""What a plain Transformer decoder remembers: cached keys and values, and the memories its rows look at."""

from dataclasses import dataclass, replace

import numpy as np

from saccade.runtime.contract import Booleans, Floats, Ids, join_memories

KeysValues = tuple[Floats, Floats]
"""[B, N, S, H] each."""


@dataclass(frozen=True)
class PlainState:
    """Cached keys and values of what was written, and those of each row's memory."""

    pasts: list[KeysValues]
    lengths_B: Ids
    """How much each row has written."""
    memories: list[KeysValues]
    memory_mask: Booleans | None
    """[B, S]"""
    memory_of: Ids
    """Which memory each row looks at, by number."""

    @property
    def rows(self) -> int:
        return len(self.lengths_B)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for pair in (*self.pasts, *self.memories) for part in pair)

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
        mask = None if self.memory_mask is None else self.memory_mask[rows]
        return replace(after, memories=[(k[rows], v[rows]) for k, v in self.memories], memory_mask=mask)

    def repeat(self, times: int) -> "PlainState":
        return self.reorder(np.arange(self.rows).repeat(times))

    def join(self, other: "PlainState") -> "PlainState":
        room = max(state.pasts[0][0].shape[2] for state in (self, other))
        mine, theirs = (state.with_room(room, exactly=True).pasts for state in (self, other))
        memories, mask = [], None
        if self.memories:
            ours, others = ([part for pair in state.memories for part in pair] for state in (self, other))
            joined, mask = join_memories(ours, others, self.memory_mask, other.memory_mask)
            memories = list(zip(joined[::2], joined[1::2], strict=True))
        return PlainState(
            pasts=[
                (np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]]))
                for one, other in zip(mine, theirs, strict=True)
            ],
            lengths_B=np.concatenate([self.lengths_B, other.lengths_B]),
            memories=memories,
            memory_mask=mask,
            memory_of=np.concatenate([self.memory_of, other.memory_of + self.memory_of.max() + 1]),
        )

    def with_room(self, length: int, *, exactly: bool = False) -> "PlainState":
        """The same with room for texts of this length; unless told exactly, it doubles, so that steps seldom copy."""
        room = self.pasts[0][0].shape[2]
        if length <= room:
            return self
        more = ((0, 0), (0, 0), (0, (length if exactly else max(length, 2 * room)) - room), (0, 0))
        return replace(self, pasts=[(np.pad(k, more), np.pad(v, more)) for k, v in self.pasts])

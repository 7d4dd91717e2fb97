"""What a decoder on the C kernels remembers: keys and values in a pool of slots, and the memories its rows look at.

Nobody moves what is in the pool. A row is a list of places in it, so beams change places by changing their lists, and
the slots that no list names any more are found and used again when the pool is full.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from saccade.runtime.contract import Floats, Ids

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
FIRST_STEPS = 64
"""The pool has room for so many tokens of each row at first, and grows."""


@dataclass
class Memories:
    """What encoders left, projected once to keys and values: of each memory where it stands and how long it is."""

    owners: list[Floats]
    """Arrays [layers, positions, 2 x width], each with one or more memories side by side."""
    owner_of: Int32s
    addresses: Int64s
    """Of each memory's first key in the first layer."""
    strides: Int64s
    """Floats from one layer to the next."""
    sources: Int32s
    """Positions of each."""

    @classmethod
    def none(cls) -> "Memories":
        numbers, places = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
        return cls([], numbers, places, places, numbers)

    @classmethod
    def of(cls, keys_values: Floats, sources: Int32s) -> "Memories":
        """Memories that stand one after the other in one array."""
        width = keys_values.shape[2]
        firsts = np.cumsum(sources, dtype=np.int64) - sources
        return cls(
            owners=[keys_values],
            owner_of=np.zeros(len(sources), dtype=np.int32),
            addresses=keys_values.ctypes.data + firsts * width * keys_values.itemsize,
            strides=np.full(len(sources), keys_values.shape[1] * width, dtype=np.int64),
            sources=sources,
        )

    @cached_property
    def longest(self) -> int:
        return int(self.sources.max(initial=0))

    @cached_property
    def pointers(self) -> tuple[int, int, int]:
        """Of addresses, strides and sources; asked for at every step."""
        return self.addresses.ctypes.data, self.strides.ctypes.data, self.sources.ctypes.data

    @property
    def nbytes(self) -> int:
        return sum(owner.nbytes for owner in self.owners)

    def only(self, numbers: Ids) -> "Memories":
        """Some of them; arrays that hold none of these are let go."""
        used, owner_of = np.unique(self.owner_of[numbers], return_inverse=True)
        return Memories(
            owners=[self.owners[i] for i in used],
            owner_of=owner_of.astype(np.int32),
            addresses=self.addresses[numbers],
            strides=self.strides[numbers],
            sources=self.sources[numbers],
        )

    def __add__(self, other: "Memories") -> "Memories":
        return Memories(
            owners=[*self.owners, *other.owners],
            owner_of=np.concatenate([self.owner_of, other.owner_of + np.int32(len(self.owners))]),
            addresses=np.concatenate([self.addresses, other.addresses]),
            strides=np.concatenate([self.strides, other.strides]),
            sources=np.concatenate([self.sources, other.sources]),
        )


@dataclass
class KernelState:
    """What was written, as places in a pool; which memory each row looks at."""

    pool: Floats
    """[layers, slots, keys and values]"""
    free: Int32s
    """Slots that nobody uses, the next one last."""
    places: Int32s
    """[B, capacity] slots of each row's tokens, in order."""
    lengths: Int32s
    """[B] how many each row has."""
    memories: Memories
    memory_of: Int32s
    """[B]"""
    vocabulary: int
    logits_buffer: Floats = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    """[B, V] for the next token's logits: fresh memory for each step would be cleared page by page."""

    @classmethod
    def empty(
        cls, layers: int, key_values: int, memories: Memories, memory_of: Int32s, vocabulary: int
    ) -> "KernelState":
        rows = len(memory_of)
        return cls(
            pool=np.empty((layers, 0, key_values), dtype=np.float32),
            free=np.zeros(0, dtype=np.int32),
            places=np.zeros((rows, FIRST_STEPS), dtype=np.int32),
            lengths=np.zeros(rows, dtype=np.int32),
            memories=memories,
            memory_of=memory_of,
            vocabulary=vocabulary,
        )

    @property
    def rows(self) -> int:
        return len(self.lengths)

    @property
    def longest(self) -> int:
        return int(self.lengths.max(initial=0))

    @property
    def nbytes(self) -> int:
        return self.pool.nbytes + self.memories.nbytes

    def reorder(self, rows: Ids) -> "KernelState":
        self.places, self.lengths, self.memory_of = self.places[rows], self.lengths[rows], self.memory_of[rows]
        return self

    def repeat(self, times: int) -> "KernelState":
        return self.reorder(np.arange(self.rows).repeat(times))

    def join(self, other: "KernelState") -> "KernelState":
        """The other's slots are copied into free ones of this pool: what joins is mostly small."""
        theirs = other._used()
        slots = np.zeros(other.pool.shape[1], dtype=np.int32)
        slots[theirs] = self._take(len(theirs))
        self.pool[:, slots[theirs]] = other.pool[:, theirs]
        capacity = max(self.places.shape[1], other.places.shape[1])
        moved = slots[other.places] if len(slots) else other.places
        self.places = np.concatenate([_widened(self.places, capacity), _widened(moved, capacity)])
        self.lengths = np.concatenate([self.lengths, other.lengths])
        mine, my_numbers = np.unique(self.memory_of, return_inverse=True)
        if len(self.memories.sources):
            self.memories = self.memories.only(mine) + other.memories
            self.memory_of = my_numbers.astype(np.int32)
        self.memory_of = np.concatenate([self.memory_of, other.memory_of + np.int32(len(mine))])
        return self

    def add_tokens(self, texts: Ids, counts: Int32s) -> None:
        """Give some rows slots for so many new tokens each, at least one."""
        before = self.lengths[texts]
        after = before + counts
        slots = self._take(int(counts.sum()))
        if (longest := int(after.max())) > self.places.shape[1]:
            self.places = _widened(self.places, max(longest, 2 * self.places.shape[1]))
        steps = np.arange(len(slots)) - np.repeat(np.cumsum(counts) - counts, counts)
        self.places[np.repeat(texts, counts), np.repeat(before, counts) + steps] = slots
        self.lengths = self.lengths.copy()
        self.lengths[texts] = after

    def add_token(self) -> None:
        """Give every row a slot for its next token."""
        rows, slots = self.rows, self._take(self.rows)
        if self.longest >= self.places.shape[1]:
            self.places = _widened(self.places, 2 * self.places.shape[1])
        self.places[np.arange(rows), self.lengths] = slots
        self.lengths = self.lengths + np.int32(1)

    def logits(self) -> Floats:
        """Room for every row's logits."""
        if len(self.logits_buffer) < self.rows:
            self.logits_buffer = np.empty((self.rows, self.vocabulary), dtype=np.float32)
        return self.logits_buffer[: self.rows]

    def _take(self, count: int) -> Int32s:
        if count > len(self.free):
            self._make_room(count)
        taken = self.free[len(self.free) - count :][::-1]
        self.free = self.free[: len(self.free) - count]
        return taken

    def _used(self) -> Ids:
        """The slots that some row names."""
        named = np.arange(self.places.shape[1]) < self.lengths[:, None]
        return np.unique(self.places[named])

    def _make_room(self, count: int) -> None:
        """Find the slots that nobody names any more; where that leaves less than half of the pool, it grows."""
        slots, used = self.pool.shape[1], self._used()
        needed = max(2 * (len(used) + count), FIRST_STEPS * self.rows)
        if needed > slots:
            grown = np.empty((self.pool.shape[0], needed, self.pool.shape[2]), dtype=np.float32)
            grown[:, :slots] = self.pool
            self.pool = grown
        unused = np.ones(self.pool.shape[1], dtype=bool)
        unused[used] = False
        self.free = np.flatnonzero(unused)[::-1].astype(np.int32)


def _widened(places: Int32s, capacity: int) -> Int32s:
    return np.pad(places, ((0, 0), (0, capacity - places.shape[1])))

"""A Transformer's two stacks on the C kernels, in NumPy alone: the same contracts, one call for all layers of a step.

The plain modules stay as the oracle; these read their weights and must give the same logits, up to
the rounding of the packing. The past is a pool of slots that nobody moves: a row is a list of places in it,
so beams change places by changing their lists.

Between the calls there is NumPy only. A single PyTorch operator that opens a parallel region leaves its
threads spinning for milliseconds, on the very cores the kernels' threads need; and who only translates a sentence
need not wait for PyTorch to be imported.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade import native
from saccade.decode.packed import Packed
from saccade.decode.stack import FIRST_POSITIONS, Numbers, Places, Stack

FIRST_STEPS = 64
"""The pool has room for so many steps at first, and doubles."""
LARGE = 16_000
"""Vocabularies from here on are worth two looks: of 8,000 tokens, finding the likeliest takes what bytes save."""


class LeanStack:
    """The blocks of a stack as the kernels want them; keeps alive what they point to."""

    def __init__(self, plain: Stack, bits: int) -> None:
        self.library = native.needed()
        self.plain, self.bits, self.width = plain, bits, plain.width
        self.kept: list[Any] = []
        layers = (native.Layer * plain.layers)()
        for number, layer in enumerate(layers):
            block = f"blocks.{number}"
            layer.around_self = self._norm(f"{block}.around_self.norm")
            layer.around_feedforward = self._norm(f"{block}.around_feedforward.norm")
            layer.project = self._linear(f"{block}.self_attention.project")
            layer.out = self._linear(f"{block}.self_attention.out")
            layer.widen = self._linear(f"{block}.feedforward.widen")
            layer.narrow = self._linear(f"{block}.feedforward.narrow")
            if plain.cross:
                layer.around_cross = self._norm(f"{block}.around_cross.norm")
                layer.query = self._linear(f"{block}.cross_attention.query")
                layer.cross_out = self._linear(f"{block}.cross_attention.out")
        self.stack = native.Stack(
            layers=plain.layers,
            width=self.width,
            heads=plain.heads,
            hidden=plain.hidden,
            post=plain.post,
            gelu=plain.gelu,
            cross=plain.cross,
            layer=layers,
        )
        if "norm.weight" in plain.weights:
            self.stack.last = ctypes.pointer(self._norm("norm"))
        if "head.weight" in plain.weights:
            self.stack.head = ctypes.pointer(self._linear("head"))
            if self._may_be_rough():
                self.stack.rough = ctypes.pointer(self._linear("head", bits=8))
        self.kept.append(layers)
        self.turns: Numbers = np.zeros((0, 0), dtype=np.float32)

    def turn_up_to(self, last: int) -> None:
        """Have the angles of all positions up to `last`, where positions are rotary."""
        if self.plain.rates is None or last < len(self.turns):
            return
        self.turns = np.ascontiguousarray(self.plain.angles(max(2 * last, FIRST_POSITIONS)))
        self.stack.turns, self.stack.halves = _at(self.turns), self.plain.halves

    def run(self, job: native.Job) -> None:
        if self.library.run_stack(self.stack, job, native.threads()):
            raise MemoryError(f"no memory for {job.rows} rows")

    def packed(self, name: str, bits: int | None = None) -> Packed:
        weights = self.plain.weights
        return Packed(weights[f"{name}.weight"], weights.get(f"{name}.bias"), bits or self.bits)

    def _may_be_rough(self) -> bool:
        """Whether most of a large vocabulary's logits are computed in bytes, and only those that may be chosen with all
        bits: where bytes are multiplied faster, and a search, not chance, chooses."""
        large = len(self.plain.weights["head.weight"]) >= LARGE
        return large and self.bits == 16 and self.plain.cross and bool(self.library.multiplies_bytes())

    def _linear(self, name: str, bits: int | None = None) -> native.Linear:
        packed = self.packed(name, bits)
        self.kept.append(packed)
        return packed.layer

    def _norm(self, name: str) -> native.Norm:
        parts = [np.ascontiguousarray(self.plain.weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        self.kept += parts
        return native.Norm(*map(_at, parts), self.plain.epsilon)


class LeanEmbedding:
    """`nn/embed.py` in NumPy."""

    def __init__(self, plain: Stack) -> None:
        self.tokens = plain.weights["embed.tokens.weight"]
        self.scale, self.concatenate = np.float32(plain.scale), plain.concatenate
        learned = "embed.positions.vectors.weight" in plain.weights
        self.places = Places(plain) if learned or plain.sinusoids else None

    def __call__(self, tokens: Numbers, positions: Numbers, last: int) -> Numbers:
        """Vectors [..., D] of tokens [...] at positions [...], none higher than `last`."""
        x: Numbers = self.tokens[tokens] * self.scale
        if self.places is None:
            return x
        where = self.places(positions, last)
        if self.concatenate:
            return np.concatenate([x, np.broadcast_to(where, (*x.shape[:-1], where.shape[-1]))], axis=-1)
        x += where
        return x


@dataclass(frozen=True)
class LeanMemory:
    """What an encoder leaves behind, as `models/contract.py` has it."""

    states_MSD: Numbers
    mask_MS: Numbers | None = None

    def rows(self, chosen: Numbers) -> "LeanMemory":
        return LeanMemory(self.states_MSD[chosen], None if self.mask_MS is None else self.mask_MS[chosen])


class LeanEncoder:
    """`TransformerEncoder` in one call."""

    def __init__(self, plain: Stack, bits: int) -> None:
        self.embed = LeanEmbedding(plain)
        self.lean = LeanStack(plain, bits)

    def __call__(self, source_MS: Numbers, mask_MS: Numbers | None = None) -> LeanMemory:
        length = source_MS.shape[1]
        x_MSD = self.embed(source_MS, np.arange(length), length - 1)
        real_MS = _real(mask_MS)
        self.lean.turn_up_to(length - 1)
        self.lean.run(native.Job(rows=source_MS.size, x=_at(x_MSD), length=length, real=_at(real_MS)))
        return LeanMemory(x_MSD, mask_MS)


@dataclass
class LeanState:
    """What was written, as places in a pool; which memory each row looks at."""

    pool: Numbers
    """[layers, slots, 2 x width]: keys and values."""
    used: int
    """Slots that are taken."""
    places: Numbers
    """[B, most] slots of each row's tokens, in order."""
    lengths: Numbers
    """[B] how many each row has."""
    longest: int
    """The largest length."""
    even: bool
    """All rows have that length."""
    memories: list[Numbers]
    """Per layer [M, S, 2 x width]: projected once per memory."""
    memory_real: Numbers | None
    """[M, S] 1 where there is something."""
    memory_of: Numbers
    """[B]"""
    room: Numbers
    """[B, V] for the next token's logits: fresh memory for each step would be cleared page by page."""

    def __post_init__(self) -> None:
        self.memory_pointers = (ctypes.c_void_p * len(self.memories))(*map(_at, self.memories))

    @property
    def rows(self) -> int:
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        return self.pool.nbytes + sum(memory.nbytes for memory in self.memories)

    def own(self, numbers: Numbers) -> Numbers:
        return numbers

    def reorder(self, rows: Numbers) -> "LeanState":
        chosen = np.asarray(rows)
        if len(chosen) > len(self.room):
            self.room = np.empty((len(chosen), self.room.shape[1]), dtype=np.float32)
        self.places, self.lengths, self.memory_of = self.places[chosen], self.lengths[chosen], self.memory_of[chosen]
        if not self.even:
            self._measure()
        return self

    def repeat(self, times: int) -> "LeanState":
        return self.reorder(np.arange(self.rows).repeat(times))

    def join(self, other: "LeanState") -> "LeanState":
        most = max(self.places.shape[1], other.places.shape[1])
        memories, real = _join_memories(self, other)
        shift = np.int32(self.memories[0].shape[0] if self.memories else 0)
        return LeanState(
            pool=np.concatenate([self.pool[:, : self.used], other.pool[:, : other.used]], axis=1),
            used=self.used + other.used,
            places=np.concatenate([_widen(self.places, most), _widen(other.places + np.int32(self.used), most)]),
            lengths=np.concatenate([self.lengths, other.lengths]),
            longest=max(self.longest, other.longest),
            even=self.even and other.even and self.longest == other.longest,
            memories=memories,
            memory_real=real,
            memory_of=np.concatenate([self.memory_of, other.memory_of + shift]),
            room=np.empty((self.rows + other.rows, self.room.shape[1]), dtype=np.float32),
        )

    def add_token(self) -> None:
        """Give every row a new slot for its next token."""
        rows = self.rows
        if self.used + rows > self.pool.shape[1]:
            slots = max(2 * self.used, self.used + FIRST_STEPS * rows)
            grown = np.empty((self.pool.shape[0], slots, self.pool.shape[2]), dtype=np.float32)
            grown[:, : self.used] = self.pool[:, : self.used]
            self.pool = grown
        if self.longest >= self.places.shape[1]:
            self.places = _widen(self.places, 2 * self.places.shape[1])
        column = self.longest if self.even else self.lengths
        self.places[np.arange(rows), column] = np.arange(self.used, self.used + rows, dtype=np.int32)
        self.used += rows
        self.lengths = self.lengths + np.int32(1)
        self.longest += 1

    def shorten(self, lengths: Numbers) -> None:
        """Forget each row's newest tokens."""
        self.lengths = lengths
        self._measure()

    def _measure(self) -> None:
        self.longest = int(self.lengths.max())
        self.even = int(self.lengths.min()) == self.longest


class LeanDecoder:
    """`StackDecoder` step by step. A memory may be of arrays or of tensors."""

    def __init__(self, plain: Stack, bits: int) -> None:
        self.embed = LeanEmbedding(plain)
        self.lean = LeanStack(plain, bits)
        crossing = range(plain.layers) if plain.cross else []
        self.project = [self.lean.packed(f"blocks.{number}.cross_attention.project") for number in crossing]
        self.vocabulary = plain.weights["head.weight"].shape[0]

    def start(self, memory: Any, rows: int = 1) -> LeanState:
        count = len(memory.states_MSD) if memory else 1
        return LeanState(
            pool=np.empty((self.lean.stack.layers, 0, 2 * self.lean.width), dtype=np.float32),
            used=0,
            places=np.zeros((count * rows, FIRST_STEPS), dtype=np.int32),
            lengths=np.zeros(count * rows, dtype=np.int32),
            longest=0,
            even=True,
            memories=self._memories(np.asarray(memory.states_MSD)) if memory else [],
            memory_real=_real(memory.mask_MS) if memory else None,
            memory_of=np.repeat(np.arange(count, dtype=np.int32), rows),
            room=np.empty((count * rows, self.vocabulary), dtype=np.float32),
        )

    def _memories(self, states_MSD: Numbers) -> list[Numbers]:
        projected = [project(states_MSD) for project in self.project]
        if self.lean.plain.rates is not None:
            for keys_values in projected:
                keys_MSD = keys_values[..., : self.lean.width]
                keys_MSD[...] = self.lean.plain.turned(keys_MSD)
        return projected

    def extend(self, tokens_BT: Numbers, lengths_B: Numbers, state: LeanState) -> tuple[Numbers, LeanState]:
        tokens_BT, wanted, written = np.asarray(tokens_BT), np.asarray(lengths_B), []
        for t in range(tokens_BT.shape[1]):
            before = state.lengths
            logits_BV, state = self.step(tokens_BT[:, t], state)
            written.append(logits_BV.copy())
            if (wanted <= t).any():  # rows that have nothing more to write went along, and forget it again
                state.shorten(np.where(wanted > t, state.lengths, before))
        return np.stack(written, axis=1), state

    def step(self, tokens_B: Numbers, state: LeanState) -> tuple[Numbers, LeanState]:
        positions = np.asarray(state.longest) if state.even else state.lengths
        x_BD = self.embed(np.asarray(tokens_B), positions, state.longest)
        logits_BV = state.room[: state.rows]
        self.lean.turn_up_to(state.longest)
        state.add_token()
        self.lean.run(
            native.Job(
                rows=state.rows,
                x=_at(x_BD),
                pool=_at(state.pool),
                capacity=state.pool.shape[1],
                places=_at(state.places),
                lengths=_at(state.lengths),
                most=state.places.shape[1],
                source=state.memories[0].shape[1] if state.memories else 0,
                memory=ctypes.addressof(state.memory_pointers),
                memory_real=_at(state.memory_real),
                memory_of=_at(state.memory_of),
                logits=_at(logits_BV),
            )
        )
        return logits_BV, state


def _at(array: Numbers | None) -> int | None:
    return None if array is None else array.ctypes.data


def _real(mask_MS: Any) -> Numbers | None:
    """A mask as the kernels want it."""
    return None if mask_MS is None else np.asarray(mask_MS).astype(np.uint8, order="C")


def _widen(places: Numbers, most: int) -> Numbers:
    return np.pad(places, ((0, 0), (0, most - places.shape[1])))


def _join_memories(one: LeanState, other: LeanState) -> tuple[list[Numbers], Numbers | None]:
    """What two states keep of their memories, as long as the longer one; and which positions are real."""
    if not one.memories:
        return [], None
    longest = max(state.memories[0].shape[1] for state in (one, other))

    def lengthened(part_MSX: Numbers) -> Numbers:
        return np.pad(part_MSX, ((0, 0), (0, longest - part_MSX.shape[1]), *[(0, 0)] * (part_MSX.ndim - 2)))

    real = [
        np.ones(state.memories[0].shape[:2], dtype=np.uint8) if state.memory_real is None else state.memory_real
        for state in (one, other)
    ]
    memories = [
        np.concatenate([lengthened(mine), lengthened(theirs)])
        for mine, theirs in zip(one.memories, other.memories, strict=True)
    ]
    return memories, np.concatenate([lengthened(part) for part in real])

"""A Transformer's stacks on the C kernels: the same contract as `plain.py`, one call for all layers of a step.

The past is a pool of slots that nobody moves: a row is a list of places in it, so beams change places by changing their
lists. Between the calls there is NumPy only: a single PyTorch operator that opens a parallel region leaves its threads
spinning for milliseconds, on the very cores the kernels' threads need.
"""

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from saccade import native
from saccade.arch.bert import BertConfig
from saccade.arch.block import BlockConfig
from saccade.arch.encoder_decoder import StackConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.positions import RotaryConfig
from saccade.runtime.contract import Array, ArrayMemory, Booleans, Floats, Ids, join_memories, last_of
from saccade.runtime.layers import Weights, merge_heads, rotate, split_heads
from saccade.runtime.packing import Packed
from saccade.runtime.plain import PlainEmbedding

Int32s = npt.NDArray[np.int32]
FIRST_STEPS = 64
"""The pool has room for so many steps at first, and doubles."""
FIRST_POSITIONS = 512
"""Rotary angles that are prepared at once."""
LARGE_VOCABULARY = 16_000
"""Two-pass logits (int8, then int16) pay off from this vocabulary size on."""


def unknown_parts(config: BlockConfig) -> list[str]:
    """The parts of a stack that the kernels cannot run, as recipes name them."""
    found = {
        f"norm = {config.norm!r}": config.norm != "layer",
        "gated = true": config.gated,
        f"activation = {config.activation!r}": config.activation not in ("relu", "gelu"),
        f"key_heads = {config.key_heads}": config.key_heads not in (None, config.heads),
        f"windows = {list(config.windows)}": any(config.windows),
    }
    return [part for part, is_unknown in found.items() if is_unknown]


class KernelStack:
    """The blocks of a stack as the kernels want them; keeps alive what they point to."""

    def __init__(self, config: BlockConfig, weights: Weights, bits: int) -> None:
        self.library = native.needed()
        self.config, self.weights, self.bits = config, weights, bits
        self.crosses = "blocks.0.cross_attention.query.weight" in weights
        self.kept: list[object] = []
        layers = (native.Layer * config.layers)()
        for number, layer in enumerate(layers):
            block = f"blocks.{number}"
            layer.around_self = self._norm(f"{block}.around_self.norm")
            layer.around_feedforward = self._norm(f"{block}.around_feedforward.norm")
            layer.project = self._linear(f"{block}.self_attention.project")
            layer.out = self._linear(f"{block}.self_attention.out")
            layer.widen = self._linear(f"{block}.feedforward.widen")
            layer.narrow = self._linear(f"{block}.feedforward.narrow")
            if self.crosses:
                layer.around_cross = self._norm(f"{block}.around_cross.norm")
                layer.query = self._linear(f"{block}.cross_attention.query")
                layer.cross_out = self._linear(f"{block}.cross_attention.out")
        self.stack = native.Stack(
            layers=config.layers,
            width=config.width,
            heads=config.heads,
            hidden=config.feedforward,
            post=config.order == "post",
            gelu=config.activation == "gelu",
            cross=self.crosses,
            layer=layers,
        )
        if config.order == "pre":
            self.stack.last = ctypes.pointer(self._norm("norm"))
        if "head.weight" in weights:
            self.stack.head = ctypes.pointer(self._linear("head"))
            if self._has_int8_head():
                self.stack.int8_head = ctypes.pointer(self._linear("head", bits=8))
        self.kept.append(layers)
        self.rotary_table = np.zeros((0, 0), dtype=np.float32)

    def prepare_positions(self, last: int) -> None:
        """Have the rotary angles of all positions up to `last`: for each, cosines, then sines."""
        positions = self.config.positions
        if not isinstance(positions, RotaryConfig) or last < len(self.rotary_table):
            return
        width = self.config.head_width
        rates = (positions.base ** (-np.arange(0, width, 2) / width)).astype(np.float32)
        angles = np.arange(max(2 * last, FIRST_POSITIONS), dtype=np.float32)[:, None] * rates
        self.rotary_table = np.ascontiguousarray(np.concatenate([np.cos(angles), np.sin(angles)], axis=-1))
        self.stack.rotary_table, self.stack.halves = _at(self.rotary_table), positions.layout == "halves"

    def run(self, job: native.Job) -> None:
        if self.library.run_stack(self.stack, job, native.threads()):
            raise MemoryError(f"no memory for {job.rows} rows")

    def packed(self, name: str, bits: int | None = None) -> Packed:
        return Packed(self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"), bits or self.bits)

    def _has_int8_head(self) -> bool:
        """Whether most of a large vocabulary's logits are computed in int8, and only those that may be chosen in int16:
        where bytes are multiplied faster, and a search, not a random draw, chooses."""
        large = len(self.weights["head.weight"]) >= LARGE_VOCABULARY
        return large and self.bits == 16 and self.crosses and bool(self.library.multiplies_bytes())

    def _linear(self, name: str, bits: int | None = None) -> native.Linear:
        packed = self.packed(name, bits)
        self.kept.append(packed)
        return packed.layer

    def _norm(self, name: str) -> native.Norm:
        parts = [np.ascontiguousarray(self.weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        self.kept += parts
        return native.Norm(*map(_at, parts), self.config.epsilon)


class KernelEncoder:
    """`PlainEncoder` in one call."""

    def __init__(self, config: StackConfig | BertConfig, weights: Weights, bits: int) -> None:
        self.embed = PlainEmbedding(config, weights)
        self.kernels = KernelStack(config, weights, bits)

    def __call__(self, source_MS: Ids, mask_MS: Booleans | None = None, segments_MS: Ids | None = None) -> ArrayMemory:
        length = source_MS.shape[1]
        x_MSD = np.ascontiguousarray(self.embed(source_MS, np.arange(length)[None], segments_MS))
        real_MS = _bytes(mask_MS)
        self.kernels.prepare_positions(length - 1)
        self.kernels.run(native.Job(rows=source_MS.size, x=_at(x_MSD), length=length, real=_at(real_MS)))
        return ArrayMemory(x_MSD, mask_MS)


@dataclass
class KernelState:
    """What was written, as places in a pool; which memory each row looks at."""

    pool: Floats
    """[layers, slots, 2 x width]: keys and values."""
    used: int
    """Slots that are taken."""
    places: Int32s
    """[B, capacity] slots of each row's tokens, in order."""
    lengths: Int32s
    """[B] how many each row has."""
    longest: int
    """The largest length."""
    even: bool
    """All rows have that length."""
    memories: list[Floats]
    """Per layer [M, S, 2 x width]: projected once per memory."""
    memory_real: Array | None
    """[M, S] 1 where there is something."""
    memory_of: Int32s
    """[B]"""
    logits_buffer: Floats
    """[B, V] for the next token's logits: fresh memory for each step would be cleared page by page."""

    def __post_init__(self) -> None:
        self.memory_pointers = (ctypes.c_void_p * len(self.memories))(*map(_at, self.memories))

    @property
    def rows(self) -> int:
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        return self.pool.nbytes + sum(memory.nbytes for memory in self.memories)

    def reorder(self, rows: Ids) -> "KernelState":
        if len(rows) > len(self.logits_buffer):
            self.logits_buffer = np.empty((len(rows), self.logits_buffer.shape[1]), dtype=np.float32)
        self.places, self.lengths, self.memory_of = self.places[rows], self.lengths[rows], self.memory_of[rows]
        if not self.even:
            self._measure()
        return self

    def repeat(self, times: int) -> "KernelState":
        return self.reorder(np.arange(self.rows).repeat(times))

    def join(self, other: "KernelState") -> "KernelState":
        capacity = max(self.places.shape[1], other.places.shape[1])
        memories, real = _join_memories(self, other)
        shift = np.int32(self.memories[0].shape[0] if self.memories else 0)
        return KernelState(
            pool=np.concatenate([self.pool[:, : self.used], other.pool[:, : other.used]], axis=1),
            used=self.used + other.used,
            places=np.concatenate(
                [_widen(self.places, capacity), _widen(other.places + np.int32(self.used), capacity)]
            ),
            lengths=np.concatenate([self.lengths, other.lengths]),
            longest=max(self.longest, other.longest),
            even=self.even and other.even and self.longest == other.longest,
            memories=memories,
            memory_real=real,
            memory_of=np.concatenate([self.memory_of, other.memory_of + shift]),
            logits_buffer=np.empty((self.rows + other.rows, self.logits_buffer.shape[1]), dtype=np.float32),
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

    def shorten(self, lengths: Int32s) -> None:
        """Forget each row's newest tokens."""
        self.lengths = lengths
        self._measure()

    def _measure(self) -> None:
        self.longest = int(self.lengths.max())
        self.even = int(self.lengths.min()) == self.longest


class KernelDecoder:
    """`PlainDecoder` step by step."""

    def __init__(self, config: StackConfig | GptConfig, weights: Weights, bits: int) -> None:
        self.config = config
        self.embed = PlainEmbedding(config, weights)
        self.kernels = KernelStack(config, weights, bits)
        crossing = range(config.layers) if self.kernels.crosses else []
        self.project = [self.kernels.packed(f"blocks.{number}.cross_attention.project") for number in crossing]
        self.vocabulary = weights["head.weight"].shape[0]

    def start(self, memory: ArrayMemory | None, rows: int = 1) -> KernelState:
        count = len(memory.states_MSD) if memory else 1
        return KernelState(
            pool=np.empty((self.config.layers, 0, 2 * self.config.width), dtype=np.float32),
            used=0,
            places=np.zeros((count * rows, FIRST_STEPS), dtype=np.int32),
            lengths=np.zeros(count * rows, dtype=np.int32),
            longest=0,
            even=True,
            memories=self._memories(memory.states_MSD) if memory else [],
            memory_real=_bytes(memory.mask_MS) if memory else None,
            memory_of=np.repeat(np.arange(count, dtype=np.int32), rows),
            logits_buffer=np.empty((count * rows, self.vocabulary), dtype=np.float32),
        )

    def _memories(self, states_MSD: Floats) -> list[Floats]:
        """Keys and values of the memory for every layer, side by side."""
        projected = [project(states_MSD) for project in self.project]
        positions, width = self.config.positions, self.config.width
        if isinstance(positions, RotaryConfig):
            places = np.arange(states_MSD.shape[1])[None]
            for keys_values in projected:
                keys = split_heads(keys_values[..., :width], self.config.heads)
                keys_values[..., :width] = merge_heads(rotate(keys, places, positions))
        return projected

    def extend(
        self, tokens_BT: Ids, lengths_B: Ids, state: KernelState, *, every: bool = False
    ) -> tuple[Floats, KernelState]:
        written = []
        for t in range(tokens_BT.shape[1]):
            before = state.lengths
            logits_BV, state = self.step(tokens_BT[:, t], state)
            written.append(logits_BV.copy())
            if (lengths_B <= t).any():  # rows that have nothing more to write went along, and forget it again
                state.shorten(np.where(lengths_B > t, state.lengths, before))
        logits_BTV = np.stack(written, axis=1)
        return logits_BTV if every else last_of(logits_BTV, lengths_B), state

    def step(self, tokens_B: Ids, state: KernelState) -> tuple[Floats, KernelState]:
        positions: Ids = np.array(state.longest) if state.even else state.lengths
        x_BD = np.ascontiguousarray(self.embed(tokens_B, positions))
        logits_BV = state.logits_buffer[: state.rows]
        self.kernels.prepare_positions(state.longest)
        state.add_token()
        self.kernels.run(
            native.Job(
                rows=state.rows,
                x=_at(x_BD),
                pool=_at(state.pool),
                capacity=state.pool.shape[1],
                places=_at(state.places),
                lengths=_at(state.lengths),
                places_per_row=state.places.shape[1],
                source=state.memories[0].shape[1] if state.memories else 0,
                memory=ctypes.addressof(state.memory_pointers),
                memory_real=_at(state.memory_real),
                memory_of=_at(state.memory_of),
                logits=_at(logits_BV),
            )
        )
        return logits_BV, state


def _at(array: Array | None) -> int | None:
    return None if array is None else array.ctypes.data


def _bytes(mask: Booleans | None) -> Array | None:
    """A mask as the kernels want it."""
    return None if mask is None else mask.astype(np.uint8, order="C")


def _widen(places: Int32s, most: int) -> Int32s:
    return np.pad(places, ((0, 0), (0, most - places.shape[1])))


def _join_memories(one: KernelState, other: KernelState) -> tuple[list[Floats], Array | None]:
    """What two states keep of their memories, as long as the longer one; and which positions are real."""
    if not one.memories:
        return [], None
    masks = (None if state.memory_real is None else state.memory_real.astype(bool) for state in (one, other))
    memories, real = join_memories(one.memories, other.memories, *masks)
    return memories, _bytes(real)

"""A Transformer's stacks on the C kernels: the same contract as `plain.py`, one call for all layers.

Rows are tokens, never padding: those of texts of any lengths stand one after the other. Between the calls there is
NumPy only: a single PyTorch operator that opens a parallel region leaves its threads spinning for milliseconds, on the
very cores the kernels' threads need.
"""

import ctypes
from collections.abc import Iterator

import numpy as np

from saccade import native
from saccade.arch.bert import BertConfig
from saccade.arch.block import BlockConfig
from saccade.arch.encoder_decoder import StackConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.positions import RotaryConfig
from saccade.runtime.contract import AnyArrayMemory, Array, ArrayMemory, Booleans, Floats, Ids, Source
from saccade.runtime.kernel_pictures import kernel_pictures
from saccade.runtime.kernel_state import Int32s, KernelState, Memories
from saccade.runtime.layers import Weights, merge_heads, rotate, split_heads
from saccade.runtime.packed_layers import PackedLayers
from saccade.runtime.packing import Packed
from saccade.runtime.plain import PlainEmbedding
from saccade.tensors import row_table

FIRST_POSITIONS = 512
"""Rotary angles that are prepared at once."""
ROWS_AT_ONCE = 2048
"""Tokens in one call, about: what stands between the layers should stay in the caches."""
LARGE_VOCABULARY = 16_000
"""Two-pass logits (int8, then int16) pay off from this vocabulary size on."""
KNOWN_ACTIVATIONS = frozenset(native.ACTIVATIONS)
KNOWN_NORMS = frozenset({"layer", "rms"})


def unknown_parts(config: BlockConfig) -> list[str]:
    """The parts of a stack that the kernels cannot run, as recipes name them."""
    found = {
        f"norm = {config.norm!r}": config.norm not in KNOWN_NORMS,
        f"activation = {config.activation!r}": config.activation not in KNOWN_ACTIVATIONS,
        f"feedforward = {config.feedforward}": config.feedforward > native.MOST_INPUTS,
        f"positions = {config.positions.kind!r}": config.positions.kind == "relative",
    }
    return [part for part, is_unknown in found.items() if is_unknown]


class KernelStack:
    """The blocks of a stack as the kernels want them; keeps alive what they point to."""

    def __init__(self, config: BlockConfig, weights: Weights, bits: int) -> None:
        self.library = native.needed()
        self.config, self.weights, self.bits = config, weights, bits
        self.layers = PackedLayers(weights)
        self.crosses = "blocks.0.cross_attention.query.weight" in weights
        self.kept: list[object] = []
        layers = (native.Layer * config.layers)()
        for number, layer in enumerate(layers):
            block = f"blocks.{number}"
            layer.around_self = self._norm(f"{block}.around_self.norm")
            layer.around_feedforward = self._norm(f"{block}.around_feedforward.norm")
            layer.project = self._linear(f"{block}.self_attention.project")
            layer.out = self._linear(f"{block}.self_attention.out")
            layer.window = config.window(number) or 0
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
            key_heads=config.key_heads or config.heads,
            feedforward=config.feedforward,
            post=config.order == "post",
            activation=native.ACTIVATIONS[config.activation],
            gated=config.gated,
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
        return self.layers.layer(name, bits or self.bits)

    def _has_int8_head(self) -> bool:
        """Whether most of a large vocabulary's logits are computed in int8, and only those that may be chosen in int16:
        where bytes are multiplied faster, and a search, not a random draw, chooses."""
        large = row_table(self.weights, "head.weight").shape[0] >= LARGE_VOCABULARY
        return large and self.bits == 16 and self.crosses and bool(self.library.multiplies_bytes())

    def _linear(self, name: str, bits: int | None = None) -> native.Linear:
        packed = self.packed(name, bits)
        self.kept.append(packed)
        return packed.layer

    def _norm(self, name: str) -> native.Norm:
        gain, shift = np.ascontiguousarray(self.weights[f"{name}.weight"]), self.weights.get(f"{name}.bias")
        shift = None if shift is None else np.ascontiguousarray(shift)
        self.kept += [gain, shift]
        return native.Norm(_at(gain), _at(shift), self.config.epsilon)


class KernelEncoder:
    """`PlainEncoder` in a call for some texts at a time. Where a mask hides positions, these are left out."""

    def __init__(self, config: StackConfig | BertConfig, weights: Weights, bits: int) -> None:
        self.pictures = kernel_pictures(config.front_end, weights, bits)
        if self.pictures is None:
            self.embed = PlainEmbedding(config, weights)
        self.kernels = KernelStack(config, weights, bits)
        self.kernels.layers.keep()

    def __call__(
        self, source_MS: Source, mask_MS: Booleans | None = None, segments_MS: Ids | None = None
    ) -> ArrayMemory:
        grid = None
        if self.pictures is not None:
            source_MS, mask_MS, grid = self.pictures(source_MS, mask_MS)  # vectors from here on
        texts, length = source_MS.shape[:2]
        real_MS = np.ones((texts, length), dtype=bool) if mask_MS is None else mask_MS
        counts_M = real_MS.sum(axis=1)
        states_MSD = np.zeros((texts, length, self.kernels.config.width), dtype=np.float32)
        self.kernels.prepare_positions(length - 1)
        for part in _groups(counts_M):
            text_R, place_R = np.nonzero(real_MS[part])
            text_R += part.start
            given_R = source_MS[text_R, place_R]
            segments_1R = None if segments_MS is None else segments_MS[text_R, place_R][None]
            x_RD = given_R if self.pictures else self.embed(given_R[None], place_R[None], segments_1R)[0]
            x_RD = np.ascontiguousarray(x_RD, dtype=np.float32)
            starts, positions = _starts(counts_M[part]), place_R.astype(np.int32)
            self.kernels.run(
                native.Job(
                    rows=len(x_RD),
                    texts=part.stop - part.start,
                    x=_at(x_RD),
                    starts=_at(starts),
                    positions=_at(positions),
                    longest=int(counts_M[part].max()),
                )
            )
            states_MSD[text_R, place_R] = x_RD
        return ArrayMemory(states_MSD, mask_MS, grid=grid)


class KernelDecoder:
    """`PlainDecoder`: a prompt in one call, then a token of every row at a time."""

    def __init__(self, config: StackConfig | GptConfig, weights: Weights, bits: int) -> None:
        self.config = config
        self.embed = PlainEmbedding(config, weights)
        self.kernels = KernelStack(config, weights, bits)
        crossing = range(config.layers) if self.kernels.crosses else []
        self.project = [self.kernels.packed(f"blocks.{number}.cross_attention.project") for number in crossing]
        self.kernels.layers.keep()
        self.vocabulary = row_table(weights, "head.weight").shape[0]

    def start(self, memory: AnyArrayMemory | None, rows: int = 1) -> KernelState:
        assert memory is None or isinstance(memory, ArrayMemory), "the kernels look at one memory"
        count = len(memory.states_MSD) if memory else 1
        return KernelState.empty(
            layers=self.config.layers,
            key_values=self.config.sizes[1] + self.config.sizes[2],
            memories=self._memories(memory) if memory else Memories.none(),
            memory_of=np.repeat(np.arange(count, dtype=np.int32), rows),
            vocabulary=self.vocabulary,
        )

    def _memories(self, memory: ArrayMemory) -> Memories:
        """Keys and values of the memories' real positions for every layer."""
        states_MSD, mask_MS = memory.states_MSD, memory.mask_MS
        real_MS = np.ones(states_MSD.shape[:2], dtype=bool) if mask_MS is None else mask_MS
        states_RD, width = states_MSD[real_MS], self.config.width
        keys_values = np.stack([project(states_RD) for project in self.project])
        positions = self.config.positions
        if isinstance(positions, RotaryConfig):
            keys = split_heads(keys_values[..., :width], self.config.heads)
            keys_values[..., :width] = merge_heads(rotate(keys, np.nonzero(real_MS)[1][None], positions))
        return Memories.of(keys_values, real_MS.sum(axis=1).astype(np.int32))

    def extend(
        self, tokens_BT: Ids, lengths_B: Ids, state: KernelState, *, every: bool = False
    ) -> tuple[Floats, KernelState]:
        lengths_B = np.asarray(lengths_B)
        wanted = (*tokens_BT.shape, self.vocabulary) if every else (len(tokens_BT), self.vocabulary)
        logits = np.zeros(wanted, dtype=np.float32)
        # A long text is read piece by piece: where it is cut depends on its own length alone.
        for first in range(0, tokens_BT.shape[1], ROWS_AT_ONCE):
            counts_B = np.clip(lengths_B - first, 0, ROWS_AT_ONCE)
            for part in _groups(counts_B):
                texts = np.flatnonzero(counts_B[part]) + part.start
                counts = counts_B[texts].astype(np.int32)
                rows = np.repeat(texts, counts)
                columns = first + np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
                chosen = np.arange(len(rows)) if every else np.flatnonzero(columns == lengths_B[rows] - 1)
                found = self._write(tokens_BT[rows, columns], texts, counts, chosen, state)
                if every:
                    logits[rows, columns] = found
                else:
                    logits[rows[chosen]] = found
        return logits, state

    def _write(self, tokens_R: Ids, texts: Ids, counts: Int32s, chosen: Ids, state: KernelState) -> Floats:
        """Write some tokens of some rows; the logits of what follows the chosen ones."""
        starts = _starts(counts)
        positions = np.repeat(state.lengths[texts] - starts[:-1], counts) + np.arange(len(tokens_R), dtype=np.int32)
        x_RD = np.ascontiguousarray(self.embed(tokens_R[None], positions[None])[0])
        state.add_tokens(texts, counts)
        logits = np.empty((len(chosen), self.vocabulary), dtype=np.float32)
        self._run(x_RD, positions, state, texts, starts, chosen.astype(np.int32), logits)
        return logits

    def step(self, tokens_B: Ids, state: KernelState) -> tuple[Floats, KernelState]:
        positions, logits_BV = state.lengths, state.logits()
        x_BD = np.ascontiguousarray(self.embed(tokens_B, positions))
        state.add_token()
        self._run(x_BD, positions, state, None, None, None, logits_BV)
        return logits_BV, state

    def _run(
        self,
        x: Floats,
        positions: Int32s,
        state: KernelState,
        texts: Ids | None,
        starts: Int32s | None,
        wanted: Int32s | None,
        logits: Floats,
    ) -> None:
        """`texts` are the rows that something is written in; None: one token in every one."""
        parts = (state.places, state.lengths, state.memory_of)
        places, lengths, memory_of = parts if texts is None else (np.ascontiguousarray(part[texts]) for part in parts)
        longest, memories = int(lengths.max()), state.memories
        addresses, strides, sources = memories.pointers
        self.kernels.prepare_positions(longest - 1)
        self.kernels.run(
            native.Job(
                rows=len(x),
                texts=len(lengths),
                x=_at(x),
                starts=_at(starts),
                positions=_at(positions),
                longest=longest,
                pool=_at(state.pool),
                capacity=state.pool.shape[1],
                places=_at(places),
                lengths=_at(lengths),
                places_per_text=places.shape[1],
                memories=addresses,
                memory_strides=strides,
                sources=sources,
                longest_source=memories.longest,
                memory_of=_at(memory_of),
                wanted=_at(wanted),
                wanted_count=len(logits),
                logits=_at(logits),
            )
        )


def _groups(counts: Ids) -> Iterator[slice]:
    """Neighbouring texts of so many tokens each, about as many as go into one call."""
    first, total = 0, 0
    for place, count in enumerate(counts.tolist()):
        if total and total + count > ROWS_AT_ONCE:
            yield slice(first, place)
            first, total = place, 0
        total += count
    if total:
        yield slice(first, len(counts))


def _starts(counts: Ids) -> Int32s:
    """Where each text's rows begin, and the number of all rows."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _at(array: Array | None) -> int | None:
    return None if array is None else array.ctypes.data

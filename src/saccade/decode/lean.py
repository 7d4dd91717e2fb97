"""A Transformer's two stacks on the C kernels: the same contracts, one call for all layers of a step.

The plain modules stay as the oracle; these read their weights and must give the same logits, up to
the rounding of `pack`. The past is a pool of slots that nobody moves: a row is a list of places in it,
so beams change places by changing their lists.

Between the calls there is NumPy only. A single PyTorch operator that opens a parallel region leaves its
threads spinning for milliseconds, on the very cores the kernels' threads need.
"""

import ctypes
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import native
from saccade.decode.pack import PackedLinear
from saccade.models.contract import Decoder, Encoder, Memory, State, join_memories
from saccade.models.transformer import StackDecoder, TransformerEncoder
from saccade.nn.embed import Embedding
from saccade.nn.feedforward import FeedForward
from saccade.nn.norms import PreNorm
from saccade.nn.positions import Learned

Numbers = np.ndarray
FIRST_STEPS = 64
"""The pool has room for so many steps at first, and doubles."""
FIRST_POSITIONS = 512


def can_be_lean(stack: StackDecoder) -> bool:
    """Whether the kernels know all of its parts; other norms, gates, shared heads and bands run on packed layers."""
    return isinstance(stack.norm, nn.LayerNorm | nn.Identity) and all(
        isinstance(block.feedforward, FeedForward)
        and block.feedforward.activation in (F.relu, F.gelu)
        and isinstance(block.around_self.norm, nn.LayerNorm)
        and block.self_attention.key_heads == block.self_attention.heads
        and block.self_attention.window is None
        and (block.cross_attention is None or block.cross_attention.rotary is block.self_attention.rotary)
        for block in stack.blocks
    )


class LeanStack:
    """The blocks of a stack as the kernels want them; keeps alive what they point to."""

    def __init__(self, plain: TransformerEncoder | StackDecoder, bits: int) -> None:
        self.library = native.needed()
        self.packed: list[PackedLinear] = []
        first = next(iter(plain.blocks))
        assert isinstance(first.feedforward, FeedForward)
        self.width = first.self_attention.out.out_features
        layers = (native.Layer * len(plain.blocks))()
        for block, layer in zip(plain.blocks, layers, strict=True):
            assert isinstance(block.feedforward, FeedForward)
            layer.around_self = _norm(block.around_self.norm)
            layer.around_feedforward = _norm(block.around_feedforward.norm)
            layer.project = self._linear(block.self_attention.project, bits)
            layer.out = self._linear(block.self_attention.out, bits)
            layer.widen = self._linear(block.feedforward.widen, bits)
            layer.narrow = self._linear(block.feedforward.narrow, bits)
            if block.cross_attention is not None and block.around_cross is not None:
                layer.around_cross = _norm(block.around_cross.norm)
                layer.query = self._linear(block.cross_attention.query, bits)
                layer.cross_out = self._linear(block.cross_attention.out, bits)
        self.stack = native.Stack(
            layers=len(plain.blocks),
            width=self.width,
            heads=first.self_attention.heads,
            hidden=first.feedforward.widen.out_features,
            post=not isinstance(first.around_self, PreNorm),
            gelu=first.feedforward.activation is F.gelu,
            cross=first.cross_attention is not None,
            layer=layers,
        )
        if isinstance(plain.norm, nn.LayerNorm):
            self.stack.last = ctypes.pointer(_norm(plain.norm))
        if isinstance(plain, StackDecoder):
            self.stack.head = ctypes.pointer(self._linear(plain.head, bits))
        self.kept = (plain, layers)
        self.rotary = first.self_attention.rotary
        self.turns: Numbers = np.zeros((0, 0), dtype=np.float32)

    def turn_up_to(self, last: int) -> None:
        """Have the angles of all positions up to `last`, where positions are rotary."""
        if self.rotary is None or last < len(self.turns):
            return
        angles = self.rotary.angles(torch.arange(max(2 * last, FIRST_POSITIONS)))
        self.turns = torch.cat([angles.cos(), angles.sin()], dim=-1).numpy()
        self.stack.turns, self.stack.halves = _at(self.turns), self.rotary.layout == "halves"

    def run(self, job: native.Job) -> None:
        if self.library.run_stack(self.stack, job, native.threads()):
            raise MemoryError(f"no memory for {job.rows} rows")

    def _linear(self, linear: nn.Linear, bits: int) -> native.Linear:
        self.packed.append(PackedLinear(linear, bits))
        return self.packed[-1].layer


class LeanEmbedding:
    """`Embedding` in NumPy."""

    def __init__(self, plain: Embedding) -> None:
        self.plain = plain
        self.tokens: Numbers = plain.tokens.weight.detach().numpy()
        self.positions: Numbers | None = None if plain.positions is None else self._table(0)

    def __call__(self, tokens: Numbers, positions: Numbers, last: int) -> Numbers:
        """Vectors [..., D] of tokens [...] at positions [...], none higher than `last`."""
        x: Numbers = self.tokens[tokens] * np.float32(self.plain.scale)
        if self.positions is None:
            return x
        if last >= len(self.positions):
            self.positions = self._table(last)
        where = self.positions[positions]
        if self.plain.concatenate:
            return np.concatenate([x, np.broadcast_to(where, (*x.shape[:-1], where.shape[-1]))], axis=-1)
        x += where
        return x

    def _table(self, last: int) -> Numbers:
        """The vectors of all positions up to `last`, and some more where they cost nothing."""
        assert self.plain.positions is not None
        if isinstance(self.plain.positions, Learned):
            last = max(last, self.plain.positions.length - 1)
        else:
            last = max(2 * last, FIRST_POSITIONS)
        vectors: Tensor = self.plain.positions(torch.arange(last + 1), last)
        return vectors.detach().numpy()


class LeanEncoder(Encoder):
    """`TransformerEncoder` in one call."""

    def __init__(self, plain: TransformerEncoder, bits: int) -> None:
        super().__init__()
        self.width = plain.width
        self.embed = LeanEmbedding(plain.embed)
        self.lean = LeanStack(plain, bits)

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None) -> Memory:
        length = source_MS.shape[1]
        x_MSD = self.embed(source_MS.numpy(), np.arange(length), length - 1)
        real_MS = None if mask_MS is None else mask_MS.numpy().astype(np.uint8, order="C")
        self.lean.turn_up_to(length - 1)
        self.lean.run(native.Job(rows=source_MS.numel(), x=_at(x_MSD), length=length, real=_at(real_MS)))
        return Memory(torch.from_numpy(x_MSD), mask_MS)


@dataclass
class LeanState(State):
    """What was written, as places in a pool; which memory each row looks at."""

    pool: Tensor
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
    memories: list[Tensor]
    """Per layer [M, S, 2 x width]: projected once per memory."""
    memory_real: Numbers | None
    """[M, S] 1 where there is something."""
    memory_of: Numbers
    """[B]"""
    room: Tensor
    """[B, V] for the next token's logits: fresh memory for each step would be cleared page by page."""

    def __post_init__(self) -> None:
        self.memory_pointers = (ctypes.c_void_p * len(self.memories))(*(memory.data_ptr() for memory in self.memories))

    @property
    def rows(self) -> int:
        return len(self.lengths)

    @property
    def device(self) -> torch.device:
        return self.pool.device

    @property
    def nbytes(self) -> int:
        return self.pool.nbytes + sum(memory.nbytes for memory in self.memories)

    def reorder(self, rows: Tensor) -> "LeanState":
        chosen = rows.numpy()
        if len(chosen) > len(self.room):
            self.room = torch.empty(len(chosen), self.room.shape[1])
        self.places, self.lengths, self.memory_of = self.places[chosen], self.lengths[chosen], self.memory_of[chosen]
        if not self.even:
            self._measure()
        return self

    def repeat(self, times: int) -> "LeanState":
        return self.reorder(torch.arange(self.rows).repeat_interleave(times))

    def join(self, other: "LeanState") -> "LeanState":
        most = max(self.places.shape[1], other.places.shape[1])
        memories, real = _join_memories(self, other)
        shift = np.int32(self.memories[0].shape[0] if self.memories else 0)
        return LeanState(
            pool=torch.cat([self.pool[:, : self.used], other.pool[:, : other.used]], dim=1),
            used=self.used + other.used,
            places=np.concatenate([_widen(self.places, most), _widen(other.places + np.int32(self.used), most)]),
            lengths=np.concatenate([self.lengths, other.lengths]),
            longest=max(self.longest, other.longest),
            even=self.even and other.even and self.longest == other.longest,
            memories=memories,
            memory_real=real,
            memory_of=np.concatenate([self.memory_of, other.memory_of + shift]),
            room=torch.empty(self.rows + other.rows, self.room.shape[1]),
        )

    def add_token(self) -> None:
        """Give every row a new slot for its next token."""
        rows = self.rows
        if self.used + rows > self.pool.shape[1]:
            slots = max(2 * self.used, self.used + FIRST_STEPS * rows)
            grown = self.pool.new_empty(self.pool.shape[0], slots, self.pool.shape[2])
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


class LeanDecoder(Decoder):
    """`StackDecoder` step by step; its teacher-forced `forward` is the plain one."""

    def __init__(self, plain: StackDecoder, bits: int) -> None:
        super().__init__()
        self.plain = plain
        self.head = plain.head
        self.embed = LeanEmbedding(plain.embed)
        self.lean = LeanStack(plain, bits)
        self.crossing = [block.cross_attention for block in plain.blocks if block.cross_attention is not None]
        self.project = [PackedLinear(cross.project, bits) for cross in self.crossing]
        self.vocabulary = plain.head.out_features

    def features(self, tokens_BT: Tensor, memory: Memory | None = None) -> Tensor:
        return self.plain.features(tokens_BT, memory)

    def start(self, memory: Memory | None, rows: int = 1) -> LeanState:
        count = memory.states_MSD.shape[0] if memory else 1
        real = memory.mask_MS.numpy().astype(np.uint8, order="C") if memory and memory.mask_MS is not None else None
        return LeanState(
            pool=torch.empty(self.lean.stack.layers, 0, 2 * self.lean.width),
            used=0,
            places=np.zeros((count * rows, FIRST_STEPS), dtype=np.int32),
            lengths=np.zeros(count * rows, dtype=np.int32),
            longest=0,
            even=True,
            memories=self._memories(memory.states_MSD) if memory else [],
            memory_real=real,
            memory_of=np.repeat(np.arange(count, dtype=np.int32), rows),
            room=torch.empty(count * rows, self.vocabulary),
        )

    def _memories(self, states_MSD: Tensor) -> list[Tensor]:
        projected = [project(states_MSD) for project in self.project]
        for cross, keys_values in zip(self.crossing, projected, strict=True):
            keys_MSD = keys_values[..., : self.lean.width]
            keys_MSD.copy_(cross.turned(keys_MSD))
        return projected

    def extend(self, tokens_BT: Tensor, lengths_B: Tensor, state: State) -> tuple[Tensor, LeanState]:
        assert isinstance(state, LeanState)
        wanted, written = lengths_B.numpy(), []
        for t in range(tokens_BT.shape[1]):
            before = state.lengths
            logits_BV, state = self.step(tokens_BT[:, t], state)
            written.append(logits_BV.clone())
            if (wanted <= t).any():  # rows that have nothing more to write went along, and forget it again
                state.shorten(np.where(wanted > t, state.lengths, before))
        return torch.stack(written, dim=1), state

    def step(self, tokens_B: Tensor, state: State) -> tuple[Tensor, LeanState]:
        assert isinstance(state, LeanState)
        positions = np.asarray(state.longest) if state.even else state.lengths
        x_BD = self.embed(tokens_B.numpy(), positions, state.longest)
        logits_BV = state.room[: state.rows]
        self.lean.turn_up_to(state.longest)
        state.add_token()
        self.lean.run(
            native.Job(
                rows=state.rows,
                x=_at(x_BD),
                pool=state.pool.data_ptr(),
                capacity=state.pool.shape[1],
                places=_at(state.places),
                lengths=_at(state.lengths),
                most=state.places.shape[1],
                source=state.memories[0].shape[1] if state.memories else 0,
                memory=ctypes.addressof(state.memory_pointers),
                memory_real=_at(state.memory_real),
                memory_of=_at(state.memory_of),
                logits=logits_BV.data_ptr(),
            )
        )
        return logits_BV, state


def _norm(norm: Tensor | nn.Module) -> native.Norm:
    assert isinstance(norm, nn.LayerNorm)
    return native.Norm(norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps)


def _at(array: Numbers | None) -> int | None:
    return None if array is None else array.ctypes.data


def _widen(places: Numbers, most: int) -> Numbers:
    return np.pad(places, ((0, 0), (0, most - places.shape[1])))


def _join_memories(one: LeanState, other: LeanState) -> tuple[list[Tensor], Numbers | None]:
    if not one.memories:
        return [], None
    mine, theirs = (
        None if state.memory_real is None else torch.from_numpy(state.memory_real).bool() for state in (one, other)
    )
    memories, real_MS = join_memories(one.memories, other.memories, mine, theirs)
    return memories, real_MS.numpy().astype(np.uint8, order="C")

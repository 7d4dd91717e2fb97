"""The Transformer in plain NumPy: exact float32, readable from top to bottom, watched and edited while it runs.

It reads the tensors that `arch/` lists by their names. PyTorch's modules are its oracle in the tests, and it is the
oracle of the C kernels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from saccade.arch.bert import BertConfig
from saccade.arch.block import BlockConfig
from saccade.arch.encoder_decoder import StackConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.grid import GridConfig
from saccade.arch.memories import named
from saccade.arch.positions import LearnedConfig, RelativeConfig, RotaryConfig, SinusoidalConfig
from saccade.runtime.contract import (
    AnyArrayMemory,
    ArrayMemories,
    ArrayMemory,
    Booleans,
    Floats,
    Ids,
    Source,
    last_of,
    memories_by_name,
)
from saccade.runtime.convolutions import PlainConvolutions
from saccade.runtime.front_end import pictures_of
from saccade.runtime.layers import (
    ACTIVATIONS,
    Weights,
    attend,
    by_distance,
    linear,
    merge_heads,
    normalise,
    part_of,
    rotate,
    sigmoid,
    silu,
    sinusoids,
    split_heads,
)
from saccade.runtime.plain_state import KeysValues, PlainMemory, PlainState
from saccade.sites import SOURCE, Site
from saccade.tensors import row_table


@dataclass(frozen=True)
class Sight:
    """What a stack's rows may look at in one call, the same for all layers."""

    positions_BT: Ids
    """Where the new tokens stand."""
    allowed: Booleans | None = None
    """Which keys of their own text they may look at; broadcasts to [B, N, T, S]."""
    real_BT: Booleans | None = None
    """Which positions are no padding, for convolution modules."""


def convolve(weights: Weights, x_BTD: Floats, sight: Sight, epsilon: float) -> Floats:
    """The convolution module of a Conformer block: W (silu(norm(depthwise(gate · value))))."""
    value, gate = np.split(linear(weights, "convolution.widen", x_BTD), 2, axis=-1)
    y_BTD = value * sigmoid(gate)
    if sight.real_BT is not None:
        y_BTD *= sight.real_BT[..., None]
    taps_DK = weights["convolution.taps"]
    margin = taps_DK.shape[1] // 2
    wide = np.pad(y_BTD, ((0, 0), (margin, margin), (0, 0)))
    near_BTD = np.broadcast_to(weights["convolution.bias"], y_BTD.shape).copy()
    for place, tap_D in enumerate(np.ascontiguousarray(taps_DK.T)):
        near_BTD += wide[:, place : place + y_BTD.shape[1]] * tap_D
    return linear(weights, "convolution.out", silu(normalise(weights, "convolution.norm", near_BTD, epsilon)))


NO_MEMORIES: Mapping[str, PlainMemory] = MappingProxyType({})


class PlainBlock:
    """Attention, perhaps a look at one memory after the other, then a feed-forward network."""

    def __init__(self, config: BlockConfig, weights: Weights, name: str, site: Site, window: int | None) -> None:
        self.config, self.weights, self.name, self.site, self.window = config, weights, name, site, window
        self.activation = ACTIVATIONS[config.activation]

    def __call__(
        self, x: Floats, sight: Sight, past: KeysValues | None, memories: Mapping[str, PlainMemory], layer: int
    ) -> Floats:
        x = self._add("around_self", x, lambda y: self._look_around(y, sight, past))
        if "convolution.taps" in self.weights:
            x = self._add("around_convolution", x, lambda y: convolve(self.weights, y, sight, self.config.epsilon))
        for name, memory in memories.items():
            look = partial(self._look_at, name, memory.layers[layer], memory.mask_BS, sight)
            x = self._add(named("around_cross", name), x, look)
        return self._add("around_feedforward", x, self._feed_forward)

    def _add(self, around: str, x: Floats, sublayer: Callable[[Floats], Floats]) -> Floats:
        """x + f(norm(x)), or norm(x + f(x))."""
        norm, epsilon = f"{around}.norm", self.config.epsilon
        if self.config.order == "pre":
            return x + sublayer(normalise(self.weights, norm, x, epsilon))
        return normalise(self.weights, norm, x + sublayer(x), epsilon)

    def _look_around(self, x: Floats, sight: Sight, past: KeysValues | None) -> Floats:
        config, allowed = self.config, sight.allowed
        parts = np.split(linear(self.weights, "self_attention.project", x), np.cumsum(config.sizes)[:2], axis=-1)
        key_heads = config.key_heads or config.heads
        q, k, v = (
            split_heads(part, heads) for part, heads in zip(parts, (config.heads, key_heads, key_heads), strict=True)
        )
        q, k = self._rotated(q, sight), self._rotated(k, sight)
        if past is not None:
            rows_B1 = np.arange(len(x))[:, None]
            past[0][rows_B1, :, sight.positions_BT] = k.swapaxes(1, 2)
            past[1][rows_B1, :, sight.positions_BT] = v.swapaxes(1, 2)
            k, v = past
        if self.window is not None:
            near = np.arange(k.shape[2]) > sight.positions_BT[:, None, :, None] - self.window
            allowed = near if allowed is None else allowed & near
        if key_heads < config.heads:  # several query heads share a head of keys and values (Ainslie et al. 2023)
            k, v = (part.repeat(config.heads // key_heads, axis=1) for part in (k, v))
        bias = None
        if isinstance(config.positions, RelativeConfig):
            q, bias = by_distance(self.weights, q, k.shape[2], sight.positions_BT)
        context = attend(f"{self.name}.self_attention", self.site, q, k, v, allowed, bias)
        return linear(self.weights, "self_attention.out", merge_heads(context))

    def _look_at(
        self, memory: str, keys_values: KeysValues, mask_BS: Booleans | None, sight: Sight, x: Floats
    ) -> Floats:
        name = named("cross_attention", memory)
        q = self._rotated(split_heads(linear(self.weights, f"{name}.query", x), self.config.heads), sight)
        allowed = None if mask_BS is None else mask_BS[:, None, None, :]
        context = attend(f"{self.name}.{name}", Site.cross(memory), q, *keys_values, allowed)
        return linear(self.weights, f"{name}.out", merge_heads(context))

    def keys_values(self, memory: str, states_MSD: Floats) -> KeysValues:
        """The memory of this name as this block looks at it."""
        both = linear(self.weights, f"{named('cross_attention', memory)}.project", states_MSD)
        k, v = (split_heads(part, self.config.heads) for part in np.split(both, 2, axis=-1))
        return self._rotated(k, Sight(np.arange(states_MSD.shape[1])[None])), v

    def _feed_forward(self, x: Floats) -> Floats:
        inner = linear(self.weights, "feedforward.widen", x)
        if self.config.gated:
            gate, value = np.split(inner, 2, axis=-1)
            inner = self.activation(gate) * value
        else:
            inner = self.activation(inner)
        return linear(self.weights, "feedforward.narrow", inner)

    def _rotated(self, x_BNTH: Floats, sight: Sight) -> Floats:
        positions = self.config.positions
        return rotate(x_BNTH, sight.positions_BT, positions) if isinstance(positions, RotaryConfig) else x_BNTH


class PlainStack:
    """All blocks, and the norm that closes a pre-norm stack."""

    def __init__(self, config: BlockConfig, weights: Weights, name: str, site: Site) -> None:
        self.config, self.weights = config, weights
        self.blocks = [
            PlainBlock(config, part_of(weights, f"blocks.{i}"), f"{name}.blocks.{i}", site, config.window(i))
            for i in range(config.layers)
        ]

    def __call__(
        self,
        x: Floats,
        sight: Sight,
        pasts: list[KeysValues] | None = None,
        memories: Mapping[str, PlainMemory] = NO_MEMORIES,
    ) -> Floats:
        for layer, block in enumerate(self.blocks):
            x = block(x, sight, pasts[layer] if pasts else None, memories, layer)
        return normalise(self.weights, "norm", x, self.config.epsilon) if self.config.order == "pre" else x


class PlainEmbedding:
    """Token vectors with positions added or put beside them; BERT's also with segments, and normalised."""

    def __init__(self, config: StackConfig | GptConfig | BertConfig, weights: Weights) -> None:
        self.config, self.tokens = config, row_table(weights, "embed.tokens.weight")
        small = ("embed.segments.", "embed.norm.", "embed.positions.")
        self.weights = {name: weights[name] for name in weights if name.startswith(small)}
        # Vaswani et al. 2017, 3.4; GPT and BERT do not scale.
        self.scale = np.float32(self.tokens.shape[1] ** 0.5 if isinstance(config, StackConfig) else 1)
        self.beside = isinstance(config, StackConfig) and config.concatenates
        self.table = self.weights.get("embed.positions.vectors.weight", np.zeros((0, 0), dtype=np.float32))

    def __call__(self, tokens_BT: Ids, positions_BT: Ids, segments_BT: Ids | None = None) -> Floats:
        x: Floats = self.tokens[tokens_BT] * self.scale
        if "embed.segments.weight" in self.weights:
            x = x + self.weights["embed.segments.weight"][0 if segments_BT is None else segments_BT]
        if isinstance(self.config.positions, LearnedConfig | SinusoidalConfig):
            where = self._vectors(positions_BT)
            if self.beside:
                x = np.concatenate([x, np.broadcast_to(where, (*x.shape[:-1], where.shape[-1]))], axis=-1)
            else:
                x = x + where
        return (
            normalise(self.weights, "embed.norm", x, self.config.epsilon) if "embed.norm.weight" in self.weights else x
        )

    def _vectors(self, positions: Ids) -> Floats:
        last = int(positions.max())
        if last >= len(self.table):
            if isinstance(self.config.positions, LearnedConfig):
                raise ValueError(f"position {last} asked of a model with {len(self.table)} learned positions")
            layout = getattr(self.config.positions, "layout", "interleaved")
            self.table = sinusoids(max(512, 2 * last), self.tokens.shape[1], layout)
        vectors: Floats = self.table[positions]
        return vectors


class PlainEncoder:
    """Every token looks at every token of its own text, or every patch at every patch of its own picture."""

    def __init__(self, config: StackConfig | BertConfig, weights: Weights, memory: str = SOURCE) -> None:
        self.pictures = pictures_of(config.front_end, weights, memory)
        if self.pictures is None:
            self.embed = PlainEmbedding(config, weights)
        self.stack = PlainStack(config, weights, named("encoder", memory), Site.encoder(memory))

    def __call__(
        self, source_MS: Source, mask_MS: Booleans | None = None, segments_MS: Ids | None = None
    ) -> ArrayMemory:
        grid = None
        if self.pictures is not None:
            x, mask_MS, grid = self.pictures(source_MS, mask_MS)
        else:
            x = self.embed(source_MS, np.arange(source_MS.shape[1])[None], segments_MS)
        allowed = None if mask_MS is None else mask_MS[:, None, None, :]
        return ArrayMemory(self.stack(x, Sight(np.arange(x.shape[1])[None], allowed, mask_MS)), mask_MS, grid=grid)


class PlainGrid:
    """The encoder whose memory is the last grid of its convolutions."""

    def __init__(self, config: GridConfig, weights: Weights, memory: str = SOURCE) -> None:
        self.pictures = PlainConvolutions(config.front, weights, named("encoder", memory), memory)

    def __call__(
        self, source_MS: Source, mask_MS: Booleans | None = None, segments_MS: Ids | None = None
    ) -> ArrayMemory:
        x, mask_MS, grid = self.pictures(source_MS, mask_MS)
        return ArrayMemory(x, mask_MS, grid=grid)


class PlainDecoder:
    """Every token looks at itself and its past, then at the memories of these names, if there are any."""

    def __init__(self, config: StackConfig | GptConfig, weights: Weights, memories: Sequence[str] = ()) -> None:
        self.config, self.weights, self.memories = config, weights, memories
        self.embed = PlainEmbedding(config, weights)
        self.stack = PlainStack(config, weights, "decoder", Site.decoder())

    def start(self, memory: AnyArrayMemory | None, rows: int = 1) -> PlainState:
        given = memories_by_name(memory, self.memories)
        count = len(next(iter(given.values())).states_MSD) if given else 1
        memory_of = np.arange(count).repeat(rows)
        empty = np.zeros(
            (count * rows, self.config.key_heads or self.config.heads, 0, self.config.head_width), np.float32
        )
        memories = {
            name: PlainMemory([block.keys_values(name, kept.states_MSD) for block in self.stack.blocks], kept.mask_MS)
            for name, kept in ArrayMemories(given).rows(memory_of).by_name.items()
        }
        pasts = [(empty, empty)] * self.config.layers
        return PlainState(pasts, np.zeros(count * rows, dtype=np.int64), memories, memory_of)

    def extend(
        self, tokens_BT: Ids, lengths_B: Ids, state: PlainState, *, every: bool = False
    ) -> tuple[Floats, PlainState]:
        positions_BT = state.lengths_B[:, None] + np.arange(tokens_BT.shape[1])
        used = int(positions_BT.max()) + 1
        state = state.with_room(used)
        # What a row writes past its own length is hidden by the causal mask and overwritten by what comes next.
        allowed = np.arange(used) <= positions_BT[:, None, :, None]
        pasts = [(k[:, :, :used], v[:, :, :used]) for k, v in state.pasts]
        x = self.embed(tokens_BT, positions_BT)
        x = self.stack(x, Sight(positions_BT, allowed), pasts, state.memories)
        # Most prompts are read for the token that follows them: the output layer is the widest of all.
        chosen = x if every else last_of(x, lengths_B)
        return linear(self.weights, "head", chosen), replace(state, lengths_B=state.lengths_B + lengths_B)

    def step(self, tokens_B: Ids, state: PlainState) -> tuple[Floats, PlainState]:
        return self.extend(tokens_B[:, None], np.ones(len(tokens_B), dtype=np.int64), state)

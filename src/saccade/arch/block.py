"""The Transformer block and stacks of it: the one record that every Transformer family is made of."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from saccade.arch.memories import named
from saccade.arch.positions import AnyPositionsConfig, LearnedConfig, SinusoidalConfig
from saccade.arch.weights import Weight, Weights, joined, linear, norm, within
from saccade.config import Record, Table, replace_key

Activation = Literal["relu", "gelu", "gelu-tanh", "silu"]
"""gelu-tanh is the approximation that GPT-2 was trained with."""
NO_MEMORY: Mapping[str, int] = MappingProxyType({})


class BlockConfig(Record):
    """A stack of equal Transformer blocks. Families give other defaults; every key means the same in all of them."""

    renamed: ClassVar[Mapping[str, str]] = {"hidden": "feedforward"}

    kind: str = "block"
    """The family: transformer, gpt or bert."""
    layers: int = Field(3, ge=1, le=1000)
    """Blocks, one after the other."""
    width: int = Field(256, ge=2, le=65536)
    """Size of the vectors between blocks (d_model)."""
    heads: int = Field(4, ge=1, le=1024)
    """Attention heads; they share the width."""
    key_heads: int | None = Field(None, ge=1, le=1024)
    """Heads of keys and values in self-attention, shared by the query heads; as many as those if not given."""
    feedforward: int = Field(1024, ge=1, le=1_048_576)
    """Inner width of the feed-forward network (d_ff)."""
    gated: bool = False
    """A second matrix gates the feed-forward network: SwiGLU with silu, GEGLU with gelu (Shazeer 2020)."""
    activation: Activation = "relu"
    """Between the feed-forward network's matrices."""
    norm: Literal["layer", "rms"] = "layer"
    """Layer norm, or RMSNorm."""
    order: Literal["pre", "post"] = "pre"
    """The norm before each sub-layer, or after each sum as in Vaswani et al. 2017."""
    epsilon: float = Field(1e-5, gt=0, lt=1)
    """Added to the variance in every norm."""
    bias: bool = True
    """Whether linear layers have biases."""
    windows: tuple[int, ...] = Field((0,), min_length=1, max_length=1000)
    """How far back each layer looks, in turn: 0 is all the way; [0, 128] alternates dense and banded layers (GPT-3)."""
    positions: AnyPositionsConfig = SinusoidalConfig()
    """How a token knows where it stands: by a vector, or, rotary, in every attention."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of each sub-layer's output, and of the embedding, dropped in training."""

    @classmethod
    def modern(cls, table: Table) -> Table:
        """Version 1 had `hidden` for the feed-forward width, `feedforward` = plain | gated, and `norm` = pre | post."""
        if table.get("feedforward") in ("plain", "gated"):
            table = replace_key(table, "feedforward", "gated", table["feedforward"] == "gated")
        if table.get("norm") in ("pre", "post") and "order" not in table:
            table = replace_key(table, "norm", "order", table["norm"])
        return super().modern(table)

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} does not divide into {self.heads} heads")
        if self.key_heads is not None and self.heads % self.key_heads:
            raise ValueError(f"{self.heads} heads cannot share {self.key_heads} heads of keys and values evenly")
        if self.positions.kind == "rotary" and self.head_width % 2:
            raise ValueError(f"rotary positions need heads of even width, not {self.head_width}")
        if self.positions.kind in ("sinusoidal", "relative") and self.width % 2:
            raise ValueError(f"{self.positions.kind} positions need an even width, not {self.width}")
        if any(window < 0 for window in self.windows):
            raise ValueError(f"a window is a number of positions, or 0 for all, not {min(self.windows)}")
        return self

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Widths of queries, keys and values in self-attention, which are projected by one matrix."""
        shared = (self.key_heads or self.heads) * self.head_width
        return self.width, shared, shared

    def window(self, layer: int) -> int | None:
        """How many positions a layer looks back over, its own counted; None: all."""
        return self.windows[layer % len(self.windows)] or None

    def block(self, per: str, memories: Mapping[str, int] = NO_MEMORY) -> Weights:
        """The tensors of one block; it looks at memories of these names and widths, one after the other."""
        width, inner = self.width, self.feedforward
        parts = [
            linear("self_attention.project", sum(self.sizes), width, per, bias=self.bias),
            linear("self_attention.out", width, width, per, bias=self.bias),
            norm("around_self.norm", width, self.norm),
            linear("feedforward.widen", inner * (2 if self.gated else 1), width, per, bias=self.bias),
            linear("feedforward.narrow", width, inner, per, bias=self.bias),
            norm("around_feedforward.norm", width, self.norm),
        ]
        if self.positions.kind == "relative":
            parts.append(within("self_attention.relative", distances(width)))
        for memory, memory_width in memories.items():
            look = named("cross_attention", memory)
            parts += [
                linear(f"{look}.query", width, width, per),
                # Keys and values of a memory are projected once for each of its positions.
                linear(f"{look}.project", 2 * width, memory_width, memory),
                linear(f"{look}.out", width, width, per),
                norm(f"{named('around_cross', memory)}.norm", width, self.norm),
            ]
        return joined(parts)

    def stack(self, per: str, memories: Mapping[str, int] = NO_MEMORY) -> Weights:
        """The tensors of all blocks, and of the norm that closes a pre-norm stack."""
        block = self.block(per, memories)
        blocks = joined(within(f"blocks.{layer}", block) for layer in range(self.layers))
        return blocks | (norm("norm", self.width, self.norm) if self.order == "pre" else {})

    def cache_bytes(self, tokens: int, number: int = 4) -> int:
        """Bytes of the keys and values of one text of so many tokens, in numbers of so many bytes."""
        kept = sum(min(tokens, self.window(layer) or tokens) for layer in range(self.layers))
        return kept * (self.sizes[1] + self.sizes[2]) * number

    def activation_bytes(self, tokens: int, number: int = 4) -> int:
        """Bytes that the backward pass needs of one text of so many tokens: what enters every product of a block, and
        the attention weights, unless these are computed again."""
        each = 4 * self.width + sum(self.sizes) + self.feedforward * (3 if self.gated else 2) + self.heads * tokens
        return self.layers * tokens * each * number


def distances(width: int) -> Weights:
    """What attention by distance adds to a layer (Dai et al. 2019, 3.3): a projection of distances, and what a query
    likes at any place: some contents, some distances."""
    place = linear("place", width, width, "distance", bias=False)
    return place | {"content_bias": Weight((width,)), "place_bias": Weight((width,))}


def learned_positions_cover(positions: AnyPositionsConfig, context: int) -> None:
    """Every position a model is trained on needs a vector."""
    if isinstance(positions, LearnedConfig) and positions.length < context:
        raise ValueError(f"a context of {context} needs as many positions, not {positions.length}")


def with_learned_positions(table: Table, context: int) -> Table:
    """Learned positions, as many as the record's context, unless the table says otherwise."""
    if "positions" in table:
        return table
    return table | {"positions": {"kind": "learned", "length": table.get("context", context)}}

"""XLNet (Yang et al. 2019): a stack that knows distances instead of positions."""

from typing import Literal

from pydantic import Field, model_validator

from saccade.arch.weights import Weight, Weights, flops, joined, linear, norm, table, within
from saccade.config import Record


class XlnetConfig(Record):
    """A stack that knows distances instead of positions, and may remember the segment before."""

    renamed = {"hidden": "feedforward"}  # noqa: RUF012

    kind: Literal["xlnet"] = "xlnet"
    layers: int = Field(6, ge=1, le=1000)
    """Blocks, one after the other."""
    width: int = Field(256, ge=2, le=65536)
    """Size of the vectors between blocks."""
    heads: int = Field(4, ge=1, le=1024)
    """Attention heads; they share the width."""
    feedforward: int = Field(1024, ge=1, le=1_048_576)
    """Inner width of the feed-forward network."""
    activation: Literal["relu", "gelu"] = "gelu"
    """Between the feed-forward network's matrices."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of each sub-layer's output, and of the embedding, dropped in training."""
    context: int = Field(256, ge=1, le=1_000_000)
    """Tokens it is trained on at once."""
    memory: int = Field(0, ge=0, le=1_000_000)
    """Positions of the segment before that are remembered."""
    segments: bool = True
    """Whether attention knows if a key stands in the query's own segment: first or second text of a pair."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "XlnetConfig":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} does not divide into {self.heads} heads")
        if self.width % 2:
            raise ValueError(f"sinusoidal distances need an even width, not {self.width}")
        return self

    def block(self) -> Weights:
        """The tensors of one block."""
        width = self.width
        biases = ["content_bias", "place_bias"]
        biases += ["segment_bias", "same_segment", "other_segment"] if self.segments else []
        return joined(
            [
                {f"self_attention.{name}": Weight((width,)) for name in biases},
                linear("self_attention.query", width, width, "source", bias=False),
                linear("self_attention.project", 2 * width, width, "source", bias=False),
                # Multiplied with every distance, not with every token.
                linear("self_attention.place", width, width, "distance", bias=False),
                linear("self_attention.out", width, width, "source", bias=False),
                norm("around_self.norm", width),
                linear("feedforward.widen", self.feedforward, width, "source"),
                linear("feedforward.narrow", width, self.feedforward, "source"),
                norm("around_feedforward.norm", width),
            ]
        )

    def weights(self, vocabulary: int) -> Weights:
        """`vocabulary` counts the mask."""
        block = self.block()
        return (
            table("embed.tokens", vocabulary, self.width)
            | {"unknown": Weight((self.width,))}
            | joined(within(f"blocks.{layer}", block) for layer in range(self.layers))
        )

    def pretraining_flops(self, vocabulary: int, tokens: int, targets: int) -> float:
        """Of both streams and the output layer: the last layer's content stream only gives keys and values."""
        block, keys = flops(self.block(), {"source": 1}), 2.0 * 2 * self.width**2
        content = (self.layers - 1) * block + keys
        query = self.layers * (block - keys) + 2.0 * vocabulary * self.width
        return tokens * content + targets * query

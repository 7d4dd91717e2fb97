"""Convolutional encoder and decoder with attention in every layer (Gehring et al. 2017)."""

from typing import Literal

from pydantic import Field, model_validator

from saccade.arch.front_end import TokensFrontEnd
from saccade.arch.positions import PositionsConfig, SinusoidalConfig
from saccade.arch.weights import Weights, joined, linear
from saccade.config import Record


class ConvConfig(Record):
    """A stack of gated convolutions."""

    kind: Literal["convolution"] = "convolution"
    layers: int = Field(4, ge=1, le=1000)
    """Convolutions, one after the other."""
    width: int = Field(256, ge=2, le=65536)
    """Size of the vectors between layers."""
    kernel: int = Field(3, ge=1, le=101)
    """Neighbours a position sees in one layer, itself included; odd in an encoder."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of each layer's input, and of the embedding, dropped in training."""
    positions: PositionsConfig = SinusoidalConfig()
    """How a token knows where it stands."""

    @property
    def embed(self) -> int:
        """Width of the token vectors."""
        return self.width

    @property
    def front_end(self) -> TokensFrontEnd:
        return TokensFrontEnd(positions=self.positions)

    @property
    def looks(self) -> int:
        """Cross-attention layers, in a decoder."""
        return self.layers

    @model_validator(mode="after")
    def _positions_fit(self) -> "ConvConfig":
        if self.positions.kind == "sinusoidal" and self.width % 2:
            raise ValueError(f"sinusoidal positions need an even width, not {self.width}")
        return self

    def weights(self, per: str, memory_width: int | None = None) -> Weights:
        """Without token vectors and output layer."""
        width = self.width
        parts = [linear(f"layers.{layer}.window", 2 * width, self.kernel * width, per) for layer in range(self.layers)]
        for layer in range(self.layers) if memory_width is not None else ():
            look = f"cross_attentions.{layer}"
            parts.append(linear(f"{look}.query", memory_width or 0, width, per))
            parts.append(linear(f"{look}.out", width, memory_width or 0, per))
        return joined(parts)

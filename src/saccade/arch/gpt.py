"""GPT: a stack of masked self-attention that writes on (Radford et al. 2019), and the later variants of its parts."""

from typing import Literal

from pydantic import Field, model_validator

from saccade.arch.block import (
    Activation,
    BlockConfig,
    learned_positions_cover,
    with_learned_positions,
)
from saccade.arch.front_end import TokensFrontEnd
from saccade.arch.positions import AnyPositionsConfig, LearnedConfig
from saccade.arch.weights import Weights, linear, tied, within
from saccade.config import Table


class GptConfig(BlockConfig):
    """A decoder-only stack. The defaults are GPT-2's parts; each may be turned into a later one."""

    kind: Literal["gpt"] = "gpt"
    layers: int = Field(6, ge=1, le=1000)
    """Blocks, one after the other."""
    activation: Activation = "gelu"
    """Between the feed-forward network's matrices."""
    context: int = Field(256, ge=1, le=1_000_000)
    """Tokens it is trained on at once, and looks back over at most."""
    positions: AnyPositionsConfig = LearnedConfig(length=256)
    """How a token knows where it stands: by a vector, or, rotary, in every attention. By default each position of the
    context has a learned vector."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of each sub-layer's output, and of the embedding, dropped in training."""
    tie: bool = True
    """Token vectors and output layer are one matrix."""

    @classmethod
    def modern(cls, table: Table) -> Table:
        return with_learned_positions(super().modern(table), 256)

    @model_validator(mode="after")
    def _positions_cover_the_context(self) -> "GptConfig":
        learned_positions_cover(self.positions, self.context)
        return self

    def weights(self, vocabulary: int) -> Weights:
        head = tied("head", "embed.tokens", vocabulary, self.width, "target")
        return within(
            "decoder",
            TokensFrontEnd(positions=self.positions).weights(self.width, vocabulary, "target")
            | self.stack("target")
            | (head if self.tie else linear("head", vocabulary, self.width, "target", bias=False)),
        )

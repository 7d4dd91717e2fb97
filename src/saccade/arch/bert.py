"""BERT: a stack that sees all of a text (Devlin et al. 2018); RoBERTa is the same without segments."""

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
from saccade.arch.weights import Weights, norm
from saccade.config import Table


class BertConfig(BlockConfig):
    """An encoder that is pre-trained. The defaults are BERT's parts."""

    kind: Literal["bert"] = "bert"
    layers: int = Field(4, ge=1, le=1000)
    """Blocks, one after the other."""
    activation: Activation = "gelu"
    """Between the feed-forward network's matrices."""
    order: Literal["pre", "post"] = "post"
    """The norm after each sum, as in the paper, or before each sub-layer."""
    epsilon: float = Field(1e-12, gt=0, lt=1)
    """Added to the variance in every norm; RoBERTa's is 1e-5."""
    context: int = Field(512, ge=8, le=1_000_000)
    """Tokens it reads at once, at most."""
    positions: AnyPositionsConfig = LearnedConfig(length=512)
    """How a token knows where it stands: by a vector, or, rotary, in every attention. By default each position of the
    context has a learned vector."""
    segments: int = Field(2, ge=0, le=16)
    """Kinds of vectors that say to which of two texts a token belongs; 0 is none."""

    @classmethod
    def modern(cls, table: Table) -> Table:
        return with_learned_positions(super().modern(table), 512)

    @model_validator(mode="after")
    def _parts_fit(self) -> "BertConfig":
        learned_positions_cover(self.positions, self.context)
        if self.positions.kind == "relative":
            raise ValueError("relative positions are for stacks that write; an encoder's are of another kind")
        if any(self.windows):
            raise ValueError("windows are for stacks that write; an encoder looks in both directions")
        return self

    @property
    def front_end(self) -> TokensFrontEnd:
        return TokensFrontEnd(positions=self.positions, segments=self.segments)

    def weights(self, vocabulary: int) -> Weights:
        """`vocabulary` counts the mask."""
        vectors = self.front_end.weights(self.width, vocabulary, "source")
        return vectors | norm("embed.norm", self.width, self.norm) | self.stack("source")

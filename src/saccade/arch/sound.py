"""A sound as log-mel energies, a frame every ten milliseconds: convolutions that make it shorter, or each frame
projected as it is."""

from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from saccade.arch.block import Activation
from saccade.arch.convolutions import ConvolutionsFrontEnd, ConvolutionStage
from saccade.arch.weights import Weights, linear
from saccade.config import Record
from saccade.errors import UserError


class SoundFrontEnd(Record):
    """Frames of energies; each position of what comes out is a vector of `shrinks` frames (Dong et al. 2018, 3)."""

    kind: Literal["sound"] = "sound"
    rate: int = Field(16_000, ge=4_000, le=48_000)
    """Samples in a second that the energies are computed from; other recordings are resampled."""
    mels: int = Field(80, ge=1, le=256)
    """Energies of a frame, at places of the mel scale."""
    stages: tuple[ConvolutionStage, ...] = Field((), max_length=8)
    """Convolutions over time and mel scale; stride = [2, 2] halves both. Without them every frame is projected."""
    norm: Literal["batch", "layer", "none"] = "none"
    """After every convolution; see kind = "convolutions"."""
    activation: Activation = "relu"
    """After every norm."""

    @model_validator(mode="after")
    def _something_is_left(self) -> "SoundFrontEnd":
        if self.stages and self.shrinks > 64:
            raise ValueError(f"stages that make one position of {self.shrinks} frames; at most 64")
        return self

    @cached_property
    def grid(self) -> ConvolutionsFrontEnd | None:
        """The stages as of a picture, time downwards, mel scale to the right; None without stages."""
        if not self.stages:
            return None
        return ConvolutionsFrontEnd(
            height=self.shrinks,
            width=self.mels,
            channels=1,
            stages=self.stages,
            norm=self.norm,
            activation=self.activation,
            positions=False,
        )

    @property
    def shrinks(self) -> int:
        """Frames of one position."""
        frames = 1
        for stage in self.stages:
            frames *= stage.shrinks[0]
        return frames

    @property
    def inputs(self) -> int:
        """Numbers that are projected to one position."""
        return self.mels if self.grid is None else self.grid.grid[1] * self.grid.last_width

    def check(self, mels: int) -> None:
        """Refuse frames of another kind."""
        if mels != self.mels:
            raise UserError(f"frames of {mels} energies were given to a model that reads {self.mels}")

    def weights(self, width: int, vocabulary: int, per: str) -> Weights:
        """`width` is that of the vectors that enter the first layer."""
        found: Weights = {} if self.grid is None else self.grid.weights(self.grid.last_width, vocabulary, per)
        return found | linear("embed.project", width, self.inputs, f"{per} input")

    def counts(self, per: str, positions: int) -> dict[str, int]:
        """How often matrices are multiplied for so many positions of the memory `per`."""
        fields = 1 if self.grid is None else self.grid.grid[1]
        found = {} if self.grid is None else self.grid.counts(per, positions * fields)
        return found | {per: positions, f"{per} input": positions}

"""Front ends: how an encoder's input becomes vectors. Tokens are looked up; a picture is cut into patches, or goes
through convolutions (`convolutions.py`)."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from saccade.arch.convolutions import ConvolutionsFrontEnd, insist_on_size
from saccade.arch.positions import AnyPositionsConfig, LearnedConfig, NoPositionsConfig
from saccade.arch.sound import SoundFrontEnd
from saccade.arch.weights import Weight, Weights, linear, table
from saccade.config import Record


class TokensFrontEnd(Record):
    """A vector for each token, one for its position and one for its segment. Encoders name these parts among their own
    keys, so no recipe writes this record."""

    kind: Literal["tokens"] = "tokens"
    positions: AnyPositionsConfig = NoPositionsConfig()
    """How a token knows where it stands."""
    concatenate: bool = False
    """Position vectors take half of the channels instead of being added."""
    segments: int = Field(0, ge=0, le=16)
    """Kinds of vectors that say to which of two texts a token belongs."""

    def weights(self, width: int, vocabulary: int, per: str) -> Weights:
        """`width` is that of the vectors that enter the first layer."""
        part = width // 2 if self.concatenate else width
        found = table("embed.tokens", vocabulary, part)
        if self.segments:
            found |= table("embed.segments", self.segments, part)
        if isinstance(self.positions, LearnedConfig):
            found |= table("embed.positions.vectors", self.positions.length, part)
        return found

    def counts(self, per: str, positions: int) -> dict[str, int]:
        """How often matrices are multiplied for so many positions of the memory `per`."""
        return {per: positions}


class PatchesFrontEnd(Record):
    """A picture in squares, each projected to a vector (Dosovitskiy et al. 2020, 3.1). Every place of the grid has a
    learned vector. A smaller picture takes the upper left places; its last patches are filled up with zeros."""

    kind: Literal["patches"] = "patches"
    height: int = Field(224, ge=1, le=65536)
    """Pixels from top to bottom, at most."""
    width: int = Field(224, ge=1, le=65536)
    """Pixels from left to right, at most."""
    channels: int = Field(3, ge=1, le=8192)
    """Numbers of a pixel: 3 for colours, 1 for grey; more where a pixel is a field of another network's grid."""
    patch: int = Field(16, ge=1, le=4096)
    """Pixels of a patch's side."""
    class_token: bool = False
    """A learned vector before the patches that looks at all of them and stands for the whole picture."""

    @model_validator(mode="after")
    def _patches_fit(self) -> "PatchesFrontEnd":
        if self.height % self.patch or self.width % self.patch:
            raise ValueError(f"{self.height} x {self.width} pixels do not divide into patches of {self.patch}")
        return self

    @property
    def grid(self) -> tuple[int, int]:
        """Patches from top to bottom and from left to right, at most."""
        return self.height // self.patch, self.width // self.patch

    def grid_of(self, height: int, width: int, channels: int) -> tuple[int, int]:
        """The same of a picture of so many pixels; one that does not fit is refused."""
        insist_on_size((height, width, channels), (self.height, self.width, self.channels))
        return -(-height // self.patch), -(-width // self.patch)

    @property
    def extra(self) -> int:
        """Positions before the patches."""
        return int(self.class_token)

    @property
    def length(self) -> int:
        """Positions that enter the first layer, at most."""
        return self.extra + self.grid[0] * self.grid[1]

    @property
    def inputs(self) -> int:
        """Numbers of a patch."""
        return self.patch * self.patch * self.channels

    def weights(self, width: int, vocabulary: int, per: str) -> Weights:
        """`width` is that of the vectors that enter the first layer."""
        found = linear("embed.patches", width, self.inputs, _input_of(per))
        if self.class_token:
            found |= {"embed.class_token": Weight((width,))}
        return found | table("embed.positions.vectors", self.length, width)

    def counts(self, per: str, positions: int) -> dict[str, int]:
        """How often matrices are multiplied for so many positions of the memory `per`: a class token is a position, but
        no patch."""
        return {per: positions, _input_of(per): positions - self.extra}


def _patches_unless_said(table: object) -> object:
    return {"kind": "patches"} | table if isinstance(table, dict) else table


PictureFrontEnd = PatchesFrontEnd | ConvolutionsFrontEnd
AnyInputFrontEnd = Annotated[
    Annotated[PictureFrontEnd | SoundFrontEnd, Field(discriminator="kind")], BeforeValidator(_patches_unless_said)
]
"""How a picture or a sound becomes vectors: kind = "patches", "convolutions" or "sound"."""
FrontEnd = TokensFrontEnd | PatchesFrontEnd | ConvolutionsFrontEnd | SoundFrontEnd


def _input_of(per: str) -> str:
    return f"{per} input"

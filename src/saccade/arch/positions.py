"""How a token knows where it stands: a vector that is added or concatenated, or a rotation inside every attention."""

from typing import Annotated, Literal

from pydantic import Field

from saccade.config import Record


class SinusoidalConfig(Record):
    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: Literal["interleaved", "halves"] = "interleaved"
    """interleaved: sine and cosine alternate, as in the paper; halves: all sines, then all cosines."""


class LearnedConfig(Record):
    kind: Literal["learned"] = "learned"
    length: int = Field(512, ge=1, le=1_000_000)
    """Positions that have a vector; longer input is an error."""


class RotaryConfig(Record):
    kind: Literal["rotary"] = "rotary"
    base: float = Field(10_000.0, gt=1)
    """The slowest pair of channels turns about once in 2π x base positions."""
    layout: Literal["interleaved", "halves"] = "interleaved"
    """interleaved: channels 2i and 2i+1 turn together, as in the paper; halves: i and i + H/2."""


class NoPositionsConfig(Record):
    kind: Literal["none"] = "none"


PositionsConfig = Annotated[SinusoidalConfig | LearnedConfig | NoPositionsConfig, Field(discriminator="kind")]
"""Positions that are vectors."""
AnyPositionsConfig = Annotated[
    SinusoidalConfig | LearnedConfig | RotaryConfig | NoPositionsConfig, Field(discriminator="kind")
]
"""A vector for each position, or, rotary, a rotation of queries and keys in every attention."""


def added(positions: AnyPositionsConfig) -> PositionsConfig:
    """The positions that are added to token vectors; rotary ones act inside every attention instead."""
    return NoPositionsConfig() if isinstance(positions, RotaryConfig) else positions

"""How a token knows where it stands: a vector that is added or concatenated, or something inside every attention."""

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


class RelativeConfig(Record):
    """In place of a position, every query knows how far back each key stands (Dai et al. 2019, 3.3; Gopher). For stacks
    that write."""

    kind: Literal["relative"] = "relative"


class NoPositionsConfig(Record):
    kind: Literal["none"] = "none"


PositionsConfig = Annotated[SinusoidalConfig | LearnedConfig | NoPositionsConfig, Field(discriminator="kind")]
"""Positions that are vectors."""
AnyPositionsConfig = Annotated[
    SinusoidalConfig | LearnedConfig | RotaryConfig | RelativeConfig | NoPositionsConfig, Field(discriminator="kind")
]
"""A vector for each position; or, in every attention, a turn of queries and keys (rotary), or distances (relative)."""


def added(positions: AnyPositionsConfig) -> PositionsConfig:
    """The positions that are added to token vectors; the other kinds act inside every attention instead."""
    return NoPositionsConfig() if isinstance(positions, RotaryConfig | RelativeConfig) else positions

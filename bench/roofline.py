"""The least time a piece of work can take on a machine: reading its weights, or multiplying them, whichever is longer.

Only weight matrices are multiplied here; attention, norms and everything between are left out, so that no engine
reaches all of its limit.
"""

from dataclasses import dataclass

from bench.machine import Machine


@dataclass(frozen=True)
class Numbers:
    """What an engine keeps its weights in, and what it multiplies."""

    weight_bytes: int
    multiplies: str
    """float32, int16 or int8."""


FLOAT32 = Numbers(4, "float32")
INT16 = Numbers(2, "int16")
INT8 = Numbers(1, "int8")
INT8_WIDENED = Numbers(1, "int16")
"""Bytes that are widened before they are multiplied: Saccade's int8 where the processor does not multiply bytes."""


@dataclass(frozen=True)
class Work:
    """What one call cannot do without."""

    weights: float
    """Numbers in the weight matrices, each read once."""
    multiply_adds: float
    other_bytes: float = 0.0
    """Read besides the weights: keys and values."""


def least_milliseconds(work: Work, numbers: Numbers, machine: Machine) -> float | None:
    """None where the machine's speed is not known."""
    limits = machine.limits
    # A multiply-add is two floating-point operations.
    peak = limits["gigaflops"] / 2 if numbers.multiplies == "float32" else limits[numbers.multiplies]
    if not peak or not limits["gigabytes"]:
        return None
    reading = (work.weights * numbers.weight_bytes + work.other_bytes) / limits["gigabytes"]
    return float(max(reading, work.multiply_adds / peak) / 1e6)

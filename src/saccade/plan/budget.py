"""The inverse questions: what so much money, or so many device-hours, can train."""

from dataclasses import dataclass
from math import sqrt

from saccade.errors import WrongUse
from saccade.plan.devices import DeviceRecord

TOKENS_PER_PARAMETER = 20.0
"""Compute-optimal, rounded: 20.0 at 400 M parameters, 22.4 at 67 B (Hoffmann et al. 2022, table 3)."""


@dataclass(frozen=True)
class Affordable:
    """What a budget allows."""

    dollars: float | None
    device_hours: float
    flops: float
    parameters: float
    """Of the model that gets furthest with it."""
    tokens: float
    """That it should see."""


def device_hours(device: DeviceRecord, *, dollars: float | None, count: int, days: float | None) -> float:
    """How long devices work for a budget of dollars, or of days."""
    if dollars is not None:
        if device.price is None:
            raise WrongUse(f"no price of {device.name} is known: give one with --price")
        return dollars / device.price
    if days is None:
        raise WrongUse("a budget is a number of dollars (--budget) or of days (--days)")
    return days * 24 * count


def affordable(device: DeviceRecord, hours: float, dollars: float | None = None) -> Affordable:
    """The compute-optimal model: C = 6 N D and D = 20 N (Hoffmann et al. 2022)."""
    flops = hours * 3600 * device.teraflops * 1e12 * device.efficiency
    parameters = sqrt(flops / (6 * TOKENS_PER_PARAMETER))
    return Affordable(dollars, hours, flops, parameters, TOKENS_PER_PARAMETER * parameters)


def optimal_tokens(parameters: float) -> float:
    """That a model of this size should see."""
    return TOKENS_PER_PARAMETER * parameters

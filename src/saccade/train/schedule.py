"""Learning-rate schedules as pure functions of the step, from 1; each gives the share of the peak rate."""

import math


def inverse_square_root(step: int, warmup: int, steps: int) -> float:  # noqa: ARG001
    """Linear warm-up, then ~1/√step (Vaswani et al. 2017, 5.3, whose peak is (d · warmup)^-½)."""
    return min(step / max(warmup, 1), math.sqrt(max(warmup, 1) / step))


def linear_to_zero(step: int, warmup: int, steps: int) -> float:
    """Linear warm-up, then linearly down, reaching zero one step after the last."""
    if step < warmup:
        return step / warmup
    return max(0.0, (steps + 1 - step) / (steps + 1 - min(warmup, steps)))


COOLDOWN = 0.2
"""Share of the steps of a trapezoid in which the rate falls."""


def trapezoid(step: int, warmup: int, steps: int) -> float:
    """Linear warm-up, then constant, then linearly down in the last fifth of the steps (Hägele et al. 2024).

    Before the fall the rate does not depend on `steps`: a run can be made longer or shorter while it is under way.
    """
    return min(1.0, step / max(warmup, 1), (steps + 1 - step) / max(COOLDOWN * steps, 1.0))


SCHEDULES = {"inverse-square-root": inverse_square_root, "linear": linear_to_zero, "trapezoid": trapezoid}

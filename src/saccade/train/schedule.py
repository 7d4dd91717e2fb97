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


SCHEDULES = {"inverse-square-root": inverse_square_root, "linear": linear_to_zero}

"""One training step: gradients of the parts of a batch, clipping, then the optimiser."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import optim

from saccade.train.gradients import Gradients
from saccade.train.parts import threads


@dataclass(frozen=True)
class Step:
    """What a step found."""

    losses: list[dict[str, float]]
    """Of each batch, over the count of all."""
    norm: float
    """Of the gradient, before it was clipped."""

    @property
    def totals(self) -> dict[str, float]:
        return {name: sum(losses[name] for losses in self.losses) for name in self.losses[0]}


def take_step(gradients: Gradients, optimizer: optim.Optimizer, batches: Sequence[Any], most: float) -> Step:
    """Update the weights by the gradient of all batches together, clipped to the norm `most`. No update if the gradient
    is not finite."""
    # One thread: there is little work outside the parts, and a second thread would wait on a core that the next parts
    # need. For a small model that costs a fifth of a step.
    with threads(1):
        losses = list(gradients.add_gradients(batches, gradients.count(batches)))
        norm = gradients.clip(most)
        if math.isfinite(norm):
            optimizer.step()
        optimizer.zero_grad()
    return Step(losses, norm)

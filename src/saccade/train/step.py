"""One training step, whatever is trained: the gradients of a batch in parts, clipped, then the optimiser's move."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import optim

from saccade.train.optim import clip
from saccade.train.parts import Parts, threads


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


def take_step(parts: Parts, optimizer: optim.Optimizer, batches: Sequence[Any], most: float) -> Step:
    """Move the weights along the gradient of all batches together, its norm at most `most`; they stay where they are
    if it is not a number."""
    # Beside the parts there is little work, and a second thread that took part in it would wait for more on a core the
    # next parts need: for a small model that is a fifth of a step.
    with threads(1):
        losses = list(parts.add_gradients(batches, sum(parts.objective.count(batch) for batch in batches)))
        norm = clip(parts.weights, most)
        if math.isfinite(norm):
            optimizer.step()
        optimizer.zero_grad()
    return Step(losses, norm)

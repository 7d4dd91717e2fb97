"""The interface of an objective for the loop. It knows no model and no task."""

from typing import Any, Protocol

from torch import Tensor, nn

Losses = dict[str, tuple[Tensor, int]]
"""Each loss as a sum and a count. The division comes once, over all micro-batches."""


class Objective(Protocol):
    """What the loop minimises."""

    def count(self, batch: Any) -> int:
        """How many items the loss of this batch is summed over."""
        ...

    def flops(self, model: nn.Module, batch: Any) -> float:
        """Useful floating-point operations of one training step on this batch: padding not counted."""
        ...

    def __call__(self, model: nn.Module, batch: Any) -> Losses:
        """The losses; `loss` is the one that is minimised."""
        ...

"""The interface of an objective for the loop, and a model together with its objective. They know no task."""

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from saccade.train.device import device_of, moved

Losses = dict[str, tuple[Tensor, int]]
"""Each loss as a sum and a count. The division comes once, over all micro-batches."""


@dataclass(frozen=True)
class StepWork:
    """What a step did."""

    tokens: int
    """Target tokens."""
    flops: float
    """Floating-point operations."""


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


class LossModule(nn.Module):
    """A model and its objective as one module: one call gives the losses of a batch.

    Whatever an objective does with parts of the model happens inside this call, so that what wraps a module (such as
    DDP or FSDP) can wrap this one. Batches are moved here to where the weights are.
    """

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, batch: Any) -> Losses:
        device = device_of(self.model)
        return self.objective(self.model, batch if device.type == "cpu" else moved(batch, device))

"""How the gradients of a batch are computed: one of several ways, chosen once, before the first step.

On a CPU the batch is cut into parts, a thread each (`parts.py`); on a GPU one backward pass goes over the whole batch.
Several processes each take a part of it (`parallel.py`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import nn

from saccade.errors import UserError
from saccade.nn.convolutions import BatchNorm
from saccade.nn.dropout import drawn_from
from saccade.train.clip import clip
from saccade.train.contract import LossModule, Objective, StepWork
from saccade.train.device import device_of
from saccade.train.parallel import ParallelConfig, RankGradients
from saccade.train.parts import BatchParts, threads
from saccade.train.ranks import here
from saccade.train.recompute import recompute_blocks

Way = Literal["auto", "threads", "plain"]
"""auto: threads on a CPU, plain elsewhere, and where a model has batch norm."""
ONE_PROCESS = ParallelConfig()


class Gradients(Protocol):
    """Adds the gradients of batches to those of the weights."""

    objective: Objective
    weights: list[nn.Parameter]
    """Those that are trained."""

    def split(self, indices: np.ndarray) -> list[np.ndarray]:
        """The examples of one batch, as it is to be made: whole or in parts."""
        ...

    def count(self, batches: Sequence[Any]) -> int:
        """The number of items in all of them."""
        ...

    def add_gradients(self, batches: Sequence[Any], count: int) -> Iterator[dict[str, float]]:
        """The losses of each batch, divided by `count`, the number of items in all of them."""
        ...

    def clip(self, most: float) -> float:
        """The norm of all gradients, which are scaled down if it is above `most`."""
        ...

    def together(self, losses: dict[str, float], work: StepWork) -> tuple[dict[str, float], StepWork]:
        """Losses and work of a step, those of all processes added."""
        ...


class PlainGradients:
    """One forward and one backward pass over each batch."""

    def __init__(self, model: nn.Module, objective: Objective, *, kind: torch.dtype = torch.float32) -> None:
        """`kind`: type of the matrix products."""
        self.objective, self.kind = objective, kind
        self.module: nn.Module = LossModule(model, objective)
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        self.device, self.threads = device_of(model), torch.get_num_threads()

    def split(self, indices: np.ndarray) -> list[np.ndarray]:
        return [indices]

    def count(self, batches: Sequence[Any]) -> int:
        return sum(self.objective.count(batch) for batch in batches)

    def clip(self, most: float) -> float:
        return clip(self.weights, most)

    def together(self, losses: dict[str, float], work: StepWork) -> tuple[dict[str, float], StepWork]:
        return losses, work

    def add_gradients(self, batches: Sequence[Any], count: int) -> Iterator[dict[str, float]]:
        seeds = torch.randint(2**62, (len(batches),)).tolist()
        for batch, seed in zip(batches, seeds, strict=True):
            with threads(self.threads), drawn_from(seed):
                with torch.autocast(self.device.type, self.kind, enabled=self.kind != torch.float32):
                    losses = self.module(batch)
                (losses["loss"][0] / count).backward()
            yield {name: total.item() / count for name, (total, _) in losses.items()}


def choose_gradients(
    way: Way, model: nn.Module, objective: Objective, kind: torch.dtype, parallel: ParallelConfig = ONE_PROCESS
) -> Gradients:
    """By the device that the model is on, and by how many processes train it. Batch norm counts means over whole
    batches: parts of one, at work at the same time, would write over each other's."""
    ranks = here()
    if ranks.count > 1:
        return RankGradients(model, objective, parallel, ranks, kind=kind)
    parallel.among(1)
    if parallel.checkpointing == "full":
        recompute_blocks(model)
    on_cpu = device_of(model).type == "cpu"
    counts = any(isinstance(module, BatchNorm) for module in model.modules())
    if way == "threads" and counts:
        raise UserError("train.gradients is 'threads', which cuts batches in parts; with batch norm it is 'plain'")
    if way == "threads" and not on_cpu:
        raise UserError(f"train.gradients is 'threads', which is for CPUs; on {device_of(model).type} it is 'plain'")
    if way == "plain" or counts or not on_cpu:
        return PlainGradients(model, objective, kind=kind)
    return BatchParts(model, objective, kind=kind)

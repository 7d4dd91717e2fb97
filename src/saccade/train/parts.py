"""A batch in parts, one thread each: how gradients are computed on a CPU.

A training step is many products of medium-sized matrices. Two cores that share each product wait for each other some
hundreds of times a step. Two cores with half of the sentences each synchronise once, to add their gradients.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saccade.nn.dropout import drawn_from
from saccade.train.clip import clip
from saccade.train.contract import LossModule, Objective, StepWork

PARTS_AT_MOST = 4
"""Largest number of parts; each has its own gradients, as large as the model. More cores share a part."""

Gradients = tuple[Tensor | None, ...]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """PyTorch's operators use this many threads inside the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class BatchParts:
    """Computes losses and gradients of the parts of a batch in parallel.

    The parts are added in a fixed order, and each has its own random numbers: the order in which threads finish has
    no effect.
    """

    def __init__(
        self, model: nn.Module, objective: Objective, most: int | None = None, *, kind: torch.dtype = torch.float32
    ) -> None:
        """`kind`: type of the matrix products."""
        self.objective, self.module = objective, LossModule(model, objective)
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        self.threads = torch.get_num_threads()
        self.kind = kind
        self.most = most or min(self.threads, PARTS_AT_MOST)
        self.pool = ThreadPoolExecutor(self.most)

    def split(self, indices: np.ndarray) -> list[np.ndarray]:
        """Each part gets every n-th example: batches are sorted by length, and no part should get all long ones."""
        return [indices[first :: self.most] for first in range(min(self.most, len(indices)))]

    def count(self, batches: Sequence[Any]) -> int:
        return sum(self.objective.count(batch) for batch in batches)

    def clip(self, most: float) -> float:
        return clip(self.weights, most)

    def together(self, losses: dict[str, float], work: StepWork) -> tuple[dict[str, float], StepWork]:
        return losses, work

    def add_gradients(self, batches: Sequence[Any], count: int) -> Iterator[dict[str, float]]:
        """The losses of each batch, divided by `count`; gradients are added to those of the weights."""
        seeds = torch.randint(2**62, (len(batches),)).tolist()
        side_by_side = min(self.most, len(batches))
        work = self._work(count, max(1, self.threads // side_by_side))
        with threads(1):  # restores the number for MKL too, which has one for all threads
            yield from map(self._add, self.pool.map(work, batches, seeds))

    def _work(self, count: int, threads: int) -> Callable[[Any, int], tuple[dict[str, float], Gradients]]:
        def work(batch: Any, seed: int) -> tuple[dict[str, float], Gradients]:
            torch.set_num_threads(threads)
            with drawn_from(seed):
                with torch.autocast("cpu", self.kind, enabled=self.kind != torch.float32):
                    losses = self.module(batch)
                gradients = torch.autograd.grad(losses["loss"][0] / count, self.weights, allow_unused=True)
            return {name: total.item() / count for name, (total, _) in losses.items()}, gradients

        return work

    def _add(self, found: tuple[dict[str, float], Gradients]) -> dict[str, float]:
        losses, gradients = found
        for weight, gradient in zip(self.weights, gradients, strict=True):
            if weight.grad is None:
                weight.grad = gradient
            elif gradient is not None:
                weight.grad += gradient
        return losses

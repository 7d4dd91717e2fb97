"""Muon: matrices inside the blocks are updated by orthogonal steps (Jordan et al. 2024).

An Adam step is mostly along a few directions, those of the gradient's large singular values. An orthogonal step has
the same length in all directions. Steps are scaled to the size of Adam's (Liu et al. 2025), so that both use one rate.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn, optim

from saccade.nn.convolutions import GridConvolution
from saccade.nn.stacked import Stacked
from saccade.train.depth import BLOCK
from saccade.train.parts import threads

ROUNDS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Jordan's coefficients: in few rounds they bring singular values near one, to about 0.7 to 1.2."""
SIZE = 0.2
"""Approximate root mean square of Adam's steps."""


def matrices_inside(model: nn.Module) -> Iterator[tuple[Tensor, tuple[int, ...]]]:
    """The matrices of all blocks and convolutions, each with the heights of the matrices it stacks. Token vectors,
    positions and the output layer are not included: their rows are updated one by one, as words occur."""
    for name, layer in model.named_modules():
        if isinstance(layer, GridConvolution) or (isinstance(layer, nn.Linear) and BLOCK.search(f"{name}.")):
            yield layer.weight, layer.sizes if isinstance(layer, Stacked) else (layer.out_features,)


def orthogonal(matrix_RC: Tensor, kind: torch.dtype = torch.float32) -> Tensor:
    """Nearly U Vᵀ of the matrix U S Vᵀ, by Newton and Schulz: a few products instead of a decomposition.

    Every round is x ← p(x xᵀ) x. `kind` is the type of the products; bfloat16 is enough (Jordan et al.).
    """
    x = (matrix_RC / matrix_RC.norm().clamp(min=1e-20)).to(kind)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T.contiguous()
    first, third, fifth = COEFFICIENTS
    for _ in range(ROUNDS):
        squares = x @ x.T
        polynomial = torch.addmm(squares, squares, squares, beta=third, alpha=fifth)
        x = torch.addmm(x, polynomial, x, beta=first)
    result: Tensor = x.to(matrix_RC.dtype)
    return result.T if tall else result


class Muon(optim.AdamW):
    """AdamW for all groups but those with a `momentum`, whose matrices, stacks of `sizes`, move by Muon.

    Threads take whole matrices. Threads that share a product of this size wait for each other longer than they
    compute, above all where other work is on the processor: that took half of a step.
    """

    def __init__(self, groups: list[dict[str, Any]], *, kind: torch.dtype = torch.float32, **settings: Any) -> None:
        """`kind`: of the numbers in its matrix products."""
        self.kind = kind
        self.pool = ThreadPoolExecutor(torch.get_num_threads())
        super().__init__(groups, **settings)

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        groups = self.param_groups
        try:
            self.param_groups = [group for group in groups if "momentum" not in group]
            super().step(closure)
        finally:
            self.param_groups = groups
        self.move_matrices()

    def move_matrices(self) -> None:
        """The step of the groups with a momentum."""
        work = [
            (group, weight, sizes)
            for group in self.param_groups
            if "momentum" in group
            for weight, sizes in zip(group["params"], group["sizes"], strict=True)
            if weight.grad is not None
        ]
        work.sort(key=lambda each: -each[1].numel())  # large ones first, so that all threads end at the same time
        with threads(1):
            deque(self.pool.map(self._move, *zip(*work, strict=True)), maxlen=0)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """AdamW's own method expects its moments in the state of every weight, to read those of old versions."""
        optim.Optimizer.__setstate__(self, state)

    @torch.no_grad()
    def _move(self, group: dict[str, Any], weight: Tensor, sizes: tuple[int, ...]) -> None:
        torch.set_num_threads(1)
        ahead = self.look_ahead(group, weight)
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        for part, step in zip(torch.split(weight, [*sizes]), torch.split(ahead, [*sizes]), strict=True):
            move = orthogonal(step, self.kind)
            part.sub_(move, alpha=group["lr"] * SIZE * math.sqrt(max(step.shape)))

    def look_ahead(self, group: dict[str, Any], weight: Tensor) -> Tensor:
        """Where the mean gradient would be after one more like this one (Nesterov's)."""
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        assert weight.grad is not None
        mean = state["momentum"].lerp_(weight.grad, 1 - group["momentum"])
        return weight.grad.lerp(mean, group["momentum"])

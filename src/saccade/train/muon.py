"""Muon: matrices inside the blocks are updated by orthogonal steps (Jordan et al. 2024).

An Adam step is mostly along a few directions, those of the gradient's large singular values. An orthogonal step has
the same length in all directions. Steps are scaled to the size of Adam's (Liu et al. 2025), so that both use one rate.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
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


def orthogonal(stack_NRC: Tensor, kind: torch.dtype = torch.float32) -> Tensor:
    """Nearly U Vᵀ of each matrix U S Vᵀ, by Newton and Schulz: a few products instead of a decomposition.

    Every round is x ← p(x xᵀ) x. `kind` is the type of the products; bfloat16 is enough (Jordan et al.).
    """
    x = (stack_NRC / stack_NRC.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-20)).to(kind)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT.contiguous()
    first, third, fifth = COEFFICIENTS
    for _ in range(ROUNDS):
        squares = x @ x.mT
        polynomial = torch.baddbmm(squares, squares, squares, beta=third, alpha=fifth)
        x = torch.baddbmm(x, polynomial, x, beta=first)
    result: Tensor = x.to(stack_NRC.dtype)
    return result.mT if tall else result


class Muon(optim.AdamW):
    """AdamW for all groups but those with a `momentum`, whose matrices, stacks of `sizes`, move by Muon."""

    def __init__(self, groups: list[dict[str, Any]], *, kind: torch.dtype = torch.float32, **settings: Any) -> None:
        """`kind`: of the numbers in its matrix products."""
        self.kind = kind
        self.threads = torch.get_num_threads()
        super().__init__(groups, **settings)

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        groups = self.param_groups
        try:
            self.param_groups = [group for group in groups if "momentum" not in group]
            super().step(closure)
        finally:
            self.param_groups = groups
        with threads(self.threads):  # its products can use all threads
            for group in groups:
                if "momentum" in group:
                    self._move(group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """AdamW's own method expects its moments in the state of every weight, to read those of old versions."""
        optim.Optimizer.__setstate__(self, state)

    @torch.no_grad()
    def _move(self, group: dict[str, Any]) -> None:
        steps: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for weight, sizes in zip(group["params"], group["sizes"], strict=True):
            if weight.grad is None:
                continue
            state = self.state[weight]
            if not state:
                state["momentum"] = torch.zeros_like(weight)
            mean = state["momentum"].lerp_(weight.grad, 1 - group["momentum"])
            ahead = weight.grad.lerp(mean, group["momentum"])  # Nesterov's
            for part, step in zip(weight.split(sizes), ahead.split(sizes), strict=True):
                steps[step.shape].append((part, step))
        for shape, pairs in steps.items():
            moves = orthogonal(torch.stack([step for _, step in pairs]), self.kind)
            length = group["lr"] * SIZE * math.sqrt(max(shape))
            for (part, _), move in zip(pairs, moves, strict=True):
                part.mul_(1 - group["lr"] * group["weight_decay"]).sub_(move, alpha=length)

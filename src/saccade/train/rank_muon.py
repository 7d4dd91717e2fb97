"""Muon where processes share the weights: a matrix is put together for its step, which one of them computes.

As many matrices as there are processes are at work at a time, so that each computes one, and nothing twice.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from saccade.train.muon import SIZE, Muon, orthogonal
from saccade.train.ranks import here
from saccade.train.shards import Stacks, like, mine, whole


class RankMuon(Muon):
    """`Muon` for the parts of weights that are here."""

    def divide(self, weights: Mapping[Tensor, tuple[str, Tensor]], stacks: Stacks, tensor: int) -> None:
        """The name of each part, and the whole weight that it is of, divided among `tensor` and other processes."""
        self.weights, self.stacks, self.tensor = weights, stacks, tensor

    @torch.no_grad()
    def move_matrices(self) -> None:
        work = [
            (group, part, sizes)
            for group in self.param_groups
            if "momentum" in group
            for part, sizes in zip(group["params"], group["sizes"], strict=True)
        ]  # fmt: skip
        ranks = here()
        for start in range(0, len(work), ranks.count):
            some = work[start : start + ranks.count]
            wholes = [self._whole(group, part) for group, part, _ in some]
            for place, (_, part, sizes) in enumerate(some):
                name, _ = self.weights[part]
                steps = wholes[place]
                if place == ranks.rank:
                    heights = self.stacks.get(name, sizes)
                    steps = torch.cat([self._step(each) for each in torch.split(steps, [*heights])])
                wholes[place] = steps
            for place, (group, part, _) in enumerate(some):
                name, weight = self.weights[part]
                steps = wholes[place].contiguous()
                dist.broadcast(steps, src=place)
                part.mul_(1 - group["lr"] * group["weight_decay"])
                part.sub_(mine(name, steps, weight, self.stacks, self.tensor), alpha=group["lr"])

    def _whole(self, group: dict[str, Any], part: Tensor) -> Tensor:
        name, weight = self.weights[part]
        if part.grad is None:
            part.grad = torch.zeros_like(part)
        return whole(name, like(weight, self.look_ahead(group, part)), self.stacks, self.tensor)

    def _step(self, matrix: Tensor) -> Tensor:
        return SIZE * math.sqrt(max(matrix.shape)) * orthogonal(matrix, self.kind)

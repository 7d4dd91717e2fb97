"""Which part of a weight is here: whole weights into this process's parts, and parts into whole weights.

A weight of a parallel training is a DTensor, cut by columns or rows among the tensor-parallel processes and then by
rows among those that share it. What `whole` and `mine` exchange is always the weight as a single process has it.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Optional

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

Stacks = Mapping[str, tuple[int, ...]]
"""By name, the heights of the matrices that a weight stacks, where their rows were dealt out among processes."""


def dealt(sizes: Sequence[int], parts: int) -> Tensor:
    """The order of rows in which a stack of matrices is cut evenly, so that each part has its share of every matrix:
    queries, keys and values of the same heads."""
    starts = [0, *accumulate(sizes)][:-1]
    return torch.cat(
        [
            torch.arange(start + part * size // parts, start + (part + 1) * size // parts)
            for part in range(parts)
            for start, size in zip(starts, sizes, strict=True)
        ]
    )


def as_divided(weight: Tensor) -> Optional["DTensor"]:
    """The weight, if it is divided. DTensor takes half a second to import: one process does without."""
    from torch.distributed.tensor import DTensor

    return weight if isinstance(weight, DTensor) else None


def whole(name: str, weight: Tensor, stacks: Stacks, tensor: int) -> Tensor:
    """The whole weight, on every process; all must ask for it."""
    divided = as_divided(weight.detach())
    if divided is None:
        return weight.detach()
    full = divided.full_tensor()
    return full[dealt(stacks[name], tensor).argsort()] if name in stacks else full


def mine(name: str, full: Tensor, weight: Tensor, stacks: Stacks, tensor: int) -> Tensor:
    """This process's part of a whole weight, cut as `weight` is."""
    divided = as_divided(weight)
    if divided is None:
        return full
    return cut(full[dealt(stacks[name], tensor)] if name in stacks else full, divided)


def cut(full: Tensor, weight: "DTensor") -> Tensor:
    """The part of a tensor of the weight's shape that a process has; the last dimension of the mesh cuts first."""
    mesh, part = weight.device_mesh, full
    for axis, placement in reversed(list(enumerate(weight.placements))):
        dimension = getattr(placement, "dim", None)
        if dimension is not None:
            pieces = part.chunk(mesh.size(axis), dim=dimension)
            place = mesh.get_local_rank(axis)
            # Fewer rows than processes: some have none.
            part = pieces[place] if place < len(pieces) else part.narrow(dimension, 0, 0)
    return part.contiguous()


def like(weight: Tensor, local: Tensor) -> Tensor:
    """A tensor that is divided as the weight is, of which this is the part here."""
    divided = as_divided(weight)
    if divided is None:
        return local
    return type(divided).from_local(
        local, divided.device_mesh, divided.placements, run_check=False, shape=weight.shape, stride=weight.stride()
    )


def local_of(weight: Tensor) -> Tensor:
    """The part of it that is here."""
    divided = as_divided(weight)
    return weight if divided is None else divided.to_local()


def copies(weight: Tensor, processes: int) -> int:
    """How many processes hold the same part of it."""
    divided = as_divided(weight)
    if divided is None:
        return processes
    parts = 1
    for axis, placement in enumerate(divided.placements):
        parts *= divided.device_mesh.size(axis) if getattr(placement, "dim", None) is not None else 1
    return processes // parts

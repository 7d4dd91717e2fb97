"""The processes of one training, as torchrun starts them: which one this is, and what they tell each other.

A process on its own is the same with a count of one; everything here then does nothing.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

from saccade.errors import UserError

Value = TypeVar("Value")
PATIENCE = timedelta(hours=12)
"""How long processes wait for the first one, which validates alone. A process that died is noticed at once."""


@dataclass(frozen=True)
class Ranks:
    """This process among all of a training."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """The one that prepares the data, writes files, validates and logs."""
        return self.rank == 0

    def wait(self) -> None:
        """For all others to come to the same place."""
        if self.count > 1:
            dist.barrier()

    def sum(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Each figure, summed over all processes."""
        if self.count == 1:
            return dict(figures)
        total = torch.tensor(list(figures.values()), dtype=torch.float64)
        dist.all_reduce(total)
        return dict(zip(figures, total.tolist(), strict=True))

    def any(self, asked: bool) -> bool:
        """Whether one of them was asked; all get the same answer."""
        return asked if self.count == 1 else self.sum({"asked": float(asked)})["asked"] > 0

    def from_first(self, value: Value) -> Value:
        """What the first process has."""
        if self.count == 1:
            return value
        told = [value]
        dist.broadcast_object_list(told, src=0)
        return told[0]


ALONE = Ranks()


def here() -> Ranks:
    """This process among those that have joined."""
    if dist.is_available() and dist.is_initialized():
        return Ranks(dist.get_rank(), dist.get_world_size())
    return ALONE


def started() -> int:
    """How many processes torchrun has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def is_first() -> bool:
    """Whether this process writes files; known before it has joined the others."""
    return started() == 1 or os.environ.get("RANK") == "0"


def is_restarted() -> bool:
    """Whether torchrun started these processes again, after one of them was lost."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


@contextmanager
def joined() -> Iterator[Ranks]:
    """Join the other processes of a training, if there are any; GPUs talk by NCCL, everything else by Gloo."""
    if started() == 1 or (dist.is_available() and dist.is_initialized()):
        yield here()
        return
    if not dist.is_available():
        raise UserError("this PyTorch is built without torch.distributed: it trains in one process only")
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield here()
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            raise UserError(
                "another process of this training was lost: torchrun --max-restarts 3 starts all of them again, "
                "and they go on; or saccade resume"
            ) from None
        raise
    # Not after an error: the other processes would have to take part.
    dist.destroy_process_group()

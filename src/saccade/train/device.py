"""Where a training computes. Devices are named here and nowhere else; models and data follow."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from saccade.errors import UserError

Device = Literal["auto", "cpu", "cuda", "mps"]
"""auto: a GPU, if PyTorch has one."""
Module = TypeVar("Module", bound=nn.Module)


def choose_device(name: Device) -> torch.device:
    """The device of that name; one that is not there is one clear line."""
    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    there = [kind for kind, is_there in found.items() if is_there]
    if name == "auto":
        return torch.device((*there, "cpu")[0])
    if name != "cpu" and name not in there:
        known = ", ".join([*there, "cpu"])
        raise UserError(f"--device {name}: PyTorch finds no such device here; it has {known}; --device auto chooses")
    return torch.device(name)


@contextmanager
def on_device(model: nn.Module, device: torch.device) -> Iterator[None]:
    """The model is on the device inside, and back in main memory afterwards, to be stored and to answer."""
    model.to(device)
    try:
        yield
    finally:
        model.to("cpu")


def to_answer(model: Module) -> Module:
    """The model where pipelines run, which know no device: itself, or a copy in main memory."""
    return model if device_of(model).type == "cpu" else copy.deepcopy(model).to("cpu")


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def moved(batch: Any, device: torch.device) -> Any:
    """A batch with all its tensors on the device: a record, a sequence or a table of tensors and of such parts."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if is_dataclass(batch) and not isinstance(batch, type):
        return replace(batch, **{field.name: moved(getattr(batch, field.name), device) for field in fields(batch)})
    if isinstance(batch, list | tuple):
        return type(batch)(moved(part, device) for part in batch)
    if isinstance(batch, dict):
        return {name: moved(part, device) for name, part in batch.items()}
    return batch

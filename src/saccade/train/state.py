"""The state of a training into a checkpoint and out of one: weights, optimiser, random numbers, place in the data."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn, optim

from saccade.data.sampler import Batches
from saccade.errors import UserError
from saccade.train.checkpoint import (
    Checkpoint,
    EarlierCheckpoint,
    Tensors,
    checkpoint_path,
    checkpoints,
    read_checkpoint,
    thin,
    write_checkpoint,
)
from saccade.train.optim import moments_of

Found = TypeVar("Found")


@dataclass
class Progress:
    """The part of a run's state that is plain values."""

    step: int = 0
    best: float = -math.inf
    best_step: int = 0
    snapshots: tuple[int, ...] = ()
    """The validated steps, whose weights may be averaged."""
    stale: int = 0
    """Validations since the best."""
    seconds: float = 0.0
    """Time spent so far."""


@dataclass(frozen=True)
class TrainingState:
    """Everything that moves while a model trains."""

    model: nn.Module
    optimizer: optim.Optimizer
    sampler: Batches

    def save(self, folder: Path, progress: Progress) -> None:
        """Write a checkpoint; of the older ones, only what may still be needed is kept."""
        weights = {name: weight.detach() for name, weight in self.model.named_parameters()}
        write_checkpoint(folder, Checkpoint(progress.step, weights, self.training(), self.plain(progress)))
        thin_after(folder, progress)

    def collect(self) -> None:
        """The weights are in the model that is validated."""

    def training(self) -> Tensors:
        """What the optimiser keeps of each weight, by name, and the random numbers."""
        names: dict[Tensor, str] = {weight: name for name, weight in self.model.named_parameters()}
        found = {"random": torch.get_rng_state()}
        for weight, entry in self.optimizer.state.items():
            found |= {f"{moment}.{names[weight]}": value for moment, value in entry.items()}
        return found

    def plain(self, progress: Progress) -> dict[str, Any]:
        """What is no tensor."""
        return {
            "progress": vars(progress) | {"snapshots": list(progress.snapshots)},
            "sampler": self.sampler.state_dict(),
        }

    def restore(self, folder: Path, progress: Progress, say: Callable[[str], None]) -> None:
        """Continue from the newest checkpoint that is whole."""
        found = newest(folder, read_checkpoint, say)
        if found is None:
            return  # killed before the first checkpoint: start from the beginning
        path, checkpoint = found
        try:
            self._apply(checkpoint, progress)
        except (KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
            raise UserError(f"{path} is a checkpoint of another training: {error!r}") from None

    def _apply(self, checkpoint: Checkpoint, progress: Progress) -> None:
        self.model.load_state_dict(named(self.model, checkpoint.weights), strict=False)
        torch.set_rng_state(checkpoint.training.pop("random"))
        entries = self._moments(checkpoint.training)
        # PyTorch numbers the weights in the order of the groups.
        weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        state = {place: entries[weight] for place, weight in enumerate(weights) if weight in entries}
        self.optimizer.load_state_dict({"state": state, "param_groups": self.optimizer.state_dict()["param_groups"]})
        self.take_plain(checkpoint.state, progress)

    def take_plain(self, state: dict[str, Any], progress: Progress) -> None:
        """What is no tensor, out of a checkpoint."""
        for name, value in state["progress"].items():
            setattr(progress, name, tuple(value) if isinstance(value, list) else value)
        self.sampler.load_state_dict(state["sampler"])

    def _moments(self, training: Tensors) -> dict[nn.Parameter, Tensors]:
        """The optimiser's state of each weight; a weight without a gradient so far has none."""
        weights, entries = dict(self.model.named_parameters()), dict[nn.Parameter, Tensors]()
        for key, value in training.items():
            moment, _, name = key.partition(".")
            entries.setdefault(weights[name], {})[moment] = value
        if not entries:
            raise ValueError("the optimiser's moments are missing")
        moments = {weight: moments_of(group) for group in self.optimizer.param_groups for weight in group["params"]}
        for name, weight in weights.items():
            entry = entries.get(weight)
            if entry is not None and any(entry[moment].shape != weight.shape for moment in moments[weight]):
                raise ValueError(f"the optimiser's moments of {name} have another shape")
        return entries


def newest(folder: Path, read: Callable[[Path], Found], say: Callable[[str], None]) -> tuple[Path, Found] | None:
    """The newest checkpoint that can be read, and what was read of it; None where there is none at all."""
    complaint = None
    for path in reversed(checkpoints(folder)):
        try:
            return path, read(path)
        except EarlierCheckpoint:
            raise
        except UserError as error:
            complaint = complaint or error
            say(f"{error}; trying the one before")
    if complaint is None:
        return None
    raise UserError(f"no checkpoint in {folder} is whole; the newest: {complaint}")


def thin_after(folder: Path, progress: Progress) -> None:
    """Of older checkpoints keep only what may still be needed."""
    kept = {checkpoint_path(folder, step).name for step in (*progress.snapshots, progress.best_step)}
    thin(folder, whole=2, weights=kept)


def named(model: nn.Module, weights: Tensors) -> Tensors:
    """The weights, if they are exactly this model's."""
    expected = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    found = {name: tuple(weight.shape) for name, weight in weights.items()}
    if expected != found:
        name = next(iter(expected.items() ^ found.items()))[0]
        raise UserError(
            f"the checkpoint is of another model: {name} is {found.get(name)}, the recipe asks {expected.get(name)}"
        )
    return weights

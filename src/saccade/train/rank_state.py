"""The state of a training of several processes into a checkpoint and out of one, whatever their number was and is.

A checkpoint says nothing of how a model was divided: its tensors are those of one process, which reads it too.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn, optim
from torch.distributed.tensor import DTensor

from saccade.data.sampler import Batches
from saccade.errors import UserError
from saccade.train.checkpoint import (
    PARTS,
    TRAINING,
    WEIGHTS,
    Tensors,
    begin_checkpoint,
    finish_checkpoint,
    is_in_parts,
    read_checkpoint,
    saving,
    verified,
)
from saccade.train.parallel import RankGradients
from saccade.train.sharded import read_parts, shapes, write_parts
from saccade.train.shards import like, local_of, mine, whole
from saccade.train.state import Progress, TrainingState, newest, thin_after

RANDOM = "random"
"""The state of PyTorch's random numbers, the same in all processes."""


class RankState(TrainingState):
    """Everything that moves while several processes train a model."""

    def __init__(
        self, plain_model: nn.Module, gradients: RankGradients, optimizer: optim.Optimizer, sampler: Batches
    ) -> None:
        super().__init__(gradients.model, optimizer, sampler)
        self.plain_model, self.gradients, self.ranks = plain_model, gradients, gradients.ranks
        self.weights = dict(gradients.model.named_parameters())

    def collect(self) -> None:
        self.gradients.collect(self.plain_model)

    def save(self, folder: Path, progress: Progress) -> None:
        ranks, step = self.ranks, progress.step
        with saving(folder, step):
            aside = ranks.from_first(begin_checkpoint(folder, step) if ranks.first else None)
            assert aside is not None
            weights = {name: weight.detach() for name, weight in self.weights.items()}
            write_parts(aside / PARTS[WEIGHTS], {name: self._in_order(name, w) for name, w in weights.items()})
            write_parts(aside / PARTS[TRAINING], self._training())
            ranks.wait()
            if ranks.first:
                finish_checkpoint(folder, step, self.plain(progress))
                thin_after(folder, progress)
            ranks.wait()

    def restore(self, folder: Path, progress: Progress, say: Callable[[str], None]) -> None:
        found = self.ranks.from_first(_newest(folder, say) if self.ranks.first else None)
        if isinstance(found, UserError):
            raise found
        if found is None:
            return
        path, state = found
        try:
            if is_in_parts(path):
                self._read_parts(path)
            else:
                self._read_whole(path)
            self.take_plain(state, progress)
        except (KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
            raise UserError(f"{path} is a checkpoint of another training: {error!r}") from None

    def _training(self) -> Tensors:
        """Moments are divided as their weights are."""
        weights, found = self.weights, {RANDOM: torch.get_rng_state()}
        names: dict[Tensor, str] = {local: name for name, local in self.gradients.locals.items()}
        for local, entry in self.optimizer.state.items():
            name = names[local]
            for moment, value in entry.items():
                parted = value.ndim > 0 and value.shape == local.shape
                full = self._in_order(name, like(weights[name], value)) if parted else value
                found[f"{moment}.{name}"] = full
        return found

    def _in_order(self, name: str, weight: Tensor) -> Tensor:
        """The tensor with its rows in the order of one process, divided as before."""
        stacks = self.gradients.stacks
        if name not in stacks or not isinstance(weight, DTensor):
            return weight
        full = whole(name, weight, stacks, self.gradients.config.tensor)
        return like(weight, mine(name, full, weight, {}, 1))

    def _read_parts(self, path: Path) -> None:
        """A checkpoint that several processes wrote, each reading what it needs."""
        weights = self.weights
        _insist_on_names(shapes(path / PARTS[WEIGHTS]), weights)
        into = {name: torch.empty_like(weight.detach()) for name, weight in weights.items()}
        read_parts(path / PARTS[WEIGHTS], into)
        with torch.no_grad():
            for name, weight in weights.items():
                local_of(weight.detach()).copy_(self._dealt(name, into[name]))
        moments = {
            key: torch.empty_like(weights[_name(key)].detach()) if size else torch.empty(size, dtype=kind)
            for key, (size, kind) in shapes(path / PARTS[TRAINING]).items()
            if key != RANDOM
        }
        random = torch.empty_like(torch.get_rng_state())
        read_parts(path / PARTS[TRAINING], moments | {RANDOM: random})
        torch.set_rng_state(random)
        self._take_moments({key: self._dealt(_name(key), value) for key, value in moments.items()})

    def _dealt(self, name: str, read: Tensor) -> Tensor:
        """This process's part of what was read in the order of one process."""
        stacks = self.gradients.stacks
        if name in stacks and read.ndim:
            return mine(name, whole(name, read, {}, 1), self.weights[name], stacks, self.gradients.config.tensor)
        return local_of(read)

    def _read_whole(self, path: Path) -> None:
        """A checkpoint that one process wrote."""
        checkpoint, weights = read_checkpoint(path), self.weights
        _insist_on_names({name: (value.shape, value.dtype) for name, value in checkpoint.weights.items()}, weights)
        stacks, tensor = self.gradients.stacks, self.gradients.config.tensor
        with torch.no_grad():
            for name, weight in weights.items():
                local_of(weight.detach()).copy_(mine(name, checkpoint.weights[name], weight, stacks, tensor))
        torch.set_rng_state(checkpoint.training.pop(RANDOM))
        self._take_moments(
            {
                key: mine(_name(key), value, weights[_name(key)], stacks, tensor) if value.ndim else value
                for key, value in checkpoint.training.items()
            }
        )

    def _take_moments(self, moments: Mapping[str, Tensor]) -> None:
        entries = dict[str, Tensors]()
        for key, value in moments.items():
            moment, _, name = key.partition(".")
            entries.setdefault(name, {})[moment] = value
        if not entries:
            raise ValueError("the optimiser's moments are missing")
        names = {local: name for name, local in self.gradients.locals.items()}
        order = [names[local] for group in self.optimizer.param_groups for local in group["params"]]
        state = {place: entries[name] for place, name in enumerate(order) if name in entries}
        self.optimizer.load_state_dict({"state": state, "param_groups": self.optimizer.state_dict()["param_groups"]})


def _newest(folder: Path, say: Callable[[str], None]) -> tuple[Path, dict[str, object]] | UserError | None:
    """What the first process found, an error included: the others wait for it."""
    try:
        return newest(folder, verified, say)
    except UserError as error:
        return error


def _insist_on_names(found: Mapping[str, tuple[torch.Size, torch.dtype]], weights: Mapping[str, Tensor]) -> None:
    expected = {name: tuple(weight.shape) for name, weight in weights.items()}
    given = {name: tuple(size) for name, (size, _) in found.items()}
    if expected != given:
        name = next(iter(expected.items() ^ given.items()))[0]
        raise UserError(
            f"the checkpoint is of another model: {name} is {given.get(name)}, the recipe asks {expected.get(name)}"
        )


def _name(key: str) -> str:
    """The weight that a tensor of the optimiser is of: exp_avg.decoder.norm.weight."""
    return key.partition(".")[2]

"""A model among several processes, applied from outside in one order: matrices cut (tensor), blocks computed again,
weights shared (FSDP) or copied (DDP). The model's own code knows nothing of it.

A batch is that of one process: each copy of the model takes every n-th example of it, so that the losses are the same.
"""

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, cast

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn, optim

from saccade.config import Record
from saccade.errors import UserError, WrongUse
from saccade.nn.block import Block
from saccade.nn.convolutions import BatchNorm
from saccade.nn.dropout import drawn_from
from saccade.nn.multihead import CrossAttention
from saccade.train.clip import clip
from saccade.train.contract import LossModule, Objective, StepWork
from saccade.train.device import device_of
from saccade.train.muon import Muon
from saccade.train.optim import AdamConfig, build_optimizer
from saccade.train.parts import threads
from saccade.train.ranks import Ranks
from saccade.train.recompute import recompute_blocks
from saccade.train.shards import Stacks, copies, local_of, whole


class ParallelConfig(Record):
    """How a model is divided among the processes that torchrun starts: data x sharded x tensor of them."""

    data: int = Field(0, ge=0, le=2**20)
    """Copies of the model, each with its own part of a batch; gradients are added (DDP). 0: as many as there are."""
    sharded: int = Field(1, ge=1, le=2**20)
    """Processes that share a copy's weights, gradients and optimiser state, each with its part of a batch (FSDP)."""
    tensor: int = Field(1, ge=1, le=2**10)
    """Processes that share every matrix of the blocks, by columns and rows, and the vocabulary."""
    checkpointing: Literal["none", "full"] = "none"
    """full: of a block only its input is kept, and it is computed again in the backward pass."""

    def __str__(self) -> str:
        again = ", blocks computed again" if self.checkpointing == "full" else ""
        return f"{self.data} data x {self.sharded} sharded x {self.tensor} tensor{again}"

    @property
    def is_divided(self) -> bool:
        """Whether it needs several processes."""
        return max(self.data, self.sharded, self.tensor) > 1

    def among(self, processes: int) -> "ParallelConfig":
        """With as many copies as there are processes for; refused with the numbers if they do not come out even."""
        each = self.sharded * self.tensor
        data = self.data or max(1, processes // each)
        if data * each != processes:
            start = f"torchrun --nproc-per-node {data * each} -m saccade train …"
            raise WrongUse(
                f"train.parallel: {data} data x {self.sharded} sharded x {self.tensor} tensor are {data * each:,} "
                f"processes, but {'there is' if processes == 1 else 'there are'} {processes:,}: {start}"
            )
        return self.model_copy(update={"data": data})


class RankGradients:
    """Gradients of a model that several processes train, each on its part of every batch."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        config: ParallelConfig,
        ranks: Ranks,
        *,
        kind: torch.dtype = torch.float32,
    ) -> None:
        """`model` stays as it is in the first process, where it is validated; what trains there is a copy of it, unless
        every process has all weights. `kind`: type of the matrix products."""
        self.config, self.ranks, self.objective, self.kind = config.among(ranks.count), ranks, objective, kind
        _insist_that_it_can_be_divided(model, self.config)
        self.copied = self.config.sharded == self.config.tensor == 1
        self.model = copy.deepcopy(model) if ranks.first and not self.copied else model
        self.device, self.threads = device_of(model), torch.get_num_threads()
        self.told, self.stacks = list[str](), cast(Stacks, {})
        self.module = self._divided()
        self.find_parts()
        # Tensor-parallel processes see the same examples.
        replicas, tensor = self.config.data * self.config.sharded, self.config.tensor
        self.replicas, self.replica, self.counted = replicas, ranks.rank // tensor, ranks.rank % tensor == 0
        self.idle = list[bool]()

    def _divided(self) -> nn.Module:
        from torch.distributed.device_mesh import init_device_mesh

        config, module = self.config, LossModule(self.model, self.objective)
        names = ("data", "sharded", "tensor")
        kind = "cpu" if self.device.type == "meta" else self.device.type
        mesh = init_device_mesh(
            kind, (config.data, config.sharded, config.tensor), mesh_dim_names=names
        )  # neighbours, which are on one machine, share matrices
        if config.tensor > 1:
            from saccade.train.columns import divide_matrices

            self.stacks, self.told = divide_matrices(self.model, mesh["tensor"])
        if config.checkpointing == "full":
            recompute_blocks(self.model)
        if self.copied:
            # A batch may leave weights out, as one without second texts does.
            return nn.parallel.DistributedDataParallel(module, find_unused_parameters=True)
        if config.data * config.sharded > 1:
            _share_weights(module, mesh["sharded"] if config.data == 1 else mesh["data", "sharded"])
        return module

    def find_parts(self) -> None:
        """The parts of the weights that are here, which an optimiser changes; again where they got new memory."""
        self.trained = {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
        self.locals = {name: _local(weight) for name, weight in self.trained.items()}
        self.weights = list(self.locals.values())

    def split(self, indices: np.ndarray) -> list[np.ndarray]:
        """This process's part of a batch. Of a batch with fewer examples than copies, some take the first example,
        which then counts nothing: all must take part in a step."""
        part = indices[self.replica :: self.replicas]
        self.idle.append(not len(part))
        return [part if len(part) else indices[:1]]

    def count(self, batches: Sequence[Any]) -> int:
        """Items in the parts of all processes."""
        mine = sum(self.objective.count(batch) for batch, idle in zip(batches, self.idle, strict=True) if not idle)
        return round(self.ranks.sum({"count": mine if self.counted else 0})["count"])

    def add_gradients(self, batches: Sequence[Any], count: int) -> Iterator[dict[str, float]]:
        """This process's share of the losses; those of all processes are to be added."""
        # The same draws as in one process that cuts its batches into as many parts.
        seeds = torch.randint(2**62, (len(batches) * self.replicas,)).tolist()[self.replica :: self.replicas]
        idle, self.idle = self.idle, []
        for place, (batch, seed) in enumerate(zip(batches, seeds, strict=True)):
            share = 0.0 if idle[place] else 1.0
            with threads(self.threads), drawn_from(seed), self._waiting(place == len(batches) - 1):
                with torch.autocast(self.device.type, self.kind, enabled=self.kind != torch.float32):
                    losses = self.module(batch)
                # DDP and FSDP give the mean over copies.
                (losses["loss"][0] * (share * self.replicas / count)).backward()
            told = share if self.counted else 0.0
            yield {name: total.item() * told / count for name, (total, _) in losses.items()}
        self._take_over()

    def _waiting(self, last: bool) -> AbstractContextManager[None]:
        """DDP adds gradients over processes once, after the last batch of a step."""
        module = self.module
        if last or not isinstance(module, nn.parallel.DistributedDataParallel):
            return nullcontext()
        return cast(AbstractContextManager[None], module.no_sync())

    def _take_over(self) -> None:
        """The optimiser works on this process's parts of weights and gradients, as plain tensors."""
        for name, local in self.locals.items():
            weight = self.trained[name]
            if local is not weight:
                local.grad = None if weight.grad is None else local_of(weight.grad)
                weight.grad = None

    def clip(self, most: float) -> float:
        """As `optim.clip`, of gradients whose parts are in several processes: each part counts once."""
        if self.copied:  # the same gradients everywhere
            return clip(self.weights, most)
        total = 0.0
        for name, local in self.locals.items():
            if local.grad is not None:
                norm = torch.linalg.vector_norm(local.grad).item()
                total += norm * norm / copies(self.trained[name], self.ranks.count)
        norm = math.sqrt(self.ranks.sum({"squares": total})["squares"])
        if norm > most:
            for local in self.weights:
                if local.grad is not None:
                    local.grad.mul_(most / (norm + 1e-6))
        return norm

    def together(self, losses: dict[str, float], work: StepWork) -> tuple[dict[str, float], StepWork]:
        share = 1.0 if self.counted else 0.0
        told = self.ranks.sum(losses | {f"work.{name}": share * value for name, value in vars(work).items()})
        return {name: told[name] for name in losses}, StepWork(round(told["work.tokens"]), told["work.flops"])

    def optimizer(self, config: AdamConfig, muon: float, *, layer_decay: float, kind: torch.dtype) -> optim.AdamW:
        """The optimiser of the weights, which works on the parts of them that are here."""
        from saccade.train.rank_muon import RankMuon

        kind_of_muon = Muon if self.copied else RankMuon
        optimizer = build_optimizer(
            self.model, config, muon, layer_decay=layer_decay, kind=kind, muon_class=kind_of_muon
        )
        locals_of = {weight: self.locals[name] for name, weight in self.trained.items()}
        for group in optimizer.param_groups:
            group["params"] = [locals_of[weight] for weight in group["params"]]
        if isinstance(optimizer, RankMuon):
            parts: dict[Tensor, tuple[str, Tensor]] = {
                self.locals[name]: (name, weight) for name, weight in self.trained.items()
            }
            optimizer.divide(parts, self.stacks, self.config.tensor)
        return optimizer

    def collect(self, model: nn.Module) -> None:
        """The whole weights into `model`, in the first process; all must ask for it."""
        into = dict(model.named_parameters())
        for name, weight in self.model.named_parameters():
            full = whole(name, weight, self.stacks, self.config.tensor)
            if self.ranks.first and into[name] is not weight:
                with torch.no_grad():
                    into[name].copy_(full)


def materialise(model: nn.Module, begin: Callable[[str, Tensor], None]) -> None:
    """Give weights that were built on the meta device and then divided their memory: each process only its part, which
    `begin` fills. Tied weights stay one."""
    places = dict[int, list[tuple[nn.Module, str]]]()
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            places.setdefault(id(weight), []).append((module, name))
    model.to_empty(device="cpu")
    for (first, name), *others in places.values():
        for module, own in others:
            module.register_parameter(own, getattr(first, name))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            begin(name, local_of(weight.detach()))


def _local(weight: Tensor) -> nn.Parameter:
    """The part of a weight that is here, as what an optimiser changes in place."""
    part = local_of(weight.detach())
    return weight if local_of(weight) is weight and isinstance(weight, nn.Parameter) else nn.Parameter(part)


def _share_weights(module: LossModule, mesh: Any) -> None:
    """FSDP: a process has a part of every weight, and the whole of a block while the block is at work."""
    from torch.distributed.fsdp import fully_shard

    # What a linear layer returns may be a view; nothing changes it in place.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")
    for block in module.modules():
        if isinstance(block, Block):
            for look in block.children():
                if isinstance(look, CrossAttention):
                    # Keys and values of a memory are projected before the block itself is called.
                    fully_shard(look.project, mesh=mesh)
            fully_shard(block, mesh=mesh)
    fully_shard(module, mesh=mesh)


def _insist_that_it_can_be_divided(model: nn.Module, config: ParallelConfig) -> None:
    """Refuse, with the numbers, what cannot be held equal to a single process."""
    if any(isinstance(module, BatchNorm) for module in model.modules()):
        raise UserError("batch norm counts means over whole batches: such a model trains in one process only")
    if config.tensor == 1:
        return
    tensor, blocks = config.tensor, [module for module in model.modules() if isinstance(module, Block)]
    if not blocks:
        raise WrongUse(f"train.parallel.tensor is {tensor}, but only stacks of Transformer blocks can be divided so")
    for block in blocks:
        look = block.self_attention
        if look.relative is not None:
            raise WrongUse(f"train.parallel.tensor is {tensor}, but attention by distance is not divided: use sharded")
        inner = cast(nn.Linear, block.feedforward.narrow).in_features
        for what, size in (("heads", look.heads), ("heads of keys and values", look.key_heads), ("inner width", inner)):
            if size % tensor:
                raise WrongUse(f"train.parallel.tensor is {tensor}, which does not divide {size:,} ({what})")

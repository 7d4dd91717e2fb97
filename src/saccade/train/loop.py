"""The training loop. It knows no task: it is handed a model, an objective, batches and a validation."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn, optim

from saccade.config import Record
from saccade.data.sampler import Batches
from saccade.errors import UserError
from saccade.native.allocator import keep_memory
from saccade.train.checkpoint import average, checkpoint_path, read_weights
from saccade.train.contract import Objective, StepWork
from saccade.train.depth import freeze
from saccade.train.device import Device, choose_device, device_of, on_device, to_answer
from saccade.train.gradients import Gradients, Way, choose_gradients
from saccade.train.interrupt import interruptible
from saccade.train.log import Log
from saccade.train.optim import AdamConfig, build_optimizer
from saccade.train.parallel import ParallelConfig, RankGradients
from saccade.train.precision import Precision, kind_of_products
from saccade.train.ranks import here
from saccade.train.schedule import SCHEDULES
from saccade.train.state import Progress, TrainingState, named
from saccade.train.step import Step, take_step


class TrainConfig(Record):
    """How to train, for every task."""

    renamed: ClassVar[Mapping[str, str]] = {"judge": "select_by"}

    steps: int = Field(ge=1)
    """Number of optimiser steps."""
    batch_tokens: int = Field(2048, ge=1)
    """Largest number of target tokens in a batch, padding included."""
    accumulate: int = Field(1, ge=1)
    """Batches per step; their gradients are added."""
    adam: AdamConfig = AdamConfig()
    muon: float = Field(0.0, ge=0, lt=1)
    """Momentum of Muon, which then updates the matrices inside the blocks; Adam updates the rest. 0: Adam only."""
    schedule: Literal["linear", "inverse-square-root", "trapezoid"] = "linear"
    """Decay of the learning rate after warm-up."""
    layer_decay: float = Field(1.0, gt=0, le=1)
    """Learning rate of each layer, as a share of the rate of the layer above."""
    freeze: int = Field(0, ge=0)
    """Number of layers that are not trained: the token vectors, then the lowest blocks."""
    warmup: int = Field(500, ge=0)
    """Steps until the learning rate reaches its peak."""
    clip: float = Field(1.0, gt=0)
    """Largest gradient norm; larger gradients are scaled down."""
    smoothing: float = Field(0.1, ge=0, lt=1)
    """Label smoothing."""
    precision: Precision = "auto"
    """Type of matrix products. auto: bfloat16 where the processor has instructions for it, otherwise float32."""
    device: Device = "auto"
    """Where to compute: cpu, cuda or mps. auto: a GPU, if PyTorch has one."""
    gradients: Way = "auto"
    """How gradients are computed. threads: a batch in parts, a thread each; plain: one pass over the batch. auto:
    threads on a CPU, plain elsewhere and with batch norm."""
    validate_every: int = Field(500, ge=1)
    """Steps between validations; each also writes a checkpoint."""
    select_by: str = "bleu"
    """Validation score that selects the best checkpoint; a leading minus means that smaller is better."""
    patience: int = Field(0, ge=0)
    """Early stopping after this many validations without a better score; 0: never."""
    average: int = Field(5, ge=1)
    """Number of last checkpoints to average; the average becomes the model if it validates best."""
    parallel: ParallelConfig = ParallelConfig()
    """How the model is divided among the processes that torchrun starts."""
    seed: int = Field(1, ge=0, lt=2**40)
    """Random seed. The same seed gives the same model on the same machine with the same number of threads."""


@dataclass(frozen=True)
class Work:
    """What a task hands to the loop."""

    model: nn.Module
    objective: Objective
    sampler: Batches
    batch: Callable[[np.ndarray], Any]
    """Example numbers -> batch."""
    validate: Callable[[nn.Module], dict[str, float]]
    describe: Callable[[np.ndarray], str]
    """Example numbers -> a short description, for error messages."""


@dataclass(frozen=True)
class Outcome:
    """How training ended."""

    finished: bool
    """False after Ctrl-C: `saccade resume` goes on."""
    step: int
    scores: dict[str, float]
    chosen: str
    """Which weights the model now holds."""
    seconds: float
    """Time spent training, over all interruptions."""


def train(work: Work, config: TrainConfig, folder: Path, log: Log, *, resume: bool = False) -> Outcome:
    """Train to the end, or to Ctrl-C; leaves the chosen weights in `work.model`."""
    keep_memory()
    with on_device(work.model, choose_device(config.device)):
        return _train(work, config, folder, log, resume=resume)


def _train(work: Work, config: TrainConfig, folder: Path, log: Log, *, resume: bool) -> Outcome:
    model, objective, ranks = work.model, work.objective, here()
    freeze(model, config.freeze)
    optimizer, gradients = equip(model, objective, config)
    schedule = SCHEDULES[config.schedule]
    run, progress = state_of(work, optimizer, gradients), Progress()
    torch.manual_seed(config.seed + 1)  # dropout; the weights were drawn with config.seed
    if resume:
        run.restore(folder / "checkpoints", progress, log.say)
    log.start(progress.step, config.steps)
    before, began = progress.seconds, time.perf_counter()

    if isinstance(gradients, RankGradients):
        log.say(f"{ranks.count} processes: {gradients.config}")
        for line in gradients.told:
            log.say(line)
        gradients.model.train()
    model.train()
    with log, interruptible() as interrupted:
        while progress.step < config.steps and not _patience_is_over(progress, config):
            step = progress.step + 1
            rate = config.adam.rate * schedule(step, config.warmup, config.steps)
            for group in optimizer.param_groups:
                group["lr"] = rate * group["share"]
            chosen = [part for _ in range(config.accumulate) for part in gradients.split(next(work.sampler))]
            batches = [work.batch(indices) for indices in chosen]
            taken = take_step(gradients, optimizer, batches, config.clip)
            _insist_on_numbers(taken, step, chosen, work, folder)
            progress.step, progress.seconds = step, before + time.perf_counter() - began
            tokens = sum(objective.count(batch) for batch in batches)
            flops = sum(objective.flops(model, batch) for batch in batches)
            losses, done = gradients.together(taken.totals, StepWork(tokens, flops))
            epoch = work.sampler.progress
            log.step(step, losses, rate=rate, norm=taken.norm, tokens=done.tokens, flops=done.flops, epoch=epoch)

            if step % config.validate_every == 0 or step == config.steps:
                run.collect()
                _validate(work, config, progress, log)
                run.save(folder / "checkpoints", progress)
                log.restart_clock()
            if ranks.any(interrupted.is_set()):
                run.save(folder / "checkpoints", progress)
                return Outcome(False, step, {}, "the last step", progress.seconds)
    if not ranks.first:  # the model is stored by the first process
        return Outcome(True, progress.step, {}, "the weights that the first process chooses", progress.seconds)
    return _choose(work, config, progress, folder / "checkpoints", log)


def state_of(work: Work, optimizer: optim.Optimizer, gradients: Gradients) -> TrainingState:
    """Everything that moves, in one process or in several."""
    if isinstance(gradients, RankGradients):
        from saccade.train.rank_state import RankState

        return RankState(work.model, gradients, optimizer, work.sampler)
    return TrainingState(work.model, optimizer, work.sampler)


def equip(model: nn.Module, objective: Objective, config: TrainConfig) -> tuple[optim.AdamW, Gradients]:
    """The optimiser, and how gradients are computed."""
    kind = kind_of_products(config.precision, device_of(model).type)
    gradients = choose_gradients(config.gradients, model, objective, kind, config.parallel)
    settings: dict[str, Any] = {"layer_decay": config.layer_decay, "kind": kind}
    if isinstance(gradients, RankGradients):
        return gradients.optimizer(config.adam, config.muon, **settings), gradients
    return build_optimizer(model, config.adam, config.muon, **settings), gradients


def _validate(work: Work, config: TrainConfig, progress: Progress, log: Log) -> None:
    scores = here().from_first(_scores(work, log) if here().first else {})
    figure = judge(scores, config)
    log.validation(progress.step, scores)
    if figure > progress.best:
        progress.best, progress.best_step, progress.stale = figure, progress.step, 0
    else:
        progress.stale += 1
    progress.snapshots = (*progress.snapshots, progress.step)[-config.average :]


def _choose(work: Work, config: TrainConfig, progress: Progress, folder: Path, log: Log) -> Outcome:
    """The best single checkpoint or the average of the last ones, whichever validates better."""
    model = work.model
    steps = list(progress.snapshots)
    model.load_state_dict(named(model, average([checkpoint_path(folder, step) for step in steps])), strict=False)
    scores = _scores(work, log)
    if len(steps) > 1:
        log.say(f"average of steps {steps[0]}…{steps[-1]}: {_list(scores)}")
    if judge(scores, config) >= progress.best:
        chosen = f"the average of {len(steps)} checkpoints, steps {steps[0]} to {steps[-1]}"
        return Outcome(True, progress.step, scores, chosen, progress.seconds)
    model.load_state_dict(named(model, read_weights(checkpoint_path(folder, progress.best_step))), strict=False)
    chosen = f"the checkpoint of step {progress.best_step}"
    return Outcome(True, progress.step, _scores(work, log), chosen, progress.seconds)


def _scores(work: Work, log: Log) -> dict[str, float]:
    log.say_busy("validating")
    model = to_answer(work.model.eval())
    with torch.inference_mode():
        scores = work.validate(model)
    work.model.train()
    return scores


def judge(scores: dict[str, float], config: TrainConfig) -> float:
    """The figure of train.select_by, so that larger is better."""
    name = config.select_by.removeprefix("-")
    if name not in scores:
        raise UserError(f"train.select_by is {config.select_by!r}, but the validation figures are {', '.join(scores)}")
    if not math.isfinite(scores[name]):
        raise UserError(f"the validation figure {name} is {scores[name]}; the last good checkpoint is kept")
    return -scores[name] if config.select_by.startswith("-") else scores[name]


def _insist_on_numbers(taken: Step, step: int, chosen: list[np.ndarray], work: Work, folder: Path) -> None:
    for indices, losses in zip(chosen, taken.losses, strict=True):
        if not math.isfinite(losses["loss"]):
            raise _not_finite("loss", losses["loss"], step, work.describe(indices), folder)
    if not math.isfinite(taken.norm):
        raise _not_finite("gradient", taken.norm, step, work.describe(np.concatenate(chosen)), folder)


def _not_finite(what: str, value: float, step: int, batch: str, folder: Path) -> UserError:
    return UserError(
        f"step {step}: the {what} is {value} on the batch {batch}; the last good checkpoint in {folder} is kept: "
        "try a lower train.adam.rate or a longer train.warmup"
    )


def _patience_is_over(progress: Progress, config: TrainConfig) -> bool:
    return config.patience > 0 and progress.stale >= config.patience


def _list(scores: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in scores.items())

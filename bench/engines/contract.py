"""What an engine is asked: build its model and say its loss. The training step around it is the same for all."""

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn, optim


@dataclass(frozen=True)
class Size:
    """What is trained, and how, by every engine alike."""

    layers: int = 3
    """In the encoder, and as many in the decoder."""
    width: int = 256
    heads: int = 4
    feedforward: int = 1024
    dropout: float = 0.1
    """After the embedding and each sub-layer; none on attention weights, none inside the feed-forward network."""
    smoothing: float = 0.1
    clip: float = 1.0
    rate: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-9


SIZE = Size()
MarkIds = dict[str, int]
"""A vocabulary's marks as plain numbers: one engine runs where there is no Saccade."""


@dataclass(frozen=True)
class RecurrentSize:
    """One bidirectional GRU layer reads, one GRU layer with additive attention writes."""

    width: int = 512
    """Of the decoder's state, and of both directions of the encoder together."""
    embed: int = 256


RECURRENT = RecurrentSize()


@dataclass(frozen=True)
class Batch:
    source_BS: Tensor
    source_mask_BS: Tensor | None
    """True = real; None when no source is padded."""
    target_BT: Tensor
    labels_BT: Tensor
    real_BT: Tensor
    """True where a label is no padding."""


@dataclass(frozen=True)
class Engine:
    """A model under training."""

    title: str
    """Name and version, for the table."""
    model: nn.Module
    backward: Callable[[Batch], float]
    """The mean loss of the real positions, whose gradients it adds to those of the model."""
    optimizer: optim.Optimizer


def train_step(engine: Engine, batch: Batch) -> float:
    """One step, as Saccade's own loop takes it; returns the loss."""
    loss = engine.backward(batch)
    norm = nn.utils.clip_grad_norm_(engine.model.parameters(), SIZE.clip)
    engine.optimizer.step()
    engine.optimizer.zero_grad()
    if not math.isfinite(norm.item()):
        raise SystemExit(f"{engine.title}: the gradient is {norm.item()}")
    return loss


def run(build: Callable[[int, MarkIds], Engine]) -> None:
    """Read the command line, measure the engine that `build(vocabulary, marks)` makes, print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("batches", type=Path)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    given = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    torch.manual_seed(1)
    stored = torch.load(given.batches, weights_only=True)
    batches = [
        Batch(source, mask, target, labels, labels != stored["marks"]["pad"])
        for source, mask, target, labels in stored["batches"]
    ]
    engine = build(stored["vocabulary"], stored["marks"])
    engine.model.train()

    for batch in batches[: given.warmup]:
        train_step(engine, batch)
    timed = batches[given.warmup : given.warmup + given.steps]
    began = time.perf_counter()
    losses = [train_step(engine, batch) for batch in timed]
    seconds = time.perf_counter() - began
    trained = [weight for weight in engine.model.parameters() if weight.requires_grad]
    result = {
        "engine": engine.title,
        "tokens": sum(int(batch.real_BT.sum()) for batch in timed),
        "seconds": seconds,
        "loss": losses[-1],
        "parameters": sum(weight.numel() for weight in trained),
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(result))


def in_one_piece(loss: Callable[[Batch], Tensor]) -> Callable[[Batch], float]:
    """The backward pass of a plain loop."""

    def backward(batch: Batch) -> float:
        value = loss(batch)
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()

    return backward


def build_plain_optimizer(model: nn.Module) -> optim.AdamW:
    """The fused AdamW that Saccade also uses, for engines that bring none of their own."""
    return optim.AdamW(
        model.parameters(), lr=SIZE.rate, betas=SIZE.betas, eps=SIZE.epsilon, weight_decay=0.0, fused=True
    )

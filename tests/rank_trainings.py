"""Tiny trainings of five families for tests of several processes, one after the other; torchrun starts this file.

    torchrun --nproc-per-node 2 tests/rank_trainings.py '[{"family": "gpt", "out": "o", "parallel": {"sharded": 2}}]'

The first process writes the loss of every step to OUT/losses.json, and the weights that were trained to
OUT/weights.safetensors. Each process appends the examples it has seen to OUT/seen-RANK.jsonl, if asked.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import EncoderModel
from saccade.data.batches import SequencePairs
from saccade.data.picture_batches import PictureBatch
from saccade.data.ragged import Ragged
from saccade.data.rows import MaskedBatch
from saccade.data.sampler import Sampler
from saccade.data.stream import Stream, Windows
from saccade.models.encdec import build_encoder_decoder
from saccade.models.encoders import build_encoder_model
from saccade.models.gpt import build_gpt
from saccade.tokens.marks import Marks
from saccade.train.log import Log
from saccade.train.loop import TrainConfig, Work, equip, state_of, train
from saccade.train.objective import LanguageObjective, MaskedObjective, PictureObjective, SequenceObjective
from saccade.train.ranks import here, joined
from saccade.train.state import Progress

MARKS, VOCABULARY, LENGTH, EXAMPLES = Marks(), 24, 8, 120
BLOCK = {"layers": 2, "width": 16, "heads": 4, "feedforward": 32}


@dataclass(frozen=True)
class Asked:
    """What torchrun's argument says."""

    family: str
    out: str
    steps: int = 50
    parallel: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    """Other sizes than `BLOCK`."""
    train: dict[str, Any] = field(default_factory=dict)
    dropout: float = 0.0
    resume: bool = False
    stop: int = 0
    """Stop after this step, as Ctrl-C does; 0: at the end."""
    seen: bool = False
    """Keep which examples each process has seen."""
    slow: float = 0.0
    """Seconds to wait in every step."""
    threads: int = 1
    echo: bool = False
    """Train nothing: read the newest checkpoint and write it again, to OUT/echo."""


class Losses(Log):
    """Keeps the loss of every step, to the last bit."""

    def __init__(self, folder: Path, stop: int) -> None:
        super().__init__(folder, quiet=True)
        self.losses, self.stop = dict[int, float](), stop

    def step(self, step: int, losses: dict[str, float], **figures: Any) -> None:
        self.losses[step] = losses["loss"]
        super().step(step, losses, **figures)
        if step == self.stop:
            os.kill(os.getpid(), 2)

    def validation(self, step: int, scores: dict[str, float]) -> None:
        self.losses[-step] = scores["loss"]


def train_asked(asked: Asked) -> None:
    """In this process, or in all that torchrun has started."""
    torch.set_num_threads(asked.threads)
    out, ranks = Path(asked.out), here()
    if ranks.first:
        out.mkdir(parents=True, exist_ok=True)
    ranks.wait()
    settings = {"steps": asked.steps, "validate_every": 10, "warmup": 5, "precision": "float32", "average": 1}
    shared = {"select_by": "-loss", "smoothing": 0.1, "adam": {"rate": 3e-3, "epsilon": 1e-6}}
    config = TrainConfig.read(
        settings | shared | {"batch_tokens": 160, "parallel": asked.parallel} | asked.train, where="test"
    )
    work = _recorded(FAMILIES[asked.family](config, asked), asked, out / f"seen-{ranks.rank}.jsonl")
    if asked.echo:
        echo(work, config, out)
        return
    log = Losses(out, asked.stop) if ranks.first else _silent(out, asked.stop)
    outcome = train(work, config, out, log, resume=asked.resume)
    if here().first and isinstance(log, Losses):
        (out / "losses.json").write_text(json.dumps(log.losses))
        if outcome.finished:
            save_file(
                {n: w.detach().contiguous() for n, w in work.model.named_parameters()}, out / "weights.safetensors"
            )


def echo(work: Work, config: TrainConfig, out: Path) -> None:
    """What was read of a checkpoint, as a checkpoint."""
    optimizer, gradients = equip(work.model, work.objective, config)
    state, progress = state_of(work, optimizer, gradients), Progress()
    state.restore(out / "checkpoints", progress, print)
    state.save(out / "echo", progress)


def _silent(out: Path, stop: int) -> Log:
    from saccade.train.log import SilentLog

    class Stopping(SilentLog):
        def step(self, step: int, *_: Any, **__: Any) -> None:
            if step == stop:
                os.kill(os.getpid(), 2)

    return Stopping(out)


def _recorded(work: Work, asked: Asked, file: Path) -> Work:
    """The work, with a note of the examples of every batch."""
    if not asked.seen and not asked.slow:
        return work
    from dataclasses import replace

    def batch(indices: np.ndarray) -> Any:
        with file.open("a") as notes:
            notes.write(json.dumps({"at": work.sampler.state_dict(), "examples": indices.tolist()}) + "\n")
        time.sleep(asked.slow)
        return work.batch(indices)

    return replace(work, batch=batch)


def _work(
    model: nn.Module, objective: Any, sampler: Any, batch: Callable[[np.ndarray], Any], some: Sequence[int]
) -> Work:
    def validate(model: nn.Module) -> dict[str, float]:
        loss, count = objective(model, batch(np.array(some)))["loss"]
        return {"loss": loss.item() / count}

    return Work(model, objective, sampler, batch, validate, lambda indices: f"of {len(indices)}")


def _sequences(config: TrainConfig, asked: Asked, kind: str) -> Work:
    torch.manual_seed(config.seed)
    stack = {"dropout": asked.dropout} | (BLOCK | asked.model if kind == "transformer" else {"width": 16, "kind": kind})
    model = build_encoder_decoder(
        EncoderDecoderConfig.read({"encoder": stack, "decoder": stack, "tie": "all"}, where="test"), VOCABULARY
    )
    random = np.random.default_rng(0)
    sources = [random.integers(len(MARKS.table()), VOCABULARY, size=1 + n % LENGTH).tolist() for n in range(EXAMPLES)]
    pairs = SequencePairs(Ragged.of(sources), Ragged.of([source[::-1] for source in sources]), MARKS)
    sampler = Sampler(*pairs.sizes(), budget=config.batch_tokens, seed=config.seed)
    return _work(model, SequenceObjective(config.smoothing), sampler, pairs.batch, range(9))


def _gpt(config: TrainConfig, asked: Asked) -> Work:
    torch.manual_seed(config.seed)
    settings = BLOCK | {"context": 16, "dropout": asked.dropout} | asked.model
    vocabulary = settings.pop("vocabulary", VOCABULARY)
    model = build_gpt(GptConfig.read(settings, where="test"), vocabulary)
    context = int(settings["context"])
    tokens = np.random.default_rng(0).integers(len(MARKS.table()), vocabulary, size=60 * context).astype(np.uint16)
    stream = Stream(tokens, MARKS)
    sampler = Windows(stream, length=context, rows=max(1, config.batch_tokens // context), seed=config.seed)
    objective = LanguageObjective(config.smoothing)
    return _work(model, objective, sampler, lambda starts: stream.batch(starts, context), range(8))


def _bert(config: TrainConfig, asked: Asked) -> Work:
    torch.manual_seed(config.seed)
    settings = BLOCK | {"context": 16, "dropout": asked.dropout} | asked.model
    encoder = {"encoder": settings, "head": {"next_sentence": False}}
    model = build_encoder_model(EncoderModel.read(encoder, where="test"), VOCABULARY)
    random = np.random.default_rng(0)
    tokens_NT = torch.from_numpy(random.integers(len(MARKS.table()), VOCABULARY - 1, size=(EXAMPLES, LENGTH)))
    chosen_NT = torch.from_numpy(random.random((EXAMPLES, LENGTH)) < 0.3)
    chosen_NT[:, 0] = True

    def batch(numbers: np.ndarray) -> MaskedBatch:
        rows = torch.from_numpy(numbers)
        tokens_BT, chosen_BT = tokens_NT[rows], chosen_NT[rows]
        hidden_BT, unknown_B = tokens_BT.masked_fill(chosen_BT, VOCABULARY - 1), torch.full((len(rows),), -1)
        return MaskedBatch(hidden_BT, None, None, unknown_B, numbers, chosen_BT, tokens_BT[chosen_BT])

    lengths = np.full(EXAMPLES, LENGTH)
    sampler = Sampler(lengths, lengths, budget=config.batch_tokens, seed=config.seed)
    return _work(model, MaskedObjective(), sampler, batch, range(9))


def _vit(config: TrainConfig, asked: Asked) -> Work:
    torch.manual_seed(config.seed)
    front = {"kind": "patches", "height": 8, "width": 8, "channels": 1, "patch": 4, "class_token": True}
    settings = BLOCK | asked.model | {"kind": "transformer", "dropout": asked.dropout, "front": front}
    head = {"outputs": 4, "pooling": "first"}
    model = build_encoder_model(EncoderModel.read({"encoder": settings, "head": head}, where="test"), 0)
    random = np.random.default_rng(0)
    labels_N = random.integers(4, size=EXAMPLES)
    pixels_NHWC = (random.random((EXAMPLES, 8, 8, 1)) * 0.5 + labels_N[:, None, None, None] / 8).astype(np.float32)

    def batch(numbers: np.ndarray) -> PictureBatch:
        return PictureBatch(torch.from_numpy(pixels_NHWC[numbers]), torch.from_numpy(labels_N[numbers]))

    ones = np.ones(EXAMPLES, dtype=int)
    sampler = Sampler(ones, ones, budget=max(1, config.batch_tokens // 8), seed=config.seed)
    return _work(model, PictureObjective(config.smoothing), sampler, batch, range(9))


FAMILIES: dict[str, Callable[[TrainConfig, Asked], Work]] = {
    "transformer": lambda config, asked: _sequences(config, asked, "transformer"),
    "rnn": lambda config, asked: _sequences(config, asked, "recurrent"),
    "gpt": _gpt,
    "bert": _bert,
    "vit": _vit,
}

if __name__ == "__main__":
    with joined():
        for each in json.loads(sys.argv[1]):
            train_asked(Asked(**each))

"""JoeyNMT: its own training program on our subwords; imports nothing of Saccade.

It needs an environment of its own: pip install joeynmt==2.3.0 importlib_metadata "sentencepiece<0.2.1"
"""

import argparse
import json
import logging
import time
from pathlib import Path
from typing import Any, ClassVar

import joeynmt
import torch
from joeynmt import training
from joeynmt.batch import Batch

from bench.engines.contract import RECURRENT, SIZE


class Clocked(training.TrainManager):  # type: ignore[misc]  # its base is not typed
    """Its training manager, with a clock that starts after the warm-up and stops before anything is saved."""

    made: ClassVar[list["Clocked"]] = []
    """The program makes the manager itself and does not hand it out."""
    warmup = 0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.made.append(self)
        self.began = self.seconds = self.loss = 0.0
        self.positions = self.tokens = 0

    def _train_step(self, batch: Batch) -> tuple[float, int]:
        if self.stats.steps == self.warmup:
            self.began = time.perf_counter()
        step: tuple[float, int] = super()._train_step(batch)
        self.loss = step[0]
        if self.stats.steps >= self.warmup:
            self.tokens += int(batch.ntokens)
            self.positions += int(batch.trg.numel())
        return step

    def _save_checkpoint(self, new_best: bool, score: float) -> None:
        self.seconds = time.perf_counter() - self.began


def transformer() -> dict[str, Any]:
    """Our sizes in its words."""
    stack = {
        "type": "transformer",
        "num_layers": SIZE.layers,
        "num_heads": SIZE.heads,
        "embeddings": {"embedding_dim": SIZE.width, "scale": True, "dropout": SIZE.dropout},
        "hidden_size": SIZE.width,
        "ff_size": SIZE.feedforward,
        "dropout": SIZE.dropout,
        "layer_norm": "pre",
        "activation": "relu",
    }
    return {"encoder": stack, "decoder": stack}


def recurrent() -> dict[str, Any]:
    """One GRU layer a side, additive attention, in its words; it feeds its output into the next step."""
    layer = {
        "type": "recurrent",
        "rnn_type": "gru",
        "num_layers": 1,
        "embeddings": {"embedding_dim": RECURRENT.embed, "scale": False, "dropout": SIZE.dropout},
        "dropout": SIZE.dropout,
    }
    encoder = {**layer, "bidirectional": True, "hidden_size": RECURRENT.width // 2}
    decoder = {**layer, "hidden_size": RECURRENT.width, "attention": "bahdanau", "init_hidden": "bridge"}
    return {"encoder": encoder, "decoder": decoder}


FAMILIES = {"transformer": transformer, "recurrent": recurrent}


def configure(folder: Path, steps: int, budget: int, family: str) -> dict[str, Any]:
    side = {"max_length": 1000, "level": "word", "voc_file": str(folder / "words.txt")}
    return {
        "name": "bench",
        "joeynmt_version": joeynmt.__version__,
        "model_dir": str(folder / "joeynmt"),
        "use_cuda": False,
        "random_seed": 1,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "train"),
            "sample_dev_subset": 2,
            "dataset_type": "plain",
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
        },
        "training": {
            "optimizer": "adamw",
            "adam_betas": list(SIZE.betas),
            "learning_rate": SIZE.rate,
            # It accepts no constant rate: a schedule must be named.
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 1000,
            "normalization": "tokens",
            "label_smoothing": SIZE.smoothing,
            "clip_grad_norm": SIZE.clip,
            "batch_size": budget,
            "batch_type": "token",
            "epochs": 1,
            "updates": steps,
            "logging_freq": 10_000,
            "validation_freq": 10_000,
        },
        "testing": {},
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": family == "transformer",  # its recurrent decoder reads out at the state's width
            **FAMILIES[family](),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--budget", type=int, default=4096)
    parser.add_argument("--family", choices=FAMILIES, default="transformer")
    given = parser.parse_args()
    (given.folder / "joeynmt").mkdir(exist_ok=True)

    logging.disable()
    Clocked.warmup = given.warmup
    training.TrainManager = Clocked
    training.train(
        0, 1, configure(given.folder, given.warmup + given.steps, given.budget, given.family), skip_test=True
    )
    clocked = Clocked.made[0]
    trained = [weight for weight in clocked.model.parameters() if weight.requires_grad]
    result = {
        "engine": f"JoeyNMT {joeynmt.__version__}, its own loop",
        "tokens": clocked.tokens,
        "seconds": clocked.seconds,
        "fill": clocked.tokens / clocked.positions,
        "loss": clocked.loss,
        "parameters": sum(weight.numel() for weight in trained),
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

"""The bottleneck: how long a sequence can be copied through one vector, and how long with attention.

Each model learns to write a random sequence backwards. It starts with short ones; as soon as it writes almost every
symbol right, they grow. The result is the length it reaches in the given time.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.data.batches import SequenceBatch
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.native.allocator import keep_memory
from saccade.study.plots import Panel, draw_panels, markdown_table
from saccade.tokens.marks import Marks
from saccade.train.objective import SequenceObjective
from saccade.train.optim import AdamConfig, build_optimizer
from saccade.train.parts import BatchParts
from saccade.train.step import take_step

Say = Callable[[str], None]
SYMBOLS, FIRST, LONGEST = 10, 4, 1000
MARKS = Marks()
"""Symbols have no vocabulary; they begin behind these."""
MASTERED = 0.98
"""Share of symbols right, teacher forced, at which sequences grow by a fifth."""
TOKENS = 2000
"""Target tokens in a batch."""

_GRU = {"kind": "recurrent", "cell": "gru", "width": 128, "embed": 32, "dropout": 0.0}
MODELS = {
    "fixed vector": {"encoder": _GRU, "decoder": _GRU | {"attention": "none", "context": "update"}},
    "attention": {"encoder": _GRU, "decoder": _GRU | {"attention": "general", "context": "output"}},
}


@dataclass(frozen=True)
class Grown:
    """The progress of one model."""

    parameters: int
    steps: int
    growth: list[tuple[float, float]]
    """Seconds, and the length it was then ready for."""
    accuracy: list[tuple[float, float]]
    """Length, and the share of symbols right at the end, teacher forced."""

    @property
    def rising(self) -> list[tuple[float, float]]:
        """The growth as a logarithmic axis can show it."""
        return [(seconds, max(1.0, length)) for seconds, length in self.growth]

    @property
    def longest(self) -> int:
        """The last length it mastered."""
        return int(self.growth[-1][1])


def write_bottleneck(folder: Path, seconds: float, say: Say) -> Path:
    """bottleneck.md with its picture and its numbers."""
    keep_memory()
    found = {}
    for name, table in MODELS.items():
        found[name] = grow(EncoderDecoderConfig.read(table, where=name), seconds, partial(_say_of, say, name))
    draw_panels(
        [
            Panel(
                "accuracy at the end",
                "length",
                {n: g.accuracy for n, g in found.items()},
                "symbols right",
                (True, False),
            ),
            Panel(
                "growing", "training seconds", {n: g.rising for n, g in found.items()}, "length mastered", (False, True)
            ),
        ],
        folder / "bottleneck.png",
    )
    rows = [[n, f"{g.parameters:,}", f"{g.steps:,}", f"{g.longest:,}"] for n, g in found.items()]
    accuracy = [[n, *(f"{share:.2f}" for _, share in g.accuracy)] for n, g in found.items()]
    lengths = [f"{length:g}" for length, _ in found["attention"].accuracy]
    text = [
        "# The bottleneck\n",
        f"A GRU of {_GRU['width']} writes sequences of {SYMBOLS} symbols backwards, {seconds:g} s of training each; a "
        f"sequence grows by a fifth whenever {MASTERED:.0%} of the symbols are right.\n",
        markdown_table(["what the decoder sees", "parameters", "steps", "longest mastered"], rows),
        "Share of symbols right at the end, by length, the symbols before given:\n",
        markdown_table(["what the decoder sees", *lengths], accuracy),
        "![accuracy by length, and length by time](bottleneck.png)\n",
    ]
    (folder / "bottleneck.md").write_text("\n".join(text), encoding="utf-8")
    numbers = {name: asdict(grown) for name, grown in found.items()}
    (folder / "bottleneck.json").write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    return folder / "bottleneck.md"


def grow(config: EncoderDecoderConfig, seconds: float, say: Say, *, seed: int = 0) -> Grown:
    torch.manual_seed(seed)
    model = build_encoder_decoder(config, FIRST + SYMBOLS)
    parts = BatchParts(model, SequenceObjective())
    optimizer = build_optimizer(model, AdamConfig(rate=2e-3))
    began = spoke = time.perf_counter()
    length, mastered, steps, share = 4, 0, 0, 0.0
    growth = [(0.0, 0.0)]
    while (now := time.perf_counter() - began) < seconds and mastered < LONGEST:
        # Some shorter ones are repeated, so that they are not forgotten.
        now_length = length if steps % 4 else int(torch.randint(1, length + 1, ()))
        batch = backwards(now_length)
        halves = [batch.rows(rows) for rows in parts.split(np.arange(len(batch.labels_BT)))]
        taken = take_step(parts, optimizer, halves, 1.0)
        steps += 1
        # A loss this low means that nearly all is right; only then is it worth counting.
        if now_length == length and taken.totals["loss"] < 4 * (1 - MASTERED):
            share = accuracy(model, length)
            if share >= MASTERED:
                mastered = length
                growth.append((now, float(mastered)))
                length = min(LONGEST, math.ceil(1.2 * length))
        if time.perf_counter() - spoke > 20:
            spoke = time.perf_counter()
            say(f"{now:.0f} s of {seconds:.0f}, {steps:,} steps, {mastered} mastered")
    growth.append((time.perf_counter() - began, float(mastered)))
    lengths = sorted({5, 10, 20, 40, 80, 160, 320, 640, LONGEST})
    ends = [(float(n), accuracy(model, n)) for n in lengths]
    say(f"{mastered} mastered in {steps:,} steps")
    return Grown(sum(w.numel() for w in model.parameters()), steps, growth, ends)


def _say_of(say: Say, name: str, text: str) -> None:
    say(f"{name}: {text}")


def backwards(length: int, tokens: int = TOKENS) -> SequenceBatch:
    """Random sequences of one length, and each from its end."""
    source_BS = torch.randint(FIRST, FIRST + SYMBOLS, (max(2, tokens // length), length))
    end_B1 = torch.full((len(source_BS), 1), MARKS.end)
    target_BT = source_BS.flip(1)
    begun_BT = torch.cat([torch.full_like(end_B1, MARKS.start), target_BT], dim=1)
    labels_BT = torch.cat([target_BT, end_B1], dim=1)
    source_BS = torch.cat([source_BS, end_B1], dim=1)
    return SequenceBatch(source_BS, None, begun_BT, labels_BT, None, indices=torch.arange(len(source_BS)).numpy())


def accuracy(model: EncoderDecoder, length: int) -> float:
    """The share of symbols right on fresh sequences, the symbols before given."""
    batch = backwards(length, 4 * TOKENS if length < 100 else TOKENS)
    model.eval()
    with torch.inference_mode():
        logits_BTV: Tensor = model(batch.source, None, batch.target_BT)
    model.train()
    return float((logits_BTV.argmax(-1) == batch.labels_BT).float().mean())

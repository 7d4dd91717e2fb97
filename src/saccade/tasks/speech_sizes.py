"""A recipe for the user's own recordings: sizes by how many there are."""

from pathlib import Path

import numpy as np

from saccade.config import Table
from saccade.data.speech_sets import HEADERS
from saccade.data.text import read_lines

BATCH = 1_600
"""Positions of 40 milliseconds in a batch."""
POSITIONS = 90
"""Of a recording, about."""


def spoken_recipe(path: Path, name: str) -> tuple[Table, list[str]]:
    """A Conformer that hears, a decoder that looks, CTC beside it; and what was chosen."""
    rows = sum(1 for line in read_lines(path) if line.strip() and line.split("\t")[0].casefold() not in HEADERS)
    width, layers = (96, 4) if rows < 400 else (144, 6) if rows < 10_000 else (192, 8)
    steps = int(np.clip(rows * 3 * 60 * POSITIONS / BATCH, 300, 30_000))
    stack = {"kind": "transformer", "width": width, "heads": 4, "feedforward": 4 * width, "dropout": 0.15}
    stages = [{"width": 32, "stride": [2, 2]}, {"width": 32, "stride": [2, 2]}]
    hearing = {"front": {"kind": "sound", "stages": stages}, "positions": {"kind": "rotary"}, "activation": "silu"}
    train = {
        "steps": steps, "batch_tokens": BATCH, "warmup": max(1, steps // 10), "validate_every": max(1, steps // 20),
        "patience": 8, "select_by": "-wer", "smoothing": 0.1, "average": 5, "adam": {"rate": 1.5e-3, "decay": 0.01},
    }  # fmt: skip
    table: Table = {
        "task": "speech",
        "name": name,
        "data": {"kind": "table", "file": str(path)},
        "model": {
            "encoder": stack | hearing | {"layers": layers, "convolution": 15},
            "decoder": stack | {"layers": 1},
        },
        "train": train,
    }
    return table, [f"{rows:,} rows; {layers} blocks of width {width}, at most {steps:,} steps, batches of {BATCH:,}"]

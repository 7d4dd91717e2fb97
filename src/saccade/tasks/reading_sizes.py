"""A recipe for the user's own pictures of words: sizes by how many there are."""

from pathlib import Path

import numpy as np

from saccade.config import Table
from saccade.data.text import read_lines
from saccade.data.word_drawing import HEIGHT, WIDTH


def table_recipe(path: Path, name: str) -> tuple[Table, list[str]]:
    """A small ResNet to a grid of 8 x 32, self-attention on it, a decoder that attends; and what was chosen."""
    rows = sum(1 for line in read_lines(path) if line.strip())
    width = 96 if rows < 20_000 else 192
    steps = int(np.clip(rows * 30 // 64, 200, 20_000))
    stack = {"kind": "transformer", "layers": 2, "width": width, "heads": 4, "feedforward": 2 * width, "dropout": 0.1}
    stages = [
        {"width": width // 4},
        {"width": width // 2, "stride": [2, 2], "residual": 1},
        {"width": width, "stride": [2, 2], "residual": 1},
    ]
    front = {"kind": "convolutions", "height": HEIGHT, "width": WIDTH, "channels": 1, "stages": stages}
    train = {
        "steps": steps, "batch_tokens": 512, "warmup": max(1, steps // 10), "validate_every": max(1, steps // 15),
        "patience": 6, "select_by": "accuracy", "smoothing": 0.05, "average": 3, "adam": {"rate": 1.5e-3},
    }  # fmt: skip
    table: Table = {
        "task": "reading",
        "name": name,
        "data": {"kind": "table", "file": str(path)},
        "model": {"encoder": stack | {"front": front}, "decoder": stack | {"positions": {"kind": "rotary"}}},
        "layer": 2,
        "train": train,
    }
    return table, [f"{rows:,} rows; width {width}, at most {steps:,} steps"]

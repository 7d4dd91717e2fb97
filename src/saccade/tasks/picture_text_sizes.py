"""Recipes for the user's own pictures with captions, or with questions and answers: sizes by how many there are."""

from pathlib import Path

import numpy as np

from saccade.config import Table
from saccade.data.picture_text_sets import read_table

SIDE = 96
"""Pixels that pictures are brought to."""
BATCH = 32


def captions_recipe(path: Path, name: str) -> tuple[Table, list[str]]:
    """A small ResNet, self-attention on its grid, and a decoder that looks; and what was chosen."""
    table, told, width = _shared(path, name, asks=False)
    table["task"] = "captioning"
    table["model"] = {"encoder": _stack(width, 1) | {"front": _front(width)}, "decoder": _writer(width, 2)}
    return table, told


def questions_recipe(path: Path, name: str) -> tuple[Table, list[str]]:
    """The same with a second encoder, which reads the question."""
    table, told, width = _shared(path, name, asks=True)
    table["task"] = "questions"
    encoders = {"question": _writer(width, 1), "picture": _stack(width, 1) | {"front": _front(width)}}
    table["model"] = {"encoders": encoders, "decoder": _writer(width, 2)}
    table["search"] = {"beam": 3, "alpha": 0.0, "extra": 12}
    return table, told


def _shared(path: Path, name: str, *, asks: bool) -> tuple[Table, list[str], int]:
    rows = len(read_table(path, [], asks=asks))
    width = 96 if rows < 20_000 else 192
    steps = int(np.clip(rows * 30 // BATCH, 200, 30_000))
    train = {
        "steps": steps, "batch_tokens": BATCH, "warmup": max(1, steps // 10), "validate_every": max(1, steps // 15),
        "patience": 6, "select_by": "accuracy" if asks else "bleu", "smoothing": 0.1, "average": 3,
        "adam": {"rate": 1e-3, "decay": 0.02},
    }  # fmt: skip
    table: Table = {
        "name": name,
        "data": {"kind": "table", "file": str(path)},
        "augment": {"shift": 4, "light": 0.1},
        "layer": 2,
        "train": train,
    }
    return table, [f"{rows:,} rows; pictures of {SIDE} x {SIDE} pixels, width {width}, at most {steps:,} steps"], width


def _stack(width: int, layers: int) -> Table:
    return {
        "kind": "transformer", "layers": layers, "width": width, "heads": 4, "feedforward": 2 * width, "dropout": 0.1,
    }  # fmt: skip


def _writer(width: int, layers: int) -> Table:
    return _stack(width, layers) | {"positions": {"kind": "rotary"}}


def _front(width: int) -> Table:
    stages = [
        {"width": width // 4, "stride": [2, 2]},
        {"width": width // 2, "stride": [2, 2], "residual": 1},
        {"width": width, "stride": [2, 2], "residual": 1},
    ]
    return {"kind": "convolutions", "height": SIDE, "width": SIDE, "channels": 3, "stages": stages}

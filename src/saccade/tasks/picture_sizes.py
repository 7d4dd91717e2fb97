"""A recipe for a folder of the user's own pictures: sizes by how many there are and how many pixels they have."""

from pathlib import Path

import numpy as np

from saccade.config import Table
from saccade.data.picture_sets import class_folders
from saccade.errors import UserError
from saccade.sources.opener import open_picture
from saccade.sources.picture import PictureSource

LOOKED_AT = 40
"""Pictures whose size and colours are looked at."""


def folder_recipe(folder: Path, name: str) -> tuple[Table, list[str]]:
    """A small ResNet with the attention module, which learns from few pictures; and what was chosen."""
    classes = class_folders(folder, PictureSource.suffixes)
    files = [file for some in classes.values() for file in some]
    side, channels = _size_of(files)
    count, batch = len(files), 32 if len(files) < 2_000 else 128
    epochs = int(np.clip(400_000 // max(count, 1), 12, 60))
    steps = max(100, count * 8 // 10 * epochs // batch)
    widths = (32, 64, 128, 128)[: 3 if side <= 32 else 4]
    stages = [{"width": widths[0]}, *({"width": width, "pool": [2, 2], "residual": 1} for width in widths[1:])]
    front = {"kind": "convolutions", "height": side, "width": side, "channels": channels, "stages": stages}
    train = {
        "steps": steps,
        "batch_tokens": batch,
        "warmup": max(1, steps // 10),
        "validate_every": max(1, steps // 15),
        "patience": 6,
        "select_by": "accuracy",
        "smoothing": 0.1,
        "average": 3,
        "adam": {"rate": 2e-3, "decay": 0.05},
    }
    table: Table = {
        "task": "pictures",
        "name": name,
        "data": {"kind": "folders", "folder": str(folder)},
        "augment": {"shift": max(1, side // 16), "mirror": True, "light": 0.2, "degrees": 8.0, "zoom": 0.1},
        "model": {
            "kind": "grid",
            "front": front | {"attention": [len(stages)], "positions": False},
            "dropout": 0.1,
        },
        "train": train,
    }
    kind = "grey" if channels == 1 else "colour"
    told = [
        f"{count:,} picture files in {len(classes)} classes: {', '.join(classes)}"[:400],
        f"read as {side} x {side} pixels in {kind}; at most {steps:,} steps",
        "training pictures are mirrored; where left and right matter: --set augment.mirror=false",
    ]
    return table, told


def _size_of(files: list[Path]) -> tuple[int, int]:
    """The side that pictures are brought to, and 1 for grey or 3 for colours, by a sample of them."""
    chosen = np.random.default_rng(0).permutation(len(files))[:LOOKED_AT]
    sides, coloured, fault = [], False, None
    for place in chosen:
        try:
            image = open_picture(files[place])[1]
        except UserError as error:
            fault = error
            continue
        sides.append(max(image.size))
        image.thumbnail((32, 32))
        pixels = np.asarray(image.convert("RGB"), dtype=np.int64)
        coloured = coloured or int(np.ptp(pixels, axis=2).max()) > 8
    if not sides:
        raise UserError(f"none of {len(chosen)} pictures can be read; the last: {fault}")
    middle = float(np.median(sides))
    return 32 if middle <= 40 else 48 if middle <= 64 else 64, 3 if coloured else 1

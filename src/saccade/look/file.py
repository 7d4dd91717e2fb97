"""A record of looks as one file: the weights as safetensors, what they mean as JSON in its header."""

import json
import stat
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field
from safetensors import SafetensorError
from safetensors.numpy import save

from saccade.axes import Axis
from saccade.config import Record
from saccade.errors import UserError, WrongUse
from saccade.folder import replace_file
from saccade.look.record import LayerLooks, Looks
from saccade.sites import Kind
from saccade.tensors import StoredTensors, read_tensors

KEY = "looks"
LARGEST_FILE = 512 * 2**20
LARGEST_HEADER = 32 * 2**20
MOST_LAYERS = 100_000


class StoredLayer(Record):
    """A layer without its weights, which stand under its number."""

    name: str = Field(max_length=500)
    kind: Kind
    memory: str = Field(max_length=500)
    rows: int = Field(ge=0)
    """Which of the axes."""
    columns: int = Field(ge=0)
    part: int = Field(0, ge=0, lt=MOST_LAYERS)
    title: str = Field("", max_length=500)


class StoredLooks(Record):
    """What the header of the file says."""

    format: Literal[1] = 1
    axes: tuple[Axis, ...]
    layers: tuple[StoredLayer, ...] = Field(max_length=MOST_LAYERS)
    layer: int | None = Field(None, ge=1)


def save_looks(looks: Looks, path: Path) -> Path:
    axes = list(dict.fromkeys(axis for one in looks.layers for axis in (one.rows, one.columns)))
    layers = tuple(
        StoredLayer(
            name=one.name,
            kind=one.kind,
            memory=one.memory,
            rows=axes.index(one.rows),
            columns=axes.index(one.columns),
            part=one.part,
            title=one.title,
        )
        for one in looks.layers
    )
    stored = StoredLooks(axes=tuple(axes), layers=layers, layer=looks.layer)
    weights = {
        str(number): np.ascontiguousarray(one.weights_NTS, dtype=np.float32) for number, one in enumerate(looks.layers)
    }
    replace_file(path, save(weights, metadata={KEY: json.dumps(stored.table(), ensure_ascii=False)}))
    return path


def load_looks(path: Path) -> Looks:
    """The record in a file; whatever is wrong with it is said in one line."""
    content = _read(path)
    try:
        stored = StoredLooks.read(_header(content), where=str(path))
        tensors = read_tensors(content)
    except WrongUse as error:
        raise UserError(str(error)) from None
    except (ValueError, SafetensorError, RecursionError) as error:
        raise UserError(f"{path}: not a file of looks ({' '.join(str(error).split())[:120]})") from None
    if tensors.keys() != {str(number) for number in range(len(stored.layers))}:
        raise UserError(f"{path}: {len(stored.layers)} layers, but {len(tensors)} tables of weights")
    return Looks(
        tuple(_layer(path, tensors, stored, number) for number in range(len(stored.layers))), layer=stored.layer
    )


def _layer(path: Path, tensors: StoredTensors, stored: StoredLooks, number: int) -> LayerLooks:
    one, weights_NTS = stored.layers[number], tensors[str(number)]
    if max(one.rows, one.columns) >= len(stored.axes):
        raise UserError(f"{path}: layer {one.name!r} has axis {max(one.rows, one.columns)} of {len(stored.axes)}")
    rows, columns = stored.axes[one.rows], stored.axes[one.columns]
    if weights_NTS.ndim != 3 or weights_NTS.shape[1:] != (len(rows), len(columns)) or not len(weights_NTS):
        shape = " × ".join(map(str, weights_NTS.shape))
        raise UserError(
            f"{path}: layer {one.name!r} has weights of {shape}, but {len(rows)} rows and {len(columns)} columns"
        )
    if not np.isfinite(weights_NTS).all() or weights_NTS.min(initial=0) < 0:
        raise UserError(f"{path}: layer {one.name!r} has weights that are no shares")
    return LayerLooks(one.name, one.kind, one.memory, weights_NTS, rows, columns, one.part, one.title)


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UserError(f"{path}: not a file")
        with path.open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    if len(content) > LARGEST_FILE:
        raise UserError(f"{path}: larger than {LARGEST_FILE // 2**20} MB, the most that is read")
    return content


def _header(content: bytes) -> dict[str, object]:
    """The JSON that stands in the metadata of a safetensors file; a ValueError says what is wrong."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(LARGEST_HEADER, len(content) - 8):
        raise ValueError("no header")
    header = json.loads(content[8 : 8 + length])
    said = header.get("__metadata__", {}).get(KEY) if isinstance(header, dict) else None
    if not isinstance(said, str):
        raise ValueError("it does not say what its numbers mean")
    found = json.loads(said)
    if not isinstance(found, dict):
        raise ValueError("it does not say what its numbers mean")
    return found

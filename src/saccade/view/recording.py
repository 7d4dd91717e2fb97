"""A run as one safetensors file: looks in half precision, what they mean as JSON in its header. Format 1.

`w…` are weights [N + 1, T, S] in float16, the last plane the mean of all heads; `t…` are thumbnails of the same planes
in uint8, 255 times the square root of the weight, shrunk by the maximum, or lone peaks would vanish; `i…` and `v…` are
the largest weights of each row where all of them would be too much. `mel…` are spectrograms [T, F] as a model heard
them, `sound` and `picture` the files that were read.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from safetensors.numpy import save

from saccade.axes import BEGIN_LABEL, END_LABEL, Actions, Axis, Grid, Pieces, Time
from saccade.look.record import LayerLooks, Looks
from saccade.look.rollout import roll_out
from saccade.view.roles import roles_of

FORMAT = 1
KEY = "record"
THUMB = 64
"""Rows and columns of a thumbnail, at most."""
TOP = 16
"""Of a row, where not all weights are kept."""
Values = dict[str, Any]
Arrays = dict[str, np.ndarray]


def planes(weights_NTS: np.ndarray) -> np.ndarray:
    """All heads and, last, their mean: [N + 1, T, S] in float16."""
    half = np.empty((len(weights_NTS) + 1, *weights_NTS.shape[1:]), dtype=np.float16)
    half[:-1], half[-1] = weights_NTS, weights_NTS.mean(axis=0)
    return half


def thumbnails(planes_PTS: np.ndarray) -> np.ndarray:
    """[P, at most 64, at most 64] in uint8, of every field the largest weight."""
    for axis in (1, 2):
        length = planes_PTS.shape[axis]
        if length > THUMB:
            starts = np.arange(THUMB) * length // THUMB
            planes_PTS = np.maximum.reduceat(planes_PTS, starts, axis=axis)
    shades: np.ndarray = np.rint(255 * np.sqrt(np.clip(planes_PTS.astype(np.float32), 0, 1))).astype(np.uint8)
    return shades


def spectrogram(frames_TF: np.ndarray) -> np.ndarray:
    """What was heard in uint8, from two and a half standard deviations below the mean to as many above."""
    shades: np.ndarray = np.clip(np.rint((np.asarray(frames_TF, dtype=np.float32) + 2.5) * 51), 0, 255).astype(np.uint8)
    return shades


def entropies(weights_PTS: np.ndarray) -> np.ndarray:
    """Of every plane the mean over its rows, 0 where each looks at one thing, 1 where each looks everywhere alike."""
    found = []
    for plane_TS in weights_PTS:
        chances = plane_TS.astype(np.float32)
        logs = np.log(chances, out=np.zeros_like(chances), where=chances > 0)
        seen_T = np.maximum((chances > 0).sum(axis=1), 2)
        found.append(float((-(chances * logs).sum(axis=1) / np.log(seen_T)).mean()) if len(chances) else 0.0)
    return np.array(found, dtype=np.float32)


def axis_values(axis: Axis) -> Values:
    """An axis as the page knows it."""
    match axis:
        case Pieces():
            alone = set(axis.alone)
            words = [number for number, group in enumerate(axis.groups()) for _ in group]
            pieces = [
                {"text": label, "word": word}
                | ({"mark": True} if place in alone and label in (BEGIN_LABEL, END_LABEL) else {})
                for place, (label, word) in enumerate(zip(axis.labels, words, strict=True))
            ]
            return {"kind": "text", "pieces": pieces}
        case Grid():
            return {"kind": "grid", "shape": [axis.height, axis.width]}
        case Time():
            return {"kind": "time", "count": axis.count, "seconds": axis.seconds}
        case Actions():
            return {"kind": "action", "pieces": [{"text": label, "word": n} for n, label in enumerate(axis.labels)]}
        case _:
            pieces = [{"text": axis.name([place]), "word": place} for place in range(len(axis))]
            return {"kind": "positions", "pieces": pieces}


def with_roll_out(looks: Looks) -> list[LayerLooks]:
    """And, of each encoder with several layers, where its output comes from through all of them."""
    found = list(looks.layers)
    keys = dict.fromkeys((one.memory, one.part) for one in looks.layers if one.kind == "encoder")
    for memory, part in keys:
        layers = [one for one in looks.layers if (one.kind, one.memory, one.part) == ("encoder", memory, part)]
        if len(layers) > 1 and len({one.weights_NTS.shape[1:] for one in layers}) == 1:
            first = layers[0]
            weights = roll_out([one.weights_NTS for one in layers])[None]
            title = f"rolled out over {len(layers)} layers"
            found.append(LayerLooks("rollout", "encoder", memory, weights, first.rows, first.columns, part, title))
    return found


def top_of(planes_PTS: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of the largest weights of every row, and the weights: [P, T, at most 16]."""
    count = min(TOP, planes_PTS.shape[2])
    places = np.argpartition(-planes_PTS, count - 1, axis=2)[:, :, :count]
    return places.astype(np.uint16), np.take_along_axis(planes_PTS, places, axis=2)


def looks_values(layers: Sequence[LayerLooks], kept: Sequence[np.ndarray], room: int) -> tuple[Values, Arrays]:
    """Axes and looks, with the arrays that fit: all weights as long as they need no more bytes than `room`."""
    axes = list(dict.fromkeys(axis for one in layers for axis in (one.rows, one.columns)))
    arrays: Arrays = {}
    found = []
    counts: dict[tuple[str, str, int], int] = {}
    full = sum(one.nbytes for one in kept) <= room
    for number, (one, planes_PTS) in enumerate(zip(layers, kept, strict=True)):
        key = (one.kind, one.memory, one.part)
        counts[key] = counts.get(key, 0) + (one.name != "rollout")
        arrays[f"t{number}"] = thumbnails(planes_PTS)
        arrays[f"e{number}"] = entropies(planes_PTS)
        if full:
            arrays[f"w{number}"] = planes_PTS
        found.append(
            {
                "site": one.name,
                "kind": one.kind,
                "memory": one.memory,
                "part": one.part,
                "title": one.title,
                "layer": counts[key],
                "heads": len(one.weights_NTS),
                "rows": axes.index(one.rows),
                "columns": axes.index(one.columns),
                "roles": roles_of(one),
                "stored": "full" if full else "thumb",
            }
        )
    listed = [{"id": number} | axis_values(axis) for number, axis in enumerate(axes)]
    return {"axes": listed, "looks": found}, arrays


def to_bytes(record: Values, arrays: Mapping[str, np.ndarray]) -> bytes:
    """The file."""
    ready = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    found: bytes = save(ready, metadata={KEY: json.dumps({"format": FORMAT} | record, ensure_ascii=False)})
    return found

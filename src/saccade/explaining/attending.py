"""Attention as an explanation: how much what was written looked at each position of the input, by the weights of one
layer or rolled out through all of them."""

from collections.abc import Sequence

import numpy as np

from saccade.axes import BEGIN_LABEL, END_LABEL, Axis, Grid, Pieces, Positions
from saccade.errors import UserError
from saccade.look.alignment import clearest
from saccade.look.record import LayerLooks, Looks
from saccade.look.rollout import roll_out
from saccade.runtime.contract import Floats

ROLLED = "rollout"
"""The name of looks that a pipeline has rolled out itself."""


def attended(looks: Looks, memory: str, rows: Sequence[int] | None, *, rolled: bool) -> tuple[Floats, Axis]:
    """A weight for every position of a memory, and what stands there. `rows`: the pieces that are explained, counted
    from 0 in the order they were written; of an encoder its positions; None: all."""
    if (own := [one for one in looks.layers if one.name == ROLLED]) and rolled:
        return own[0].weights_NTS.mean(axis=(0, 1)), own[0].columns
    layers = [one for one in looks.layers if one.name != ROLLED and one.memory == memory]
    across = [one for one in layers if one.kind == "cross"]
    around = [one for one in layers if one.kind == "encoder"]
    if not across and not layers:
        raise UserError("this model has no attention over its input: try --method rise")
    if across:
        weights_S = _rows(_drawn(looks, across), rows)
        if rolled and around:
            weights_S = weights_S @ roll_out([one.weights_NTS for one in around])
        return weights_S, across[0].columns
    sources_SS = roll_out([one.weights_NTS for one in layers]) if rolled else layers[-1].weights_NTS.mean(axis=0)
    found = sources_SS.mean(axis=0) if rows is None else sources_SS[list(rows)].mean(axis=0)
    return _on_grid(found, layers[0].columns, looks)


def _drawn(looks: Looks, layers: Sequence[LayerLooks]) -> Floats:
    """The layer that is drawn where none is asked for: the mean of its heads."""
    number = looks.layer or 1 + clearest([one.weights_NTS for one in layers])
    weights_TS: Floats = layers[min(number, len(layers)) - 1].weights_NTS.mean(axis=0)
    return weights_TS


def _rows(weights_TS: Floats, rows: Sequence[int] | None) -> Floats:
    mean: Floats = (weights_TS if rows is None else weights_TS[list(rows)]).mean(axis=0)
    return mean


def _on_grid(weights_S: Floats, axis: Axis, looks: Looks) -> tuple[Floats, Axis]:
    """Without the marks before a picture's fields."""
    if isinstance(axis, Positions):
        for one in looks.layers:
            if isinstance(one.columns, Grid) and len(one.columns) <= len(axis):
                return weights_S[len(axis) - len(one.columns) :], one.columns
    return weights_S, axis


def on_words(weights_S: Floats, axis: Pieces, text: str, spans: Sequence[tuple[int, int]]) -> Floats:
    """Weights of pieces as those of words, which collect what their pieces have."""
    found: Floats = weights_S.astype(np.float64) @ pieces_in_words(axis, text, spans)
    return found


def pieces_in_words(axis: Pieces, text: str, spans: Sequence[tuple[int, int]]) -> Floats:
    """[S, W]: which share of each piece lies in each word. Pieces are found in the text by counting its letters."""
    owners = np.full(len(text), -1)
    for number, (start, stop) in enumerate(spans):
        owners[start:stop] = number
    letters = [owners[place] for place, letter in enumerate(text) if not letter.isspace()]
    lengths = [0 if label in (BEGIN_LABEL, END_LABEL) else len("".join(label.split())) for label in axis.labels]
    if (total := sum(lengths)) == 0 or not letters:
        raise UserError("the pieces that were read are not those of this text")
    shares_SW, done = np.zeros((len(lengths), len(spans)), dtype=np.float64), 0
    for row, length in enumerate(lengths):
        # Where a tokenizer changes letters, pieces are found by their share of all letters.
        first, last = (round(place * len(letters) / total) for place in (done, done + length))
        some = [owner for owner in letters[first:last] if owner >= 0]
        for owner in some:
            shares_SW[row, owner] += 1 / len(some)
        done += length
    return shares_SW


def on_pixels(weights_S: Floats, grid: Grid, height: int, width: int) -> Floats:
    """Weights of fields as those of pixels, changing smoothly between the fields' middles: [P]."""
    from PIL import Image

    fields = Image.fromarray(weights_S.reshape(grid.height, grid.width).astype(np.float32))
    smooth: Floats = np.asarray(fields.resize((width, height), Image.Resampling.BILINEAR)).reshape(-1)
    return smooth

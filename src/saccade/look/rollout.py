"""Roll-out: how much each position of the input reaches the output through all layers of an encoder.

A layer passes on half of what a position was and half of what it looked at; the product of all layers says where the
output comes from (Abnar & Zuidema 2020).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from saccade.errors import WrongUse
from saccade.look.alignment import Alignment, align
from saccade.runtime.contract import Floats

if TYPE_CHECKING:
    from saccade.look.record import Looks


def roll_out(layers: Sequence[Floats]) -> Floats:
    """[S, S] from the weights [N, S, S] of every layer, first to last: row i is where position i comes from."""
    count = layers[0].shape[-1]
    found: Floats = np.eye(count, dtype=np.float32)
    for weights_NSS in layers:
        found = 0.5 * (weights_NSS.mean(axis=0) + np.eye(count, dtype=np.float32)) @ found
    shares: Floats = found / found.sum(axis=1, keepdims=True)
    return shares


def rolled_out(looks: "Looks") -> Alignment:
    """Where each position of what was read, or of what was written by a language model, comes from."""
    kinds = [one.kind for one in looks.layers]
    kind = "encoder" if "encoder" in kinds else "decoder"
    layers = [one for one in looks.layers if one.kind == kind]
    names = list(dict.fromkeys(one.memory for one in layers))
    layers = [one for one in layers if one.memory == names[0]]
    if not layers or layers[0].weights_NTS.shape[1] != layers[0].weights_NTS.shape[2]:
        raise WrongUse("nothing in this model looks at itself: there is nothing to roll out")
    axis = layers[0].columns
    return align(roll_out([one.weights_NTS for one in layers]), axis, axis, f"rolled out through {len(layers)} layers")

"""Roll-out: how much each position of the input reaches the output through all layers of an encoder.

A layer passes on half of what a position was and half of what it looked at; the product of all layers says where the
output comes from (Abnar & Zuidema 2020).
"""

from collections.abc import Sequence

import numpy as np

from saccade.runtime.contract import Floats


def roll_out(layers: Sequence[Floats]) -> Floats:
    """[S, S] from the weights [N, S, S] of every layer, first to last: row i is where position i comes from."""
    count = layers[0].shape[-1]
    found: Floats = np.eye(count, dtype=np.float32)
    for weights_NSS in layers:
        found = 0.5 * (weights_NSS.mean(axis=0) + np.eye(count, dtype=np.float32)) @ found
    shares: Floats = found / found.sum(axis=1, keepdims=True)
    return shares

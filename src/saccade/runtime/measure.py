"""How long one linear layer takes in each packing on this machine: what `saccade doctor` shows."""

import time
from collections.abc import Callable

import numpy as np

from saccade import native
from saccade.runtime.contract import Floats, How
from saccade.runtime.packing import BITS, Packed

INPUTS, OUTPUTS = 512, 2048
ROWS = (1, 5, 32)
"""One sentence, one sentence's beams, a batch."""
SECONDS = 0.03
"""Time given to each packing and number of rows."""


def time_packings() -> dict[How, list[float]]:
    """Microseconds of one layer at each number of rows, for those packings that this machine has."""
    random = np.random.default_rng(0)
    weight = random.standard_normal((OUTPUTS, INPUTS)).astype(np.float32)
    ways: dict[How, Callable[[Floats], Floats]] = {"exact": lambda x: x @ weight.T}
    if native.kernels() is not None:
        ways |= {how: Packed.of(weight, None, bits) for how, bits in BITS.items()}
    inputs = [random.standard_normal((rows, INPUTS)).astype(np.float32) for rows in ROWS]
    return {how: [_microseconds(layer, x) for x in inputs] for how, layer in ways.items()}


def _microseconds(layer: Callable[[Floats], Floats], x: Floats) -> float:
    """The fastest single call: whatever else the machine does only ever makes one slower."""
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        start = time.perf_counter()
        layer(x)
        best = min(best, time.perf_counter() - start)
    return round(best * 1e6, 1)

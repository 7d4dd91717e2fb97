"""A linear layer on the C kernels: weights rounded once to integers, with one scale per output."""

import numpy as np

from saccade import native
from saccade.runtime.contract import Floats, How

PANEL = 16
BITS: dict[How, int] = {"int16": 16, "int8": 8}
"""Of the weights, in each packing. `exact` is not packed."""


class Packed:
    """y = W x + b. Every row of inputs is rounded by itself: its result does not depend on the others."""

    def __init__(self, weight: Floats, bias: Floats | None, bits: int) -> None:
        self.library = native.needed()
        self.outputs, self.inputs = weight.shape
        weight = np.ascontiguousarray(weight, dtype=np.float32)
        self.weights = np.empty(self.library.packed_bytes(self.outputs, self.inputs, bits), dtype=np.uint8)
        # The kernels finish whole panels of outputs.
        self.scales, self.bias = np.zeros((2, self.outputs + PANEL), dtype=np.float32)
        if bias is not None:
            self.bias[: self.outputs] = bias
        parts = [array.ctypes.data for array in (self.weights, self.scales, self.bias)]
        self.library.pack_weights(weight.ctypes.data, self.outputs, self.inputs, bits, *parts[:2])
        self.layer = native.Linear(self.outputs, self.inputs, bits, *parts)

    def __call__(self, x: Floats) -> Floats:
        """[..., inputs] -> [..., outputs]"""
        x = np.ascontiguousarray(x, dtype=np.float32)
        y = np.empty((*x.shape[:-1], self.outputs), dtype=np.float32)
        rows = x.size // self.inputs
        if self.library.run_linear(self.layer, x.ctypes.data, rows, y.ctypes.data, native.threads()):
            raise MemoryError(f"no memory for {rows} rows")
        return y

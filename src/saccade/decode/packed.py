"""A linear layer on the C kernels, in NumPy alone; and the names of all the ways to pack a model.

`exact` is fp32 as trained. `int16` (C kernels, 12-bit weights) and `fp16` (fbgemm) are near lossless; `int8` is the
smallest and may change a word. All but fbgemm's int8 treat every row alone.
"""

from typing import Literal

import numpy as np

from saccade import native

PANEL = 16
How = Literal["exact", "int16", "fp16", "int8"]
NEAR_LOSSLESS: tuple[How, ...] = ("int16", "fp16", "exact")
BITS: dict[How, int] = {"int16": 16, "int8": 8}
"""Of the weights on the C kernels."""


class Packed:
    """Weights [outputs, inputs] rounded once to integers, with one scale per output."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray | None, bits: int) -> None:
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

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """[..., inputs] -> [..., outputs]"""
        x = np.ascontiguousarray(x, dtype=np.float32)
        y = np.empty((*x.shape[:-1], self.outputs), dtype=np.float32)
        rows = x.size // self.inputs
        if self.library.run_linear(self.layer, x.ctypes.data, rows, y.ctypes.data, native.threads()):
            raise MemoryError(f"no memory for {rows} rows")
        return y

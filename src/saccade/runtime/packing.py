"""A linear layer on the C kernels: weights rounded once to integers, with one scale per output."""

import numpy as np

from saccade import native
from saccade.runtime.contract import Array, Floats, How
from saccade.tensors import StoredTensor

PANEL = 16
BITS: dict[How, int] = {"int16": 16, "int8": 8}
"""Of the weights, in each packing. `exact` is not packed."""


class Packed:
    """y = W x + b. Every row of inputs is rounded by itself: its result does not depend on the others."""

    def __init__(self, shape: tuple[int, ...], bits: int, weights: Array, scales: Array, bias: Array) -> None:
        """`scales` and `bias` are padded: the kernels finish whole panels of outputs."""
        self.library = native.needed()
        (self.outputs, self.inputs), self.bits = shape, bits
        if self.inputs > native.MOST_INPUTS:
            raise ValueError(f"{self.inputs:,} inputs; the kernels sum up at most {native.MOST_INPUTS:,}")
        self.parts = (weights, scales, bias)
        self.layer = native.Linear(self.outputs, self.inputs, bits, *(part.ctypes.data for part in self.parts))

    @classmethod
    def of(cls, weight: Floats | StoredTensor, bias: Floats | None, bits: int) -> "Packed":
        library = native.needed()
        outputs, inputs = weight.shape
        weights = np.empty(library.packed_bytes(outputs, inputs, bits), dtype=np.uint8)
        scales, shifts = np.zeros((2, padded(outputs)), dtype=np.float32)
        if bias is not None:
            shifts[:outputs] = bias
        # A large matrix is never held in float32 as a whole.
        stored = weight if isinstance(weight, StoredTensor) else StoredTensor(weight)
        for first, chunk in stored.chunks(PANEL):
            rows = np.ascontiguousarray(chunk)
            places = weights[library.packed_bytes(first, inputs, bits) :], scales[first:]
            library.pack_weights(rows.ctypes.data, len(rows), inputs, bits, *(place.ctypes.data for place in places))
        return cls((outputs, inputs), bits, weights, scales, shifts)

    def __call__(self, x: Floats) -> Floats:
        """[..., inputs] -> [..., outputs]"""
        x = np.ascontiguousarray(x, dtype=np.float32)
        y = np.empty((*x.shape[:-1], self.outputs), dtype=np.float32)
        rows = x.size // self.inputs
        if self.library.run_linear(self.layer, x.ctypes.data, rows, y.ctypes.data, native.threads()):
            raise MemoryError(f"no memory for {rows} rows")
        return y


def padded(outputs: int) -> int:
    """Scales of so many outputs: one panel more."""
    return outputs + PANEL

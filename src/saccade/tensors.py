"""The tensors of a safetensors file as they are stored: each is widened to float32 when it is asked for, and not kept.

Kernels pack their weights once, and plain NumPy is only needed for looking: widened for good, a model would be held
twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import deserialize

Array = npt.NDArray[Any]
_DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2", "I8": "i1"}


@dataclass(frozen=True)
class StoredTensor:
    """One tensor. int8 is a storage format, with a scale for each row."""

    array: Array
    scale: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def size(self) -> int:
        return self.array.size

    def __getitem__(self, rows: Any) -> Array:
        """Some rows, or all (`...`), as float32."""
        widened: Array = self.array[rows].astype(np.float32)
        if self.scale is not None:
            widened *= self.scale[rows]
        return widened

    def is_finite(self) -> bool:
        """Whether all numbers are, once widened."""
        with np.errstate(over="ignore"):
            largest = self.array.astype(np.float32) if self.scale is None else 127 * self.scale
        return bool(np.isfinite(largest).all())


class StoredTensors(Mapping[str, Array]):
    """Tensors by name."""

    def __init__(self, tensors: Mapping[str, StoredTensor]) -> None:
        self.stored = dict(tensors)

    def __getitem__(self, name: str) -> Array:
        return self.stored[name][...]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def below(self, prefix: str) -> "StoredTensors":
        """The tensors below a name, by the rest of their names."""
        start = f"{prefix}."
        return StoredTensors({n.removeprefix(start): one for n, one in self.stored.items() if n.startswith(start)})


def read_tensors(content: bytes) -> StoredTensors:
    """The tensors of a safetensors file; a ValueError says what is wrong with them."""
    arrays = {name: _array(name, tensor) for name, tensor in deserialize(content)}  # type: ignore[no-untyped-call]
    found = {}
    for name, array in arrays.items():
        scaled = arrays.get(name.removesuffix(".scale"))
        if name.endswith(".scale") and scaled is not None and scaled.dtype == np.int8:
            continue
        scale = None
        if array.dtype == np.int8:
            scale = arrays.get(f"{name}.scale")
            if scale is None or array.ndim != 2 or scale.shape != (array.shape[0], 1):
                raise ValueError(f"{name} is stored as int8 without one scale per row")
            scale = scale.astype(np.float32)
        found[name] = StoredTensor(array, scale)
    return StoredTensors(found)


def row_table(weights: Mapping[str, Array], name: str) -> Array | StoredTensor:
    """A tensor of which only rows are asked for."""
    return weights.stored[name] if isinstance(weights, StoredTensors) else weights[name]


def _array(name: str, tensor: dict[str, Any]) -> Array:
    kind = tensor["dtype"]
    if kind not in _DTYPES:
        raise ValueError(f"{name} is stored as {kind}")
    array: Array = np.frombuffer(tensor["data"], _DTYPES[kind]).reshape(tensor["shape"])
    # A bfloat16 is the upper half of a float32.
    return (array.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else array

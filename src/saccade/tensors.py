"""The tensors of a safetensors file as they are stored: each is widened to float32 when it is asked for, and not kept.

Kernels pack their weights once, and plain NumPy is only needed for looking: widened for good, a model would be held
twice. A large file is mapped, not read: what was packed from it need not stay in memory at all.
"""

import hashlib
import json
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import deserialize, safe_open

from saccade import cache
from saccade.files import open_regular

Array = npt.NDArray[Any]
_DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2", "I8": "i1"}
LARGE = 64 * 2**20
"""Bytes from which a file is mapped. A small one is read: it may be overwritten while it is used."""
CHUNK = 2**22
"""Numbers that are widened at once where all of a tensor is gone through."""


class WrongDigest(ValueError):
    """The file is not the one that was written."""


@dataclass(frozen=True)
class StoredTensor:
    """One tensor. int8 is a storage format, with a scale for each row; bfloat16 is stored as the upper half of a
    float32."""

    array: Array
    scale: Array | None = None
    bfloat16: bool = False
    file: "MappedFile | None" = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def size(self) -> int:
        return self.array.size

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Any) -> Array:
        """Some rows, or all (`...`), as float32."""
        found: Array = self.array[rows]
        widened: Array = found.astype(np.float32)
        if self.bfloat16:
            widened = (found.astype(np.uint32) << 16).view(np.float32)
        if self.scale is not None:
            widened *= self.scale[rows]
        return widened

    def chunks(self, multiple: int = 1) -> Iterator[tuple[int, Array]]:
        """All rows, some at a time, a multiple of so many: the first one's number, and the rows. What was read from a
        mapped file is given back."""
        step = max(1, CHUNK * len(self) // max(self.size, 1) // multiple) * multiple
        for first in range(0, len(self), step):
            yield first, self[first : first + step]
            if self.file:
                self.file.release()


class StoredTensors(Mapping[str, Array]):
    """Tensors by name."""

    def __init__(self, tensors: Mapping[str, StoredTensor], file: "MappedFile | None" = None, part: str = "") -> None:
        self.stored, self.file, self.part = dict(tensors), file, part

    def __getitem__(self, name: str) -> Array:
        return self.stored[name][...]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def __contains__(self, name: object) -> bool:
        return name in self.stored  # Mapping's own would widen the tensor to find out

    def below(self, prefix: str) -> "StoredTensors":
        """The tensors below a name, by the rest of their names."""
        start = f"{prefix}."
        found = {n.removeprefix(start): one for n, one in self.stored.items() if n.startswith(start)}
        return StoredTensors(found, self.file, f"{self.part}{start}")

    @property
    def identity(self) -> str:
        """What these tensors are, wherever they stand: the digest of their file, and which part of it. Empty if there
        is no file."""
        return f"{self.file.digest} {self.part}" if self.file else ""

    def are_finite(self) -> bool:
        """Whether all numbers are, once widened. Of a mapped file that is remembered."""
        if self.file and self.file.is_checked:
            return True
        with np.errstate(over="ignore"):
            finite = all(self._is_finite(tensor) for tensor in self.stored.values())
        if finite and self.file:
            self.file.remember()
        return finite

    @staticmethod
    def _is_finite(tensor: StoredTensor) -> bool:
        if tensor.scale is not None:
            return bool(np.isfinite(127 * tensor.scale).all())
        if tensor.array.ndim == 0:
            return bool(np.isfinite(tensor[...]))
        return all(np.isfinite(rows).all() for _, rows in tensor.chunks())


class MappedFile:
    """A safetensors file in the address space: read as it is used, and shared with other processes."""

    def __init__(self, path: Path, digest: str) -> None:
        """Its SHA-256 is computed once; from then on the cache remembers this file by its place, size and times."""
        with open_regular(path) as file:
            about = os.fstat(file.fileno())
            place = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
            self.digest = digest
            self.stamp = f"checked-{hashlib.sha256(f'{digest} {place}'.encode()).hexdigest()[:32]}"
            self.is_checked = cache.read(self.stamp) is not None
            if not self.is_checked and hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise WrongDigest
            self.content = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        with safe_open(path, framework="numpy"):
            pass  # the library checks that all tensors lie within the file, none over another

    def release(self) -> None:
        """Give back the memory of what was read; it is read again when it is asked for."""
        self.content.madvise(mmap.MADV_DONTNEED)

    def remember(self) -> None:
        """Its numbers are what they should be: the next start need not look at them all."""
        with suppress(OSError):
            cache.write(self.stamp, b"")
        self.is_checked = True

    def tensors(self) -> StoredTensors:
        length = int.from_bytes(self.content[:8], "little")
        header = json.loads(self.content[8 : 8 + length])
        arrays = {}
        for name, tensor in header.items():
            if name == "__metadata__":
                continue
            start, end = tensor["data_offsets"]
            dtype = _dtype(name, tensor["dtype"])
            array = np.frombuffer(self.content, dtype, (end - start) // np.dtype(dtype).itemsize, 8 + length + start)
            arrays[name] = array.reshape(tensor["shape"]), tensor["dtype"]
        return StoredTensors(_paired(arrays, self), self)


def read_tensors(content: bytes) -> StoredTensors:
    """The tensors of a safetensors file; a ValueError says what is wrong with them."""
    arrays = {}
    for name, tensor in deserialize(content):  # type: ignore[no-untyped-call]
        array: Array = np.frombuffer(tensor["data"], _dtype(name, tensor["dtype"])).reshape(tensor["shape"])
        arrays[name] = array, tensor["dtype"]
    return StoredTensors(_paired(arrays))


def row_table(weights: Mapping[str, Array], name: str) -> Array | StoredTensor:
    """A tensor of which only the shape or some rows are asked for."""
    return weights.stored[name] if isinstance(weights, StoredTensors) else weights[name]


def _paired(arrays: dict[str, tuple[Array, str]], file: MappedFile | None = None) -> dict[str, StoredTensor]:
    """Tensors, those in int8 with their scales."""
    found = {}
    for name, (array, kind) in arrays.items():
        scaled = arrays.get(name.removesuffix(".scale"))
        if name.endswith(".scale") and scaled is not None and scaled[0].dtype == np.int8:
            continue
        scale = None
        if array.dtype == np.int8:
            stored = arrays.get(f"{name}.scale")
            if stored is None or array.ndim != 2 or stored[0].shape != (array.shape[0], 1):
                raise ValueError(f"{name} is stored as int8 without one scale per row")
            scale = StoredTensor(stored[0], bfloat16=stored[1] == "BF16")[...]
        found[name] = StoredTensor(array, scale, kind == "BF16", file)
    return found


def _dtype(name: str, kind: str) -> str:
    if kind not in _DTYPES:
        raise ValueError(f"{name} is stored as {kind}")
    return _DTYPES[kind]

"""The packed layers of a model: packed now, or, of a large model, mapped from the cache.

A mapped model starts at once, and several processes share its memory. Small models are packed in milliseconds, and
nothing is kept of them.
"""

import hashlib
import json
from contextlib import suppress

import numpy as np

from saccade import cache, native
from saccade.runtime.contract import Array
from saccade.runtime.layers import Weights
from saccade.runtime.packing import Packed, padded
from saccade.tensors import StoredTensors, row_table

ALIGNED = 64
"""Bytes: every part begins at a cache line, so that no vector of weights is read from two."""


class PackedLayers:
    """Layers by name and number of bits, out of the weights of one stack."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.used: dict[str, Packed] = {}
        self.made: set[int] = set()
        """The numbers of bits in which something was packed."""
        identity = weights.identity if isinstance(weights, StoredTensors) else ""
        # Kernels of another processor order the weights in another way.
        key = hashlib.sha256(f"{identity} {native.identity()}".encode()).hexdigest()[:32]
        self.file = f"packed-{key}" if identity else ""
        self.mapped: dict[int, _MappedLayers | None] = {}

    def layer(self, name: str, bits: int) -> Packed:
        """A layer, from the cache if it is there."""
        weight, label = row_table(self.weights, f"{name}.weight"), f"{name} {bits}"
        if self.file and bits not in self.mapped:
            self.mapped[bits] = _MappedLayers.open(f"{self.file}-{bits}")
        mapped = self.mapped.get(bits)
        found = mapped.layer(label, weight.shape, bits) if mapped else None
        if found is None:
            found = Packed.of(weight, self.weights.get(f"{name}.bias"), bits)
            self.made.add(bits)
        self.used[label] = found
        return found

    def keep(self) -> None:
        """Put into the cache what was packed. Without a cache it is packed again the next time.

        A file is replaced as a whole, so what was mapped from it goes into the new one too: an output layer in int8 may
        stand beside layers in int16 one time, and among layers in int8 another.
        """
        if not (isinstance(self.weights, StoredTensors) and self.weights.file):
            return
        self.weights.file.release()
        for bits in self.made:
            layers = {label: packed for label, packed in self.used.items() if packed.bits == bits}
            with suppress(OSError):
                _write(f"{self.file}-{bits}", layers)


class _MappedLayers:
    """A file of packed layers: the length of a list, the list (JSON: where each layer's parts begin), the parts."""

    def __init__(self, content: memoryview, places: dict[str, list[int]]) -> None:
        self.content, self.places = content, places

    @classmethod
    def open(cls, file: str) -> "_MappedLayers | None":
        content = cache.map_file(file)
        if content is None:
            return None
        try:
            length = int.from_bytes(content[:8], "little")
            return cls(content, json.loads(bytes(content[8 : 8 + length])))
        except ValueError:
            return None

    def layer(self, label: str, shape: tuple[int, ...], bits: int) -> Packed | None:
        """None where the file has no such layer, or one of another shape."""
        weights, scales, bias = self.places.get(label, [0, 0, 0])
        size, outputs = native.needed().packed_bytes(*shape, bits), padded(shape[0])
        if weights <= 0 or bias + 4 * outputs > len(self.content):
            return None
        numbers = (self._part(np.uint8, weights, size), *(self._part(np.float32, at, outputs) for at in (scales, bias)))
        return Packed(shape, bits, *numbers)

    def _part(self, kind: type, start: int, count: int) -> Array:
        part: Array = np.frombuffer(self.content, kind, count, start)
        return part


def _write(file: str, layers: dict[str, Packed]) -> None:
    sizes = {label: [_aligned(part.nbytes) for part in packed.parts] for label, packed in layers.items()}
    # Where the parts begin depends on the length of the list, which says where they begin: room enough for it.
    begin = _aligned(64 + sum(len(label) + 64 for label in sizes))
    places, at = {}, begin
    for label, parts in sizes.items():
        places[label] = [at, at + parts[0], at + parts[0] + parts[1]]
        at += sum(parts)
    listed = json.dumps(places).encode()
    assert 8 + len(listed) <= begin
    with cache.lock(file), cache.writing(file) as opened:
        opened.write(len(listed).to_bytes(8, "little") + listed)
        for label, packed in layers.items():
            for place, part in zip(places[label], packed.parts, strict=True):
                opened.seek(place)
                opened.write(part.data)
        opened.truncate(at)


def _aligned(size: int) -> int:
    return (size + ALIGNED - 1) // ALIGNED * ALIGNED

"""The keys and values of positions already decoded, of one layer."""

from dataclasses import dataclass

import torch
from torch import Tensor


class KeyValueCache:
    """Keys and values [B, N, capacity, H]; the storage doubles when it is full, so memory follows use."""

    def __init__(self, keys: Tensor | None = None, values: Tensor | None = None) -> None:
        self.keys = keys
        self.values = values

    def append(self, k_BNTH: Tensor, v_BNTH: Tensor, start: int | Tensor, used: int) -> tuple[Tensor, Tensor]:
        """Write T new positions at `start` and return all `used` ones."""
        self.keys = _write(self.keys, k_BNTH, start, used)
        self.values = _write(self.values, v_BNTH, start, used)
        return self.keys[:, :, :used], self.values[:, :, :used]

    def reorder(self, rows: Tensor) -> "KeyValueCache":
        """Row i of the result is row rows[i]. The room to grow is kept: making it anew would cost a second copy."""
        if self.keys is None or self.values is None:
            return KeyValueCache()
        return KeyValueCache(self.keys.index_select(0, rows), self.values.index_select(0, rows))

    def join(self, other: "KeyValueCache", used: int) -> "KeyValueCache":
        """The rows of both, `used` positions of each."""
        if self.keys is None or self.values is None or other.keys is None or other.values is None:
            raise ValueError("join needs two states that hold something")
        keys = [_fit(cache.keys, used) for cache in (self, other) if cache.keys is not None]
        values = [_fit(cache.values, used) for cache in (self, other) if cache.values is not None]
        return KeyValueCache(torch.cat(keys), torch.cat(values))

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self.keys, self.values) if part is not None)


@dataclass(frozen=True)
class Past:
    """A cache, and where in it the next positions go."""

    cache: KeyValueCache
    start: int | Tensor
    """One number, or one per row when rows have different lengths."""
    used: int
    """Positions in use once they are written."""

    def append(self, k_BNTH: Tensor, v_BNTH: Tensor) -> tuple[Tensor, Tensor]:
        """Write the new positions; all keys and values up to them."""
        return self.cache.append(k_BNTH, v_BNTH, self.start, self.used)


def _write(storage: Tensor | None, new_BNTH: Tensor, start: int | Tensor, used: int) -> Tensor:
    rows, heads, count, width = new_BNTH.shape
    if storage is None:
        storage = new_BNTH.new_zeros(rows, heads, used, width)
    elif storage.shape[2] < used:
        storage = _fit(storage, max(used, 2 * storage.shape[2]))
    if isinstance(start, int):
        storage[:, :, start : start + count] = new_BNTH
    else:
        at_BT = start[:, None] + torch.arange(count, device=start.device)
        row_B1 = torch.arange(rows, device=start.device)[:, None]
        storage[row_B1, :, at_BT] = new_BNTH.transpose(1, 2)
    return storage


def _fit(storage: Tensor, length: int) -> Tensor:
    """The same positions in a storage of `length` positions."""
    kept = storage[:, :, :length]
    room = length - kept.shape[2]
    return torch.cat([kept, kept.new_zeros(*kept.shape[:2], room, kept.shape[3])], dim=2) if room > 0 else kept

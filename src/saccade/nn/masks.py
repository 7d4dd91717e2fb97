"""Who may look at whom: boolean predicates, True = may attend, joined with `&`.

A mask stays a predicate until someone needs it dense, so that a causal flag or a broadcast key
mask never becomes a T x S table.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


class Mask:
    """A predicate over (row, query position, key position)."""

    def allowed(self, queries: int, keys: int) -> Tensor:
        """The predicate as booleans that broadcast to [B, N, queries, keys]."""
        raise NotImplementedError

    def __and__(self, other: "Mask") -> "Mask":
        return Both(self, other)


@dataclass(frozen=True)
class Keys(Mask):
    """Every query may look at the keys marked True: the padding mask."""

    keys_BS: Tensor

    def allowed(self, queries: int, keys: int) -> Tensor:
        return self.keys_BS[:, None, None, :]


@dataclass(frozen=True)
class Causal(Mask):
    """A query may look at its own position and before; row b's first query stands at offsets_B[b]."""

    offsets_B: Tensor | None = None

    def allowed(self, queries: int, keys: int) -> Tensor:
        device = None if self.offsets_B is None else self.offsets_B.device
        query_T1 = torch.arange(queries, device=device)[:, None]
        key_S = torch.arange(keys, device=device)
        if self.offsets_B is None:
            return key_S <= query_T1
        return key_S <= self.offsets_B[:, None, None, None] + query_T1


@dataclass(frozen=True)
class Band(Mask):
    """A query may look at `width` keys: its own position and those just before it; the first query stands at `start`.

    It says nothing about keys after the query: join it with `Causal` where there are any.
    """

    width: int
    start: int | Tensor = 0
    """One number, or one per row."""

    def allowed(self, queries: int, keys: int) -> Tensor:
        device = None if isinstance(self.start, int) else self.start.device
        query_T1 = torch.arange(queries, device=device)[:, None]
        at = query_T1 + (self.start if isinstance(self.start, int) else self.start[:, None, None, None])
        return torch.arange(keys, device=device) > at - self.width


@dataclass(frozen=True)
class Documents(Mask):
    """In a row that holds several documents, each keeps to itself: numbers_BT says whose each position is."""

    numbers_BT: Tensor

    def allowed(self, queries: int, keys: int) -> Tensor:
        return self.numbers_BT[:, None, :, None] == self.numbers_BT[:, None, None, :]


@dataclass(frozen=True)
class Both(Mask):
    """What both masks allow."""

    left: Mask
    right: Mask

    def allowed(self, queries: int, keys: int) -> Tensor:
        left, right = self.left.allowed(queries, keys), self.right.allowed(queries, keys)
        return left.to(right.device) & right

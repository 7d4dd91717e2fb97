"""A model as it runs: what reads and what writes, be it PyTorch or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np


class WritingState(Protocol):
    """What a writer remembers of the texts under way; see `models/contract.py`, whose states are such."""

    @property
    def rows(self) -> int: ...

    def own(self, numbers: np.ndarray) -> Any:
        """Rows or tokens as the writer takes them: arrays, or tensors where its weights are."""
        ...

    def reorder(self, rows: Any) -> Self: ...

    def repeat(self, times: int) -> Self: ...


class Writer(Protocol):
    """What a search needs of a decoder. Logits are its own: arrays, or tensors."""

    def start(self, memory: Any, rows: int = 1) -> Any: ...

    def extend(self, tokens_BT: Any, lengths_B: Any, state: Any) -> tuple[Any, Any]: ...

    def step(self, tokens_B: Any, state: Any) -> tuple[Any, Any]: ...


@dataclass(frozen=True)
class Running:
    """An encoder and a decoder on the C kernels."""

    encoder: Any
    decoder: Writer

    def read(self, source_MS: Any, mask_MS: Any) -> Any:
        """A memory of padded sources."""
        return self.encoder(source_MS, mask_MS)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """What is to hold while it reads and writes."""
        yield


def as_array(numbers: Any) -> np.ndarray:
    """An array of what may be a tensor, on whatever device."""
    found: np.ndarray = numbers if isinstance(numbers, np.ndarray) else numbers.numpy(force=True)
    return found

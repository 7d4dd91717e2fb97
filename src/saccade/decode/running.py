"""A model as it runs: what reads and what writes, be it PyTorch or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Writer(Protocol):
    """What a search needs of a decoder, as `models/contract.py` explains it.

    Tokens, rows and logits are arrays, or, where the decoder is PyTorch's, tensors; its state's `own` makes the one of
    the other, so that a search need not know.
    """

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

    def rows(self, memory: Any, chosen: np.ndarray) -> Any:
        """Some of the memories, each as often as it is chosen."""
        return memory.rows(chosen)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """What is to hold while it reads and writes."""
        yield


def as_array(numbers: Any) -> np.ndarray:
    """An array of what may be a tensor, on whatever device."""
    found: np.ndarray = numbers if isinstance(numbers, np.ndarray) else numbers.numpy(force=True)
    return found

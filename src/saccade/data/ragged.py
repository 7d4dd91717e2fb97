"""Id sequences of many lengths: a corpus in two arrays, padded rows, and batches of similar lengths; in NumPy only."""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np


class Ragged:
    """Many id sequences in one flat array, so that a corpus is two arrays instead of a million lists."""

    def __init__(self, flat: np.ndarray, lengths: np.ndarray) -> None:
        self.flat, self.lengths = flat, lengths
        self.starts = np.concatenate([[0], np.cumsum(lengths)])

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "Ragged":
        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
        return cls(np.fromiter(chain.from_iterable(sequences), dtype=np.int32, count=int(lengths.sum())), lengths)

    @classmethod
    def joined(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """All sequences of all parts, in order."""
        flat = [np.zeros(0, dtype=np.int32), *(part.flat for part in parts)]
        lengths = [np.zeros(0, dtype=np.int64), *(part.lengths for part in parts)]
        return cls(np.concatenate(flat), np.concatenate(lengths))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.flat[self.starts[index] : self.starts[index + 1]]

    def padded(self, indices: np.ndarray, *, pad: int, before: int = 0, after: int = 0) -> np.ndarray:
        """The chosen sequences as rows, with room for marks before and after, filled up with `pad`."""
        lengths = self.lengths[indices]
        rows = np.full((len(indices), before + int(lengths.max()) + after), pad, dtype=np.int64)
        for row, index in enumerate(indices):
            rows[row, before : before + lengths[row]] = self[index]
        return rows


def real_positions(tokens: np.ndarray, pad: int) -> np.ndarray | None:
    """True where a row has something; None where nothing is padded."""
    real: np.ndarray = tokens != pad
    return None if real.all() else real


def in_order(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """All examples once, similar lengths together, longest first, at most `budget` padded tokens a batch."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size

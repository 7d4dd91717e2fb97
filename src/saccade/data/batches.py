"""Pairs of id sequences -> padded batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from saccade.tokens.marks import BEGIN, END, PAD


class Ragged:
    """Many id sequences in one flat array, so that a corpus is two arrays and not a million lists."""

    def __init__(self, flat: np.ndarray, lengths: np.ndarray) -> None:
        self.flat, self.lengths = flat, lengths
        self.starts = np.concatenate([[0], np.cumsum(lengths)])

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "Ragged":
        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
        return cls(np.fromiter(chain.from_iterable(sequences), dtype=np.int32, count=int(lengths.sum())), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.flat[self.starts[index] : self.starts[index + 1]]

    def padded(self, indices: np.ndarray, before: int = 0, after: int = 0) -> np.ndarray:
        """The chosen sequences as rows, with room for marks before and after, padded with PAD."""
        lengths = self.lengths[indices]
        rows = np.full((len(indices), before + int(lengths.max()) + after), PAD, dtype=np.int64)
        for row, index in enumerate(indices):
            rows[row, before : before + lengths[row]] = self[index]
        return rows


@dataclass(frozen=True)
class SequenceBatch:
    """Sources, and targets once as the decoder reads them and once as it should write them."""

    source_BS: Tensor
    source_mask_BS: Tensor | None
    """None when no source is padded."""
    target_BT: Tensor
    """<s> y1 … yn"""
    labels_BT: Tensor
    """y1 … yn </s>, PAD past the end"""
    indices: np.ndarray
    """Which examples these are, to name them when something goes wrong."""

    def rows(self, chosen: np.ndarray) -> "SequenceBatch":
        """Some of its rows."""
        mask_BS = None if self.source_mask_BS is None else self.source_mask_BS[chosen]
        return SequenceBatch(
            self.source_BS[chosen], mask_BS, self.target_BT[chosen], self.labels_BT[chosen], self.indices[chosen]
        )


@dataclass(frozen=True)
class SequencePairs:
    """A corpus of source and target ids; sources end in </s>."""

    source: Ragged
    target: Ragged

    def __len__(self) -> int:
        return len(self.source)

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Source and target lengths as the model sees them, marks included."""
        return self.source.lengths + 1, self.target.lengths + 1

    def batch(self, indices: np.ndarray) -> SequenceBatch:
        source, mask = pad_sources([self.source[i] for i in indices])
        target = self.target.padded(indices, before=1, after=1)
        target[:, 0] = BEGIN
        labels = target[:, 1:].copy()
        labels[np.arange(len(indices)), self.target.lengths[indices]] = END
        return SequenceBatch(source, mask, torch.from_numpy(target[:, :-1].copy()), torch.from_numpy(labels), indices)


def pad_sources(sequences: Sequence[Sequence[int] | np.ndarray]) -> tuple[Tensor, Tensor | None]:
    """Source rows, each closed by </s>, and their padding mask (None where nothing is padded)."""
    lengths = np.array([len(sequence) + 1 for sequence in sequences])
    rows = np.full((len(sequences), int(lengths.max())), PAD, dtype=np.int64)
    for row, sequence in enumerate(sequences):
        rows[row, : len(sequence)] = sequence
        rows[row, len(sequence)] = END
    source = torch.from_numpy(rows)
    if (lengths == lengths[0]).all():
        return source, None
    return source, torch.from_numpy(np.arange(rows.shape[1]) < lengths[:, None])


def padding_mask(tokens: np.ndarray) -> Tensor | None:
    """True where a row has something; None where nothing is padded."""
    real = tokens != PAD
    return None if real.all() else torch.from_numpy(real)


def in_order(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """All examples once, similar lengths together, longest first, at most `budget` padded tokens a batch."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size

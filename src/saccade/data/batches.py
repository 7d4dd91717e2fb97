"""Pairs of id sequences -> padded batches."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data.ragged import Ragged, real_positions
from saccade.sources.source import Collated
from saccade.sources.text import pad_sources
from saccade.tokens.marks import Marks

NamedSources = dict[str, tuple[Tensor, Tensor | None]]
"""What several encoders read, by the names of their memories: the input, and which of it is real."""


@dataclass(frozen=True)
class SequenceBatch:
    """Sources, and targets as decoder input and as labels."""

    source: Tensor | NamedSources
    """Token ids [B, S], pictures [B, H, W, C]; or what each of several encoders reads."""
    source_mask: Tensor | None
    """None when no source is padded, or each of several has its own."""
    target_BT: Tensor
    """<s> y1 … yn"""
    labels_BT: Tensor
    """y1 … yn </s>, and padding past the end"""
    real_BT: Tensor | None
    """True where there is a label; None when no target is padded."""
    indices: np.ndarray
    """Numbers of the examples, for error messages."""

    def rows(self, chosen: np.ndarray) -> "SequenceBatch":
        """Some of its rows."""
        return SequenceBatch(
            _rows_of(self.source, chosen),
            None if self.source_mask is None else self.source_mask[chosen],
            self.target_BT[chosen],
            self.labels_BT[chosen],
            None if self.real_BT is None else self.real_BT[chosen],
            self.indices[chosen],
        )


@dataclass(frozen=True)
class SequencePairs:
    """A corpus of source and target ids; sources end in </s>."""

    source: Ragged
    target: Ragged
    marks: Marks

    def __len__(self) -> int:
        return len(self.source)

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Source and target lengths as the model sees them, marks included."""
        return self.source.lengths + 1, self.target.lengths + 1

    def batch(self, indices: np.ndarray) -> SequenceBatch:
        source, mask = pad_sources([self.source[i] for i in indices], self.marks)
        return sequence_batch(*_tensors(source, mask), self.target, indices, self.marks)


def sequence_batch(
    source: Tensor | NamedSources, mask: Tensor | None, targets: Ragged, indices: np.ndarray, marks: Marks
) -> SequenceBatch:
    """What was read, and the targets of these numbers."""
    target = targets.padded(indices, pad=marks.pad, before=1, after=1)
    target[:, 0] = marks.start
    labels, lengths = target[:, 1:].copy(), targets.lengths[indices]
    labels[np.arange(len(indices)), lengths] = marks.end
    real = np.arange(labels.shape[1]) <= lengths[:, None]
    written = torch.from_numpy(target[:, :-1].copy())
    return SequenceBatch(source, mask, *(written, *_tensors(labels, None if real.all() else real)), indices)


def collated_source(batch: Collated) -> tuple[Tensor, Tensor | None]:
    """What a source collated, as one of the encoders reads it."""
    return _tensors(batch.values, batch.mask)


def _tensors(values: np.ndarray, mask: np.ndarray | None) -> tuple[Tensor, Tensor | None]:
    return torch.from_numpy(values), None if mask is None else torch.from_numpy(mask)


def _rows_of(source: Tensor | NamedSources, chosen: np.ndarray) -> Tensor | NamedSources:
    if isinstance(source, Tensor):
        return source[chosen]
    return {name: (one[chosen], None if mask is None else mask[chosen]) for name, (one, mask) in source.items()}


def padding_mask(tokens: np.ndarray, pad: int) -> Tensor | None:
    """True where a row has something; None where nothing is padded."""
    real = real_positions(tokens, pad)
    return None if real is None else torch.from_numpy(real)

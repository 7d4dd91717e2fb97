"""Pairs of id sequences -> padded batches."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data.ragged import Ragged, real_positions
from saccade.sources.text import pad_sources
from saccade.tokens.marks import Marks


@dataclass(frozen=True)
class SequenceBatch:
    """Sources, and targets as decoder input and as labels."""

    source_BS: Tensor
    source_mask_BS: Tensor | None
    """None when no source is padded."""
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
            self.source_BS[chosen],
            None if self.source_mask_BS is None else self.source_mask_BS[chosen],
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
        target = self.target.padded(indices, pad=self.marks.pad, before=1, after=1)
        target[:, 0] = self.marks.start
        labels, lengths = target[:, 1:].copy(), self.target.lengths[indices]
        labels[np.arange(len(indices)), lengths] = self.marks.end
        real = np.arange(labels.shape[1]) <= lengths[:, None]
        return SequenceBatch(
            torch.from_numpy(source),
            None if mask is None else torch.from_numpy(mask),
            torch.from_numpy(target[:, :-1].copy()),
            torch.from_numpy(labels),
            None if real.all() else torch.from_numpy(real),
            indices,
        )


def padding_mask(tokens: np.ndarray, pad: int) -> Tensor | None:
    """True where a row has something; None where nothing is padded."""
    real = real_positions(tokens, pad)
    return None if real is None else torch.from_numpy(real)

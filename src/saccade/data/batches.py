"""Pairs of id sequences -> padded batches."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data.ragged import Ragged, pad_sources
from saccade.tokens.marks import BEGIN, END, PAD


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
        return SequenceBatch(
            torch.from_numpy(source),
            None if mask is None else torch.from_numpy(mask),
            torch.from_numpy(target[:, :-1].copy()),
            torch.from_numpy(labels),
            indices,
        )


def padding_mask(tokens: np.ndarray) -> Tensor | None:
    """True where a row has something; None where nothing is padded."""
    real = tokens != PAD
    return None if real.all() else torch.from_numpy(real)

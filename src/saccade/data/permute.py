"""A random order for every row of ids, and spans of words, the last ones in it, that are to be predicted.

XLNet's pretraining (Yang et al. 2019, 2.3 and 3.1): every sixth word or so is predicted, each from all words before
it in the order.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data.batches import padding_mask
from saccade.tokens.marks import Marks

SHARE = 6
"""One token of so many is predicted (the paper's K)."""
LONGEST = 5
"""Tokens of the longest span."""


@dataclass(frozen=True)
class PermutedBatch:
    """Rows of ids, the orders in which they are factorised, and what is to be predicted."""

    tokens_BT: Tensor
    mask_BT: Tensor | None
    """True where there is something; None when every position is real."""
    order_BT: Tensor
    """Each position's place in its row's order, from 0; targets have the last ones."""
    targets_BK: Tensor
    """Positions, in their order. A row that has fewer is filled up in front with others, that have no label."""
    labels_BK: Tensor
    real_BK: Tensor
    """True where there is a label."""
    documents_BT: Tensor | None
    """The document of each position, if a row holds several isolated documents."""
    starts: np.ndarray
    """Where in the stream the rows begin."""

    @property
    def places_BT(self) -> Tensor:
        """The order as the authors' program has it: whatever is not predicted shares the place before all targets,
        so that words of the context see one another, as they will when the model is put to use."""
        context_B = self.order_BT.shape[1] - self.real_BK.sum(dim=1)
        return torch.maximum(self.order_BT, context_B[:, None] - 1)


def permute(
    tokens_BT: Tensor,
    random: np.random.Generator,
    marks: Marks,
    *,
    starts: np.ndarray,
    documents_BT: Tensor | None = None,
) -> PermutedBatch:
    """A random order and random targets for each row; marks and padding are never targets."""
    ids = tokens_BT.numpy()
    chosen = np.zeros(ids.shape, dtype=bool)
    for row, choose in zip(~np.isin(ids, list(marks.special)), chosen, strict=True):
        words = np.flatnonzero(row)
        choose[words[spans(len(words), random)]] = True
    # Sorted by random numbers, to which one is added for a target: all of those come after all others.
    sequence = np.argsort(random.random(ids.shape) + chosen, axis=1)
    order = np.empty_like(sequence)
    np.put_along_axis(order, sequence, np.arange(ids.shape[1])[None], axis=1)
    targets = sequence[:, ids.shape[1] - max(1, chosen.sum(axis=1).max(initial=0)) :].copy()
    real = np.take_along_axis(chosen, targets, axis=1)
    labels = np.where(real, np.take_along_axis(ids, targets, axis=1), marks.pad)
    return PermutedBatch(
        tokens_BT=tokens_BT,
        mask_BT=padding_mask(ids, marks.pad),
        order_BT=torch.from_numpy(order),
        targets_BK=torch.from_numpy(targets),
        labels_BK=torch.from_numpy(labels),
        real_BK=torch.from_numpy(real),
        documents_BT=documents_BT,
        starts=starts,
    )


def spans(words: int, random: np.random.Generator) -> np.ndarray:
    """Which of so many words are predicted: spans of 1 to 5, one of L words somewhere among 6 L; at least one word."""
    if words == 0:
        return np.zeros(0, dtype=np.int64)
    lengths = random.integers(1, LONGEST + 1, size=words // SHARE + 2)
    around = SHARE * lengths
    # The first of these stretches may have begun before the row: no word is likelier than another for where it stands.
    begins = np.cumsum(around) - around - random.integers(around[0])
    firsts = begins + random.integers(around - lengths + 1)
    chosen = np.concatenate([np.arange(first, first + length) for first, length in zip(firsts, lengths, strict=True)])
    chosen = chosen[(chosen >= 0) & (chosen < words)]
    return chosen if len(chosen) else random.integers(words, size=1)

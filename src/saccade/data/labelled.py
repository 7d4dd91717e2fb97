"""Batches of labelled texts and tagged words as tensors, to train with."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data.encoded import Texts, Words
from saccade.data.ragged import Ragged


@dataclass(frozen=True)
class TextBatch:
    """`<s> text </s>`, or `<s> text </s> second </s>`, with labels."""

    tokens_BT: Tensor
    mask_BT: Tensor | None
    """True at real positions; None if no row is padded."""
    segments_BT: Tensor | None
    """0 up to the first </s>, 1 after it; None where there are no second texts."""
    labels_B: Tensor
    """Numbers of classes, or the numbers themselves."""


@dataclass(frozen=True)
class TaggedBatch:
    """`<s> words </s>`, which tokens begin a word, and the words' tags, row after row."""

    tokens_BT: Tensor
    mask_BT: Tensor | None
    """True where there is something; None when no row is padded."""
    words_BT: Tensor
    labels_N: Tensor


def text_batch(texts: Texts, indices: np.ndarray, labels: np.ndarray) -> TextBatch:
    """The chosen texts; `labels` are those of all texts."""
    arrays = texts.arrays(indices)
    return TextBatch(
        tokens_BT=torch.from_numpy(arrays.tokens_BT),
        mask_BT=_tensor(arrays.mask_BT),
        segments_BT=_tensor(arrays.segments_BT),
        labels_B=torch.from_numpy(labels[indices]),
    )


def tagged_batch(words: Words, indices: np.ndarray, labels: Ragged) -> TaggedBatch:
    """The chosen rows; `labels` are the tags of every row's words."""
    arrays = words.arrays(indices)
    tags = np.concatenate([labels[index] for index in indices])
    return TaggedBatch(
        tokens_BT=torch.from_numpy(arrays.tokens_BT),
        mask_BT=_tensor(arrays.mask_BT),
        words_BT=torch.from_numpy(arrays.words_BT),
        labels_N=torch.from_numpy(tags.astype(np.int64)),
    )


def _tensor(array: np.ndarray | None) -> Tensor | None:
    return None if array is None else torch.from_numpy(array)

"""Texts, pairs of texts and tagged words as an encoder reads them: ids, marks, labels, batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data.batches import padding_mask
from saccade.data.ragged import Ragged
from saccade.tokens.marks import BEGIN, END
from saccade.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class TextBatch:
    """`<s> text </s>`, or `<s> text </s> second </s>`, and what each is labelled."""

    tokens_BT: Tensor
    mask_BT: Tensor | None
    """True where there is something; None when no row is padded."""
    segments_BT: Tensor | None
    """0 up to the first </s>, 1 after it; None where there are no second texts."""
    labels_B: Tensor
    """Numbers of classes, or the numbers themselves."""


@dataclass(frozen=True)
class TaggedBatch:
    """`<s> words </s>`, which tokens begin a word, and the words' tags, row after row."""

    tokens_BT: Tensor
    mask_BT: Tensor | None
    words_BT: Tensor
    labels_N: Tensor


@dataclass(frozen=True)
class Texts:
    """Texts or pairs of them as ids, marks included, at most as long as the encoder reads."""

    rows: Ragged
    firsts: np.ndarray
    """How long the part up to the first </s> is."""
    cut: int
    """How many texts were too long, and lost their end."""

    @classmethod
    def of(cls, vocabulary: Vocabulary, texts: Sequence[str], seconds: Sequence[str] | None, context: int) -> "Texts":
        first_ids = vocabulary.encode(texts)
        second_ids = vocabulary.encode(seconds) if seconds is not None else [[] for _ in texts]
        rows, firsts, cut = [], [], 0
        for first, second in zip(first_ids, second_ids, strict=True):
            marks = 2 if seconds is None else 3
            one, other = _fitted(len(first), len(second), context - marks)
            cut += one < len(first) or other < len(second)
            rows.append([BEGIN, *first[:one], END, *([*second[:other], END] if seconds is not None else [])])
            firsts.append(one + 2)
        return cls(Ragged.of(rows), np.array(firsts, dtype=np.int64), cut)

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: np.ndarray, labels: np.ndarray) -> TextBatch:
        tokens = self.rows.padded(indices)
        lengths, firsts = self.rows.lengths[indices], self.firsts[indices]
        place = np.arange(tokens.shape[1])
        segments = (place >= firsts[:, None]) & (place < lengths[:, None])
        return TextBatch(
            tokens_BT=torch.from_numpy(tokens),
            mask_BT=padding_mask(tokens),
            segments_BT=torch.from_numpy(segments.astype(np.int64)) if segments.any() else None,
            labels_B=torch.from_numpy(labels[indices]),
        )


@dataclass(frozen=True)
class Words:
    """Sentences of words as ids; one that is longer than the encoder reads is several rows."""

    rows: Ragged
    """<s>, the pieces of all words, </s>."""
    begins: Ragged
    """For each row, at which positions its words begin."""
    counts: np.ndarray
    """For each sentence, how many rows it is."""

    @classmethod
    def of(
        cls, vocabulary: Vocabulary, sentences: Sequence[Sequence[str]], spaces: Sequence[Sequence[bool]], context: int
    ) -> "Words":
        texts = [
            " " * space + word
            for words, before in zip(sentences, spaces, strict=True)
            for word, space in zip(words, before, strict=True)
        ]
        pieces = iter(vocabulary.encode(texts, continues=True))
        rows: list[list[int]] = []
        begins: list[list[int]] = []
        counts = []
        for words in sentences:
            before = len(rows)
            row, places = [BEGIN], list[int]()
            for _ in words:
                ids = next(pieces)[: context - 2] or [END]  # a word of no pieces still needs a place to be tagged at
                if len(row) + len(ids) + 1 > context:
                    rows.append([*row, END])
                    begins.append(places)
                    row, places = [BEGIN], []
                places.append(len(row))
                row += ids
            rows.append([*row, END])
            begins.append(places)
            counts.append(len(rows) - before)
        return cls(Ragged.of(rows), Ragged.of(begins), np.array(counts, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, indices: np.ndarray, labels: Ragged | None = None) -> TaggedBatch:
        """`labels` are the tags of every row's words."""
        tokens = self.rows.padded(indices)
        words = np.zeros(tokens.shape, dtype=bool)
        for row, index in enumerate(indices):
            words[row, self.begins[index]] = True
        found = np.concatenate([labels[index] for index in indices]) if labels is not None else np.zeros(0)
        return TaggedBatch(
            tokens_BT=torch.from_numpy(tokens),
            mask_BT=padding_mask(tokens),
            words_BT=torch.from_numpy(words),
            labels_N=torch.from_numpy(found.astype(np.int64)),
        )


def _fitted(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of two texts fits: the longer one is cut first."""
    if first + second <= room:
        return first, second
    shorter = min(first, second, room // 2)
    return (room - shorter, shorter) if first > second else (shorter, room - shorter)

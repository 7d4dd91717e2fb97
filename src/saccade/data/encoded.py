"""Texts, pairs of texts and sentences of words as an encoder reads them: ids, marks, padded rows; in NumPy alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saccade.data.ragged import Ragged, real_positions
from saccade.sources.pair import pair_row, segments_of
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class TextArrays:
    """`<s> text </s>`, or `<s> text </s> second </s>`, as padded rows."""

    tokens_BT: np.ndarray
    mask_BT: np.ndarray | None
    """True where there is something; None when no row is padded."""
    segments_BT: np.ndarray | None
    """0 up to the first </s>, 1 after it; None where there are no second texts."""


@dataclass(frozen=True)
class WordArrays:
    """`<s> words </s>` as padded rows, and which tokens begin a word."""

    tokens_BT: np.ndarray
    mask_BT: np.ndarray | None
    """True where there is something; None when no row is padded."""
    words_BT: np.ndarray


@dataclass(frozen=True)
class Texts:
    """Texts or pairs of them as ids, marks included, at most as long as the encoder reads."""

    rows: Ragged
    firsts: np.ndarray
    """How long the part up to the first </s> is."""
    cut: int
    """How many texts were too long, and lost their end."""
    marks: Marks

    @classmethod
    def of(cls, vocabulary: Vocabulary, texts: Sequence[str], seconds: Sequence[str] | None, context: int) -> "Texts":
        first_ids = vocabulary.encode(texts)
        second_ids = vocabulary.encode(seconds) if seconds is not None else [None] * len(texts)
        rows, firsts, cut = [], [], 0
        for first, second in zip(first_ids, second_ids, strict=True):
            row, length = pair_row(first, second, context, vocabulary.marks)
            cut += len(row) < len(first) + 2 + (0 if second is None else len(second) + 1)
            rows.append(row)
            firsts.append(length)
        return cls(Ragged.of(rows), np.array(firsts, dtype=np.int64), cut, vocabulary.marks)

    def __len__(self) -> int:
        return len(self.rows)

    def arrays(self, indices: np.ndarray) -> TextArrays:
        tokens = self.rows.padded(indices, pad=self.marks.pad)
        return TextArrays(
            tokens_BT=tokens,
            mask_BT=real_positions(tokens, self.marks.pad),
            segments_BT=segments_of(self.firsts[indices], self.rows.lengths[indices], tokens.shape[1]),
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
    marks: Marks

    @classmethod
    def of(
        cls, vocabulary: Vocabulary, sentences: Sequence[Sequence[str]], spaces: Sequence[Sequence[bool]], context: int
    ) -> "Words":
        begin, end = vocabulary.marks.begin, vocabulary.marks.end
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
            row, places = [begin], list[int]()
            for _ in words:
                ids = next(pieces)[: context - 2] or [end]  # a word of no pieces still needs a place to be tagged at
                if len(row) + len(ids) + 1 > context:
                    rows.append([*row, end])
                    begins.append(places)
                    row, places = [begin], []
                places.append(len(row))
                row += ids
            rows.append([*row, end])
            begins.append(places)
            counts.append(len(rows) - before)
        return cls(Ragged.of(rows), Ragged.of(begins), np.array(counts, dtype=np.int64), vocabulary.marks)

    def __len__(self) -> int:
        return len(self.rows)

    def arrays(self, indices: np.ndarray) -> WordArrays:
        tokens = self.rows.padded(indices, pad=self.marks.pad)
        words = np.zeros(tokens.shape, dtype=bool)
        for row, index in enumerate(indices):
            words[row, self.begins[index]] = True
        return WordArrays(tokens_BT=tokens, mask_BT=real_positions(tokens, self.marks.pad), words_BT=words)

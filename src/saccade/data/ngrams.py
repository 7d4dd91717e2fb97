"""Texts -> weighted n-grams of words and letters (TF-IDF); what a linear model reads. In NumPy alone.

The n-grams are scikit-learn's: `TfidfVectorizer(sublinear_tf=True)` of words 1-2 and of letters 2-5 inside words, each
scaled to length 1, gives the same numbers (a test holds this). An n-gram is known by a hash of 32 bits, so that what a
model keeps is three plain arrays.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Kind = str
"""words, or letters; of the second text of a pair, second words, second letters."""
_WORD = re.compile(r"(?u)\b\w+\b")
SHORTEST, LONGEST = 2, 5
"""Letters in an n-gram."""


def word_ngrams(text: str) -> Iterator[str]:
    """Single words and pairs of neighbours. Words of one letter too: I and a matter to grammar."""
    words = _WORD.findall(text.lower())
    yield from words
    yield from (f"{one} {other}" for one, other in pairwise(words))


def letter_ngrams(text: str) -> Iterator[str]:
    """Runs of 2 to 5 letters inside words; a word has a space on either side."""
    for word in text.lower().split():
        padded = f" {word} "
        for length in range(SHORTEST, LONGEST + 1):
            for start in range(max(1, len(padded) - length + 1)):
                yield padded[start : start + length]
            if length >= len(padded):
                break  # the whole word once


KINDS: dict[Kind, Callable[[str], Iterator[str]]] = {"words": word_ngrams, "letters": letter_ngrams}


@dataclass(frozen=True)
class Sparse:
    """Rows of which most numbers are 0, one after the other."""

    places: np.ndarray
    """The feature of each number that is not 0."""
    values: np.ndarray
    ends: np.ndarray
    """Where each row ends."""

    @property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], self.ends[:-1]])


def counted(texts: Sequence[str], seconds: Sequence[str] | None, kind: Kind) -> list[Counter[int]]:
    """How often each n-gram of this kind, known by its hash, is in each text. Those of a second text are others."""
    ngrams = KINDS[kind]
    rows = [Counter(_hashed(ngrams(text))) for text in texts]
    if seconds is not None:
        for row, second in zip(rows, seconds, strict=True):
            row.update(_hashed(f"\t{ngram}" for ngram in ngrams(second)))
    return rows


def _hashed(ngrams: Iterator[str]) -> Iterator[int]:
    return (zlib.crc32(ngram.encode("utf-8", "surrogatepass")) for ngram in ngrams)


@dataclass(frozen=True)
class Ngrams:
    """The n-grams of one kind that a model knows."""

    kind: Kind
    keys: np.ndarray
    """Their hashes, rising, uint32."""
    rarity: np.ndarray
    """The inverse document frequency of each: ln((1 + texts) / (1 + texts with it)) + 1, float32."""

    @classmethod
    def learn(cls, kind: Kind, rows: Sequence[Counter[int]], most: int) -> "Ngrams":
        """Of training texts, those that are in the most texts, `most` at most."""
        found: Counter[int] = Counter()
        for row in rows:
            found.update(row.keys())
        # Of equally frequent ones, those with the smaller hash, so that the same texts give the same model.
        kept = sorted(sorted(found), key=lambda key: -found[key])[:most]
        keys = np.array(sorted(kept), dtype=np.uint32)
        counts = np.array([found[key] for key in keys.tolist()], dtype=np.float64)
        return cls(kind, keys, (np.log((1 + len(rows)) / (1 + counts)) + 1).astype(np.float32))

    def __len__(self) -> int:
        return len(self.keys)

    def weigh(self, rows: Sequence[Counter[int]]) -> Sparse:
        """(1 + ln count) · rarity of each known n-gram, each row scaled to length 1."""
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        keys = np.fromiter((key for row in rows for key in row), dtype=np.uint32, count=int(lengths.sum()))
        counts = np.fromiter((n for row in rows for n in row.values()), dtype=np.float64, count=len(keys))
        row_of = np.repeat(np.arange(len(rows)), lengths)
        places = np.searchsorted(self.keys, keys)
        known = np.zeros(len(keys), dtype=bool)
        if len(self.keys):
            known = self.keys[np.minimum(places, len(self.keys) - 1)] == keys
        places, row_of = places[known], row_of[known]
        values = (1 + np.log(counts[known])) * self.rarity[places]
        squares = np.bincount(row_of, weights=values**2, minlength=len(rows))
        values /= np.sqrt(squares)[row_of]
        return Sparse(places, values.astype(np.float32), np.cumsum(np.bincount(row_of, minlength=len(rows))))

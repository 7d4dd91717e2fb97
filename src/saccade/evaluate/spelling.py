"""Scores of spelling correction: right words, misspellings corrected, right words spoilt.

A word is what stands between spaces, punctuation and case included. It is right where it is the same as in the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saccade.data.misspell import distance
from saccade.evaluate.classes import BOOTSTRAP, SEED
from saccade.evaluate.metrics import Score

LETTER, WORD = 1, 1_000_000
"""Of two alignments with equally many wrong words, the one with fewer wrong letters counts."""


def ratio_score(
    name: str, counts_N2: np.ndarray, signature: str, *, bootstrap: int = BOOTSTRAP, scale: float = 1.0
) -> Score:
    """The sum of all parts over the sum of all wholes, times `scale`; the bootstrap interval resamples rows."""
    part, whole = counts_N2.sum(0)
    if not whole:
        raise ValueError(f"{name}: nothing to count")
    digits = 4 if scale == 1 else 2
    if bootstrap < 2:
        return Score(name, float(scale * part / whole), None, signature, digits)
    # Resampling rows equals resampling the distinct kinds of rows, which are few.
    kinds_K2, often_K = np.unique(counts_N2, axis=0, return_counts=True)
    drawn_RK = np.random.default_rng(SEED).multinomial(len(counts_N2), often_K / len(counts_N2), size=bootstrap)
    drawn_R2 = drawn_RK @ kinds_K2
    drawn_R2 = drawn_R2[drawn_R2[:, 1] > 0]
    low, high = np.percentile(scale * drawn_R2[:, 0] / drawn_R2[:, 1], [2.5, 97.5])
    signature = f"{signature}|bs:{bootstrap}|seed:{SEED}"
    return Score(name, float(scale * part / whole), float(high - low) / 2, signature, digits)


# WordAlignment of words


@dataclass(frozen=True)
class WordAlignment:
    """What a text has of the truth's words."""

    right: list[bool]
    """Of each word of the truth, whether the text has it there."""
    extra: list[int]
    """How many words the text has that are none of the truth's: before each of these, and behind the last."""


def align(text: str, truth: str) -> WordAlignment:
    """Align the words of text and truth with the fewest insertions, deletions and substitutions.

    Words may be lost, split, joined or invented; the words around them are still aligned.
    """
    words, truths = text.split(), truth.split()
    shared = min(len(words), len(truths))
    front = next((place for place in range(shared) if words[place] != truths[place]), shared)
    shared -= front
    behind = next((place for place in range(shared) if words[-1 - place] != truths[-1 - place]), shared)
    middle = _align_words(words[front : len(words) - behind], truths[front : len(truths) - behind])
    return WordAlignment(
        [True] * front + middle.right + [True] * behind,
        [0] * front + middle.extra + [0] * behind,
    )


def _align_words(words: list[str], truths: list[str]) -> WordAlignment:
    cost = [[0] * (len(words) + 1) for _ in range(len(truths) + 1)]
    came = [[(0, 0)] * (len(words) + 1) for _ in range(len(truths) + 1)]
    for i in range(len(truths) + 1):
        for j in range(len(words) + 1):
            ways = []
            if i and j:
                ways.append((cost[i - 1][j - 1] + _price(words[j - 1], truths[i - 1]), (1, 1)))
            if i:
                ways.append((cost[i - 1][j] + WORD + LETTER * len(truths[i - 1]), (1, 0)))
            if j:
                ways.append((cost[i][j - 1] + WORD + LETTER * len(words[j - 1]), (0, 1)))
            if ways:
                cost[i][j], came[i][j] = min(ways, key=lambda way: way[0])
    right, extra = [False] * len(truths), [0] * (len(truths) + 1)
    i, j = len(truths), len(words)
    while i or j:
        down, across = came[i][j]
        if not down:
            extra[i] += 1
        elif across:
            right[i - 1] = words[j - 1] == truths[i - 1]
        i, j = i - down, j - across
    return WordAlignment(right, extra)


def _price(word: str, truth: str) -> int:
    return WORD + LETTER * distance(truth, word) if word != truth else 0


# Figures


@dataclass(frozen=True)
class Corrected:
    """Sentences as they were, as they came out, and as they should be, in counts of places.

    A place is a word of the truth, or one where a text has a word too many: such a place is wrong in a text that has
    the word, and right in one that has not. So a split word is two wrong places, and an invented word is one.
    """

    before_after_S22: np.ndarray
    """Of each sentence the places that were wrong or right before (0, 1), by whether they are so after."""

    @classmethod
    def of(cls, sources: Sequence[str], outputs: Sequence[str], truths: Sequence[str]) -> "Corrected":
        if not len(sources) == len(outputs) == len(truths) > 0:
            raise ValueError(f"{len(sources)} sources, {len(outputs)} outputs, {len(truths)} truths")
        counts_S22 = np.zeros((len(truths), 2, 2), dtype=np.int64)
        for counts_22, *texts, truth in zip(counts_S22, sources, outputs, truths, strict=True):
            before, after = (align(text, truth) for text in texts)
            for was, became in zip(before.right, after.right, strict=True):
                counts_22[int(was), int(became)] += 1
            for had, has in zip(before.extra, after.extra, strict=True):
                both = min(had, has)
                counts_22[0, 0] += both
                counts_22[0, 1] += had - both
                counts_22[1, 0] += has - both
        return cls(counts_S22)

    @property
    def misspelt_share(self) -> float:
        """Of all places, those that were wrong before."""
        return float(self.before_after_S22[:, 0].sum() / self.before_after_S22.sum())

    def _score(self, name: str, part_S: np.ndarray, whole_S: np.ndarray, bootstrap: int) -> Score:
        counts_S2 = np.stack([part_S, whole_S], axis=1)
        signature = f"sentences:{len(counts_S2)}|words:{whole_S.sum()}"
        return ratio_score(name, counts_S2, signature, bootstrap=bootstrap)


def word_accuracy(corrected: Corrected, *, bootstrap: int = BOOTSTRAP) -> Score:
    """The share of words that are right in the output."""
    counts = corrected.before_after_S22
    return corrected._score("word accuracy", counts[:, :, 1].sum(1), counts.sum((1, 2)), bootstrap)


def correction_rate(corrected: Corrected, *, bootstrap: int = BOOTSTRAP) -> Score:
    """Of the words that were wrong, the share made right."""
    counts = corrected.before_after_S22
    return corrected._score("correction rate", counts[:, 0, 1], counts[:, 0].sum(1), bootstrap)


def introduction_rate(corrected: Corrected, *, bootstrap: int = BOOTSTRAP) -> Score:
    """Of the words that were right, the share made wrong."""
    counts = corrected.before_after_S22
    return corrected._score("introduction rate", counts[:, 1, 0], counts[:, 1].sum(1), bootstrap)


def spelling_scores(
    sources: Sequence[str], outputs: Sequence[str], truths: Sequence[str], *, bootstrap: int = BOOTSTRAP
) -> list[Score]:
    """Those of the three that there is something to count for: clean texts have no correction rate."""
    corrected = Corrected.of(sources, outputs, truths)
    wrong, right = corrected.before_after_S22.sum((0, 2))
    metrics = [word_accuracy, *[correction_rate] * bool(wrong), *[introduction_rate] * bool(right)]
    return [metric(corrected, bootstrap=bootstrap) for metric in metrics]


def accuracy_at(
    candidates: Sequence[Sequence[str]], accepted: Sequence[Sequence[str]], count: int, *, bootstrap: int = BOOTSTRAP
) -> Score:
    """The share of misspellings of which one of the first `count` candidates is an accepted correction."""
    if len(candidates) != len(accepted):
        raise ValueError(f"{len(candidates)} lists of candidates, {len(accepted)} of accepted words")
    hits = [not set(some[:count]).isdisjoint(words) for some, words in zip(candidates, accepted, strict=True)]
    counts_N2 = np.stack([np.array(hits, dtype=np.int64), np.ones(len(hits), dtype=np.int64)], axis=1)
    return ratio_score(f"accuracy at {count}", counts_N2, f"misspellings:{len(hits)}", bootstrap=bootstrap)

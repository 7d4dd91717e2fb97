"""A list of words: whether a string is one of them, and which words are one or two edits away from it."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from saccade.data.misspell import distance

LETTERS = 27
"""a to z, and all else."""
SHORT = 5
"""Strings up to this length may differ by one edit, longer ones by two. Two edits match too many short words."""


class Lexicon:
    """`lexicon.near("contian", 5)`: contain, …"""

    def __init__(self, words: Iterable[str], price: float = 0.0) -> None:
        """`price`: what it costs to leave a string that is none of the words, in natural logarithms."""
        self.words = frozenset(words)
        self.price = price

    def has(self, word: str) -> bool:
        """Whether it is a word, also with 's at the end; case does not matter."""
        plain = word.lower().replace("’", "'")
        return plain in self.words or plain.removesuffix("'s") in self.words

    def knows(self, word: str, *, opens: bool) -> bool:
        """Whether a word may be kept without a cost: a word of the list, a single letter, or a name. A capital does not
        count if the word `opens` a text."""
        return self.has(word) or len(word) == 1 or (not opens and not word[0].islower())

    @cached_property
    def _counted(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """The words in order, their lengths and letter counts. Computed on first use: most texts have no unknown word,
        and 25,000 words take time."""
        ordered = sorted(self.words)
        lengths = np.array([len(word) for word in ordered], dtype=np.int16)
        return ordered, lengths, np.array([_bag(word) for word in ordered], dtype=np.int8).reshape(-1, LETTERS)

    def near(self, string: str, most: int) -> list[str]:
        """The nearest words to a string in lower case, at most `most` of them."""
        ordered, lengths, bags = self._counted
        slips = 1 if len(string) <= SHORT else 2
        # An edit changes at most two letter counts by one each, and the length by one.
        alike = np.abs(bags - _bag(string)).sum(axis=1) <= 2 * slips
        alike &= np.abs(lengths - len(string)) <= slips
        found = [(distance(ordered[i], string), ordered[i]) for i in np.flatnonzero(alike)]
        return [word for far, word in sorted(found) if 0 < far <= slips][:most]


def _bag(word: str) -> np.ndarray:
    """How often each letter is in it."""
    places = [ord(letter) - ord("a") if "a" <= letter <= "z" else LETTERS - 1 for letter in word]
    return np.bincount(places, minlength=LETTERS).clip(max=100).astype(np.int8)

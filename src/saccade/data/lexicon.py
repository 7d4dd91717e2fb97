"""A list of words: whether a string is one of them, and which of them are a slip or two away from it."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from saccade.data.misspell import distance

LETTERS = 27
"""a to z, and all else."""
SHORT = 5
"""Strings of so many letters may be off by one slip, longer ones by two: of short ones, too many words are two away."""


class Lexicon:
    """`lexicon.near("contian", 5)`: contain, …"""

    def __init__(self, words: Iterable[str], price: float = 0.0) -> None:
        """`price`: what it costs to leave a string that is none of the words, in natural logarithms."""
        self.words = frozenset(words)
        self.price = price

    def has(self, word: str) -> bool:
        """Whether it is a word, if only with 's behind it; case does not matter."""
        plain = word.lower().replace("’", "'")
        return plain in self.words or plain.removesuffix("'s") in self.words

    def knows(self, word: str, *, opens: bool) -> bool:
        """Whether a word may be left without a price: one of the list, a single letter, or a name. A capital says
        nothing where a text `opens`."""
        return self.has(word) or len(word) == 1 or (not opens and not word[0].islower())

    @cached_property
    def _counted(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """The words in order, their lengths, and how often each letter is in them: made when it is first asked what is
        near, for most texts hold no strange word, and 25,000 words take a while."""
        ordered = sorted(self.words)
        lengths = np.array([len(word) for word in ordered], dtype=np.int16)
        return ordered, lengths, np.array([_bag(word) for word in ordered], dtype=np.int8).reshape(-1, LETTERS)

    def near(self, string: str, most: int) -> list[str]:
        """The nearest words to a string in lower case, at most `most` of them."""
        ordered, lengths, bags = self._counted
        slips = 1 if len(string) <= SHORT else 2
        # A slip changes at most two of the counts of letters by one each, and the length by one.
        alike = np.abs(bags - _bag(string)).sum(axis=1) <= 2 * slips
        alike &= np.abs(lengths - len(string)) <= slips
        found = [(distance(ordered[i], string), ordered[i]) for i in np.flatnonzero(alike)]
        return [word for far, word in sorted(found) if 0 < far <= slips][:most]


def _bag(word: str) -> np.ndarray:
    """How often each letter is in it."""
    places = [ord(letter) - ord("a") if "a" <= letter <= "z" else LETTERS - 1 for letter in word]
    return np.bincount(places, minlength=LETTERS).clip(max=100).astype(np.int8)

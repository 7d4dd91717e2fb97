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

    def __init__(self, words: Iterable[str], price: float = 0.0, *, rare: Iterable[str] = ()) -> None:
        """`price`: what it costs to leave a string that is no word, in natural logarithms; `rare`: words that are right
        where they stand, but are never put in the place of others; names among them have their capitals."""
        self.words, self.rare = frozenset(words), frozenset(rare)
        self.price = price

    def has(self, word: str) -> bool:
        """Whether it is one of the words that are written, also with 's at the end; case does not matter."""
        return _is_in(word, self.words)

    def knows(self, word: str, *, opens: bool) -> bool:
        """Whether a word may be kept without a cost: a word of the lists, a single letter, or a name. A capital does
        not count if the word `opens` a text."""
        return self.has(word) or self._is_rare(word) or len(word) == 1 or (not opens and not word[0].islower())

    def _is_rare(self, word: str) -> bool:
        """Names are in the list with their capitals: "mae" is no word."""
        return _is_in(word, self.rare) or word in self.rare or word.replace("’", "'").removesuffix("'s") in self.rare

    def halves(self, string: str) -> list[str]:
        """The ways to take a string in lower case for two words whose space was lost; only a and i are alone."""
        cuts = [(string[:place], string[place:]) for place in range(1, len(string))]
        return [f"{one} {other}" for one, other in cuts if self._is_half(one) and self._is_half(other)]

    def _is_half(self, string: str) -> bool:
        return string in self.words and (len(string) > 1 or string in ("a", "i"))

    @cached_property
    def _counted(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """The words in order, their lengths and letter counts. Computed on first use: most texts have no unknown
        word."""
        ordered = sorted(self.words)
        lengths_N = np.array([len(word) for word in ordered], dtype=np.int64)
        # All letters of all words at once: word by word, 25,000 take a third of a second.
        letters = np.frombuffer("".join(ordered).encode("utf-32-le"), dtype=np.uint32).astype(np.int64) - ord("a")
        letters[(letters < 0) | (letters >= LETTERS - 1)] = LETTERS - 1
        owners = np.repeat(np.arange(len(ordered)), lengths_N)
        bags = np.bincount(owners * LETTERS + letters, minlength=len(ordered) * LETTERS).clip(max=100)
        return ordered, lengths_N.astype(np.int16), bags.astype(np.int8).reshape(-1, LETTERS)

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


def _is_in(word: str, words: frozenset[str]) -> bool:
    plain = word.lower().replace("’", "'")
    return plain in words or plain.removesuffix("'s") in words

"""What is written in drawn pictures: words of a list in all cases, numbers, marks, strings of letters without sense."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

ALPHABET = "".join(map(chr, range(33, 127)))
"""What a reader of drawn words can write: the visible characters of ASCII."""
MARKS = ".,!?:;-'\"&/()%$#@+*="
LONGEST = 24
"""Letters of a word."""
COMMON = 0.5
"""Words of a length are drawn by their rank to this power: rare ones often enough."""
LENGTHS = (2, 5, 9, 13, 14, 13, 12, 10, 8, 5, 3, 2, 2, 1, 1)
"""How often words of 1, 2, 3 … letters are drawn: as signs have them, and long ones often enough; the last number is
that of all longer words."""
CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"


@dataclass(frozen=True)
class WordTexts:
    """Words that may be drawn, the common ones first."""

    words: Sequence[str]

    @cached_property
    def _by_length(self) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in LENGTHS]
        for word in self.words:
            found[min(len(word), len(LENGTHS)) - 1].append(word)
        return found

    @cached_property
    def _chances(self) -> list[float]:
        """Up to which of all draws each length is taken; lengths that no word has are not."""
        weights = np.array([often * bool(words) for often, words in zip(LENGTHS, self._by_length, strict=True)])
        return [float(chance) for chance in np.cumsum(weights / weights.sum())]

    def __call__(self, random: np.random.Generator) -> str:
        """One text of at most LONGEST letters."""
        kind = random.random()
        if kind < 0.72:
            text = self._word(random)
        elif kind < 0.84:
            text = _number(random)
        elif kind < 0.94:
            text = _senseless(random)
        else:
            text = _with_marks(self._word(random), random)
        return text[:LONGEST]

    def _word(self, random: np.random.Generator) -> str:
        length = min(bisect_left(self._chances, random.random()), len(LENGTHS) - 1)
        words = self._by_length[length]
        text, case = words[int(len(words) * random.random() ** (1 / COMMON))], random.random()
        return text.upper() if case < 0.45 else text[:1].upper() + text[1:] if case < 0.68 else text


def _number(random: np.random.Generator) -> str:
    digits = _letters(DIGITS, random, 1, 8)
    forms = (digits, f"{digits[:2]}.{digits[2:]}" if len(digits) > 2 else digits, f"${digits}", f"{digits}%",
             f"{digits[:2]}:{digits[2:4]}" if len(digits) > 3 else digits, f"{digits[:1]},{digits[1:]}",
             f"{digits[:3]}-{digits[3:]}", f"{digits[:2]}/{digits[2:4]}", f"#{digits}",
             f"{digits}{'abkmxKMX'[int(random.integers(8))]}", f"{_letters(CAPITALS, random, 1, 4)}{digits}",
             f"{digits}{('st', 'nd', 'rd', 'th', 'am', 'PM')[int(random.integers(6))]}")  # fmt: skip
    return forms[0] if random.random() < 0.5 else forms[int(random.integers(len(forms)))].rstrip(".,:-/")


def _senseless(random: np.random.Generator) -> str:
    """Capitals, small letters or all characters: what no language model can guess."""
    kinds = (CAPITALS, CAPITALS + DIGITS, CAPITALS.lower(), ALPHABET)
    return _letters(kinds[int(random.choice(4, p=[0.3, 0.25, 0.3, 0.15]))], random, 1, 9)


def _with_marks(word: str, random: np.random.Generator) -> str:
    mark = MARKS[int(random.integers(len(MARKS)))]
    ending = ("com", "org", "net", "co.uk")[int(random.integers(4))]
    forms = (word + mark, f"{word}.", f"({word})", f'"{word}"', mark + word, f"www.{word}.{ending}".lower())
    return forms[int(random.choice(6, p=[0.35, 0.25, 0.1, 0.1, 0.1, 0.1]))]


def _letters(known: str, random: np.random.Generator, least: int, end: int) -> str:
    return "".join(known[place] for place in random.integers(0, len(known), int(random.integers(least, end))))

"""What is written in drawn pictures: words of a list in all cases, numbers, marks, strings of letters without sense."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ALPHABET = "".join(map(chr, range(33, 127)))
"""What a reader of drawn words can write: the visible characters of ASCII."""
MARKS = ".,!?:;-'\"&/()%$#@+*="
LONGEST = 24
"""Letters of a word."""
COMMON = 0.5
"""Words are drawn by their rank to this power: rare ones often enough."""


@dataclass(frozen=True)
class WordTexts:
    """Words that may be drawn, the common ones first."""

    words: Sequence[str]

    def __call__(self, random: np.random.Generator) -> str:
        """One text of at most LONGEST letters."""
        kind = random.random()
        if kind < 0.72:
            text = self._word(random)
        elif kind < 0.86:
            text = _number(random)
        elif kind < 0.95:
            text = _senseless(random)
        else:
            text = _with_marks(self._word(random), random)
        return text[:LONGEST]

    def _word(self, random: np.random.Generator) -> str:
        place = int(len(self.words) * random.random() ** (1 / COMMON))
        text, case = self.words[place], random.random()
        return text.upper() if case < 0.35 else text[:1].upper() + text[1:] if case < 0.6 else text


def _number(random: np.random.Generator) -> str:
    digits = "".join(map(str, random.integers(0, 10, int(random.integers(1, 7)))))
    forms = (digits, f"{digits[:2]}.{digits[2:]}" if len(digits) > 2 else digits, f"${digits}", f"{digits}%",
             f"{digits[:2]}:{digits[2:4]}" if len(digits) > 3 else digits, f"{digits[:1]},{digits[1:]}",
             f"{digits}{'abkmxKMX'[int(random.integers(8))]}", f"#{digits}")  # fmt: skip
    return forms[0] if random.random() < 0.5 else forms[int(random.integers(len(forms)))].rstrip(".,:")


def _senseless(random: np.random.Generator) -> str:
    """Capitals, small letters or all characters: what no language model can guess."""
    kinds = ("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "abcdefghijklmnopqrstuvwxyz", ALPHABET)
    letters = kinds[int(random.choice(3, p=[0.5, 0.3, 0.2]))]
    return "".join(letters[place] for place in random.integers(0, len(letters), int(random.integers(1, 10))))


def _with_marks(word: str, random: np.random.Generator) -> str:
    mark = MARKS[int(random.integers(len(MARKS)))]
    return (word + mark, f"({word})", f'"{word}"', mark + word)[int(random.choice(4, p=[0.7, 0.1, 0.1, 0.1]))]

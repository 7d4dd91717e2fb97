"""Words that are known to be right, whether or not a model has met them: SCOWL's by level, wordfreq's by frequency.

Frequency lists hold common misspellings too, so what a list of misspellings has is left out, but for plain words such
as "form", which are listed because they are typed for others.
"""

import gzip
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from saccade.config import Record
from saccade.data.text import find
from saccade.errors import UserError

SHORT = 3
"""Strings up to this length are in every frequency list, as abbreviations or slips."""
COMMON = 50
"""Up to this level of SCOWL a word is known even if a list says that it is a misspelling of another."""


class Dictionaries(Record):
    """Files of words, and how far down each is believed."""

    levels: str = Field("wordlist/scowl_levels.tsv.gz", min_length=1)
    """TSV of words and the size of the smallest dictionary that has them, from 10 (every one) to 95."""
    max_level: int = Field(70, ge=10, le=95)
    """Largest dictionary whose words are known."""
    frequencies: str = Field("wordlist/wordfreq_en_large.tsv.gz", min_length=1)
    """TSV of words and how large a share of all words each is."""
    min_frequency: float = Field(1e-7, gt=0, le=1)
    """Words from this frequency on are known."""
    min_frequency_short: float = Field(1e-6, gt=0, le=1)
    """The same for words of up to three letters."""

    @property
    def files(self) -> list[str]:
        return [self.levels, self.frequencies]


@dataclass(frozen=True)
class KnownWords:
    """What the lists say."""

    words: set[str]
    """Words that are right: in lower case, or as they are written if they are names and abbreviations only."""
    wrong: set[str]
    """Those of the misspellings that are no common words."""

    @classmethod
    def read(cls, lists: Dictionaries, folders: Sequence[Path], misspellings: Collection[str]) -> "KnownWords":
        """`misspellings` in lower case."""
        plain: dict[str, float] = {}
        capital: dict[str, tuple[str, float]] = {}
        for word, level in _rows(find(lists.levels, folders)):
            if word.islower():
                plain[word] = min(level, plain.get(word, level))
            elif level < capital.get(word.lower(), ("", 100.0))[1]:
                capital[word.lower()] = word, level
        known = {word for word, level in plain.items() if level <= lists.max_level}
        known |= {word for low, (word, level) in capital.items() if level <= lists.max_level and low not in known}
        for word, frequency in _rows(find(lists.frequencies, folders)):
            if frequency >= (lists.min_frequency_short if len(word) <= SHORT else lists.min_frequency):
                known.add(capital[word][0] if word in capital and word not in plain else word)
        wrong = {word for word in misspellings if plain.get(word, 100) > COMMON}
        return cls({word for word in known - wrong if _is_word(word)}, wrong)


def _rows(file: Path) -> Iterator[tuple[str, float]]:
    try:
        with gzip.open(file, "rt", encoding="utf-8") as opened:
            for number, line in enumerate(opened, 1):
                word, *more = line.rstrip("\n").split("\t")
                try:
                    yield word.replace("’", "'"), float(more[0])
                except (IndexError, ValueError):
                    raise UserError(f"{file}, line {number}: not a word, a tab and a number") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None


def _is_word(word: str) -> bool:
    """Letters and apostrophes: what the corrector takes for words."""
    return word.replace("'", "").isalpha()

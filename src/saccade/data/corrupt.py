"""Text with words hidden, to be guessed again: what masked models are pre-trained on (Devlin et al. 2018, 3.1)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.tokens.marks import END
from saccade.tokens.vocabulary import Vocabulary


class MaskingConfig(Record):
    """How much is hidden, and how."""

    share: float = Field(0.15, gt=0, lt=1)
    """Of the tokens, marks not counted, this share is to be guessed."""
    masked: float = Field(0.8, ge=0, le=1)
    """Of those, this share is replaced by the mask; of the rest, half by a random token, half stays as it is."""
    whole_words: bool = False
    """All pieces of a word are hidden together."""
    masking: Literal["dynamic", "static"] = "dynamic"
    """dynamic: other words in every epoch (RoBERTa); static: ten ways to hide, in turn (BERT)."""


@dataclass(frozen=True)
class Hider:
    """Hides tokens of rows; what it draws depends on the generator it is handed, and on nothing else."""

    config: MaskingConfig
    mask: int
    """The id of the mask; all ids between the marks and it are words."""
    begins_V: np.ndarray
    """Which ids begin a word."""

    @classmethod
    def of(cls, config: MaskingConfig, vocabulary: Vocabulary) -> "Hider":
        return cls(config, len(vocabulary), word_beginnings(vocabulary))

    def hide(self, row: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The row as it is read, and which of its tokens are to be guessed: a fixed share, at least one."""
        chosen = self._choose(row, random)
        read = row.copy()
        places = np.flatnonzero(chosen)
        fate = random.random(len(places))
        masked = self.config.masked
        read[places[fate < masked]] = self.mask
        replaced = places[(fate >= masked) & (fate < (1 + masked) / 2)]
        read[replaced] = random.integers(END + 1, self.mask, len(replaced))
        return read, chosen

    def _choose(self, row: np.ndarray, random: np.random.Generator) -> np.ndarray:
        chosen = np.zeros(len(row), dtype=bool)
        words = np.flatnonzero(row > END)
        if not len(words):
            return chosen
        wanted = max(1, round(self.config.share * len(words)))
        if not self.config.whole_words:
            chosen[random.permutation(words)[:wanted]] = True
            return chosen
        # A word goes on until a piece begins another, or a mark stands between.
        begins = self.begins_V[row[words]] | (np.diff(words, prepend=-1) > 1)
        begins[0] = True
        number = np.cumsum(begins) - 1
        sizes = np.bincount(number)
        order = random.permutation(len(sizes))
        # Words in random order, as many as come nearest to the share.
        count = max(1, int(np.searchsorted(np.cumsum(sizes[order]), wanted, side="right")))
        chosen[words[np.isin(number, order[:count])]] = True
        return chosen


def word_beginnings(vocabulary: Vocabulary) -> np.ndarray:
    """For every id, whether it begins a word: its text begins with a space, or with no letter or digit."""
    texts = vocabulary.pieces(range(len(vocabulary)))
    return np.array([i <= END or not text[:1].isalnum() for i, text in enumerate(texts)])

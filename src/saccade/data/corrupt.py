"""Masked text, for the pre-training of masked models (Devlin et al. 2018, 3.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import Vocabulary


class MaskingConfig(Record):
    """How much is masked, and how."""

    renamed: ClassVar[Mapping[str, str]] = {"masked": "mask_token_share"}

    share: float = Field(0.15, gt=0, lt=1)
    """Share of the tokens to predict, special tokens not counted."""
    mask_token_share: float = Field(0.8, ge=0, le=1)
    """Share of these that become the mask token. Of the rest, half become a random token and half stay unchanged."""
    whole_words: bool = False
    """Mask all pieces of a word together."""
    masking: Literal["dynamic", "static"] = "dynamic"
    """dynamic: new masks in every epoch (RoBERTa); static: ten fixed versions in turn (BERT)."""


@dataclass(frozen=True)
class Hider:
    """Masks tokens of rows. The result depends on the given generator only."""

    config: MaskingConfig
    marks: Marks
    text_ids: np.ndarray
    """What a random token is drawn from."""
    begins_V: np.ndarray
    """Which ids begin a word."""

    @classmethod
    def of(cls, config: MaskingConfig, vocabulary: Vocabulary) -> "Hider":
        return cls(config, vocabulary.marks, vocabulary.text_ids, word_beginnings(vocabulary))

    def hide(self, row: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The masked row, and which of its tokens to predict: a fixed share, at least one."""
        assert self.marks.mask is not None, "a vocabulary without a mask cannot hide"
        chosen = self._choose(row, random)
        read = row.copy()
        places = np.flatnonzero(chosen)
        fate = random.random(len(places))
        masked = self.config.mask_token_share
        read[places[fate < masked]] = self.marks.mask
        replaced = places[(fate >= masked) & (fate < (1 + masked) / 2)]
        read[replaced] = self.text_ids[random.integers(len(self.text_ids), size=len(replaced))]
        return read, chosen

    def _choose(self, row: np.ndarray, random: np.random.Generator) -> np.ndarray:
        chosen = np.zeros(len(row), dtype=bool)
        words = np.flatnonzero(~np.isin(row, list(self.marks.special)))
        if not len(words):
            return chosen
        wanted = max(1, round(self.config.share * len(words)))
        if not self.config.whole_words:
            chosen[random.permutation(words)[:wanted]] = True
            return chosen
        # A word ends where a piece begins another word, or at a special token.
        begins = self.begins_V[row[words]] | (np.diff(words, prepend=-1) > 1)
        begins[0] = True
        number = np.cumsum(begins) - 1
        sizes = np.bincount(number)
        order = random.permutation(len(sizes))
        # Words in random order, until their number of tokens is nearest to the share.
        count = max(1, int(np.searchsorted(np.cumsum(sizes[order]), wanted, side="right")))
        chosen[words[np.isin(number, order[:count])]] = True
        return chosen


def word_beginnings(vocabulary: Vocabulary) -> np.ndarray:
    """For every id, whether it begins a word: its text begins with a space, or with no letter or digit."""
    texts = vocabulary.pieces(range(len(vocabulary)))
    special = vocabulary.marks.special
    return np.array([i in special or not text[:1].isalnum() for i, text in enumerate(texts)])

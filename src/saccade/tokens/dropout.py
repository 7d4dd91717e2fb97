"""BPE dropout (Provilkov et al. 2020): merges are left out at random, so that a model meets a word cut in many ways."""

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from saccade.tokens.vocabulary import Vocabulary

VARIANTS = 32
"""Cuts that are drawn for a word; from then on one of these is chosen. Only frequent words have so many."""


class BpeDropout:
    """Cuts texts with dropout, for one copy of a training text.

    The `tokenizers` library has BPE dropout too, but draws from a generator that nobody can seed: two trainings with
    the same seed would read different tokens. A test compares the two.
    """

    def __init__(self, vocabulary: Vocabulary, rate: float, random: np.random.Generator) -> None:
        assert vocabulary.kind == "bpe", "other vocabularies have no merges to leave out"
        model = json.loads(vocabulary.tokenizer.to_str())["model"]
        self.ids: dict[str, int] = model["vocab"]
        self.ranks = {(left, right): rank for rank, (left, right) in enumerate(model["merges"])}
        self.split = vocabulary.tokenizer.pre_tokenizer.pre_tokenize_str
        self.before, self.rate, self.random = vocabulary.before, rate, random.random
        self.cuts: dict[str, list[list[int]]] = {}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the texts; decoded, they are the same texts."""
        return [[i for word, _ in self.split(self.before + text) for i in self._ids(word)] for text in texts]

    def _ids(self, word: str) -> list[int]:
        cuts = self.cuts.setdefault(word, [])
        if len(cuts) == VARIANTS:
            return cuts[int(self.random() * VARIANTS)]
        cuts.append([self.ids[piece] for piece in self.cut(word)])
        return cuts[-1]

    def cut(self, word: str) -> list[str]:
        """Algorithm 1 of the paper: of the merges that are possible and not left out this time, do the first."""
        pieces = list(word)
        while True:
            possible = [
                (self.ranks[pair], place)
                for place, pair in enumerate(pairwise(pieces))
                if pair in self.ranks and self.random() >= self.rate
            ]
            if not possible:
                return pieces
            _, place = min(possible)
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]

"""BPE dropout (Provilkov et al. 2020): merges are left out at random, so that a model meets a word cut in many ways."""

import json
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from saccade.tokens.vocabulary import Vocabulary
from saccade.tokens.words import split_words

NEVER = 2**31
"""The rank of two pieces that no merge joins."""
VARIANTS = 16
"""Cuts that are drawn for a word; from then on one of these is chosen. Few words are so frequent."""
MOST_WORDS = 200_000
"""Words whose cuts are remembered."""


class BpeDropout:
    """Cuts texts with dropout.

    The `tokenizers` library has BPE dropout too, but draws from a generator that nobody can seed: two trainings with
    the same seed would read different tokens. A test compares the two.
    """

    def __init__(self, vocabulary: Vocabulary, rate: float, random: np.random.Generator) -> None:
        assert vocabulary.kind == "bpe", "other vocabularies have no merges to leave out"
        model = json.loads(vocabulary.tokenizer.to_str())["model"]
        self.ids: dict[str, int] = model["vocab"]
        self.ranks = {(left, right): rank for rank, (left, right) in enumerate(model["merges"])}
        self.spell = vocabulary.tokenizer.pre_tokenizer.pre_tokenize_str
        self.before, self.rate, self.random = vocabulary.before, rate, random.random
        self.cuts: dict[str, list[list[int]]] = {}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of the texts; decoded, they are the same texts."""
        return [self._encode(self.before + text) for text in texts]

    def _encode(self, text: str) -> list[int]:
        words = split_words(text)
        return self._new_cut(text) if words is None else list(chain.from_iterable(map(self._cut_of, words)))

    def _cut_of(self, word: str) -> list[int]:
        cuts = self.cuts.get(word)
        if cuts is not None and len(cuts) == VARIANTS:
            return cuts[int(self.random() * VARIANTS)]
        ids = self._new_cut(word)
        if cuts is not None:
            cuts.append(ids)
        elif len(self.cuts) < MOST_WORDS:
            self.cuts[word] = [ids]
        return ids

    def _new_cut(self, text: str) -> list[int]:
        return [self.ids[piece] for word, _ in self.spell(text) for piece in self.cut(word)]

    def cut(self, word: str) -> list[str]:
        """Algorithm 1 of the paper: of the merges that are possible and not left out this time, do the first."""
        pieces = list(word)
        ranks = [self.ranks.get(pair, NEVER) for pair in pairwise(pieces)]
        while ranks:
            # The first merge is nearly always the one; its place is found without sorting.
            place: int | None = ranks.index(min(ranks))
            if self.random() < self.rate:
                others = sorted(range(len(ranks)), key=ranks.__getitem__)[1:]
                place = next((other for other in others if self.random() >= self.rate), None)
            if place is None or ranks[place] == NEVER:
                return pieces
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
            ranks[max(0, place - 1) : place + 2] = [
                self.ranks.get(pair, NEVER) for pair in pairwise(pieces[max(0, place - 1) : place + 2])
            ]
        return pieces

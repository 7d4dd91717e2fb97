"""Training pairs in one or several copies, each augmented in its own way, encoded to flat arrays."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from saccade.data.augment import Augmenter
from saccade.data.ragged import Ragged
from saccade.data.sources import Mixture
from saccade.data.text import Pair
from saccade.errors import UserError
from saccade.tokens.dropout import BpeDropout
from saccade.tokens.vocabulary import Vocabulary
from saccade.tokens.words import WordCache

CHUNK = 10_000
"""Pairs that are encoded at once: the tokenizer's results take a hundred times the memory of the ids."""
DRAWING, AUGMENTING, DROPOUT = range(3)
"""Purposes of random numbers: each has a generator of its own."""


@dataclass(frozen=True)
class Copies:
    """The training pairs, `count` times; epoch e trains on copy e modulo `count`. The last `plain` are not augmented.

    Copies are made in advance, not while training: which batch comes next is then the whole state of a training.
    """

    mixture: Mixture
    augmenter: Augmenter | None = None
    count: int = 1
    plain: int = 1
    seed: int = 0

    def is_augmented(self, number: int) -> bool:
        return self.augmenter is not None and number < self.count - self.plain

    def plain_pairs(self, number: int) -> list[Pair]:
        """The pairs of a copy before augmentation, each source as often as it should be."""
        return [self.mixture.pairs[i] for i in self.mixture.draw(self._random(number, DRAWING)).tolist()]

    def copy(self, number: int) -> Iterator[Pair]:
        """The lines of a copy. An augmented one is shuffled first, so that joined neighbours are unrelated."""
        pairs = self.plain_pairs(number)
        if self.augmenter is None or not self.is_augmented(number):
            return iter(pairs)
        random = self._random(number, AUGMENTING)
        return self.augmenter((pairs[i] for i in random.permutation(len(pairs)).tolist()), random)

    def _random(self, number: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, purpose, number])


class PairEncoder:
    """Ids of pairs. Of an augmented copy a share of the pairs is cut with BPE dropout."""

    def __init__(self, vocabulary: Vocabulary, copies: Copies) -> None:
        self.vocabulary, self.copies = vocabulary, copies
        self.encode = WordCache(vocabulary).encode if vocabulary.kind == "bpe" else vocabulary.encode
        self.read = self.encode if vocabulary.speller is None else vocabulary.read
        self.dropout: BpeDropout | None = None
        if copies.augmenter is not None and copies.augmenter.config.bpe_dropout:
            self.share = copies.augmenter.config.bpe_dropout_share
            self.random = np.random.default_rng([copies.seed, DROPOUT])
            self.dropout = BpeDropout(vocabulary, copies.augmenter.config.bpe_dropout, self.random)

    def __call__(self, pairs: Sequence[Pair], number: int) -> tuple[list[list[int]], list[list[int]]]:
        """Ids of both sides of pairs of a copy."""
        sources, targets = self.read([one for one, _ in pairs]), self.encode([other for _, other in pairs])
        if self.dropout is not None and self.copies.is_augmented(number):
            for place in np.flatnonzero(self.random.random(len(pairs)) < self.share).tolist():
                # Sources that are read as bytes have no merges.
                if self.vocabulary.speller is None:
                    (sources[place],) = self.dropout.encode(pairs[place][:1])
                (targets[place],) = self.dropout.encode(pairs[place][1:])
        assert len(sources) == len(targets) == len(pairs), "the sides of the pairs are no longer aligned"
        return sources, targets


def encode_copies(
    vocabulary: Vocabulary,
    copies: Copies,
    longest: int,
    report: Callable[[int, int], None] | None = None,
) -> dict[str, np.ndarray]:
    """All copies one after the other as ids in flat arrays.

    Pairs that are too long on a side are left out. `numbers` says which lines of their copy are there, `starts` where
    each copy begins, and `count` how many lines there were.
    """
    kind = np.uint16 if len(vocabulary) <= 2**16 else np.int32
    size = copies.mixture.size
    parts: dict[str, list[np.ndarray]] = {}
    starts, kept, count = [], 0, 0
    encode = PairEncoder(vocabulary, copies)
    for number in range(copies.count):
        starts.append(kept)
        lines, first = copies.copy(number), 0
        while pairs := list(islice(lines, CHUNK)):
            sources, targets = encode(pairs, number)
            fits = [i for i in range(len(pairs)) if len(sources[i]) <= longest and len(targets[i]) <= longest]
            for side, ids in (("source", sources), ("target", targets)):
                ragged = Ragged.of([ids[i] for i in fits])
                parts.setdefault(side, []).append(ragged.flat.astype(kind))
                parts.setdefault(f"{side}_lengths", []).append(ragged.lengths)
            parts.setdefault("numbers", []).append(first + np.array(fits, dtype=np.int64))
            first, kept = first + len(pairs), kept + len(fits)
            # Joined lines are fewer than the pairs they are made of.
            if report is not None:
                report(number * size + min(first, size), copies.count * size)
        if kept == starts[-1]:
            raise UserError(
                f"all {first} sentence pairs are longer than {longest} tokens; set data.longest_pair higher"
            )
        count += first
    arrays = {name: np.concatenate(chunks) for name, chunks in parts.items()}
    assert len(arrays["source_lengths"]) == len(arrays["target_lengths"]) == len(arrays["numbers"]) == kept
    return arrays | {"starts": np.array(starts), "count": np.array(count)}

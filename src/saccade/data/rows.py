"""Batches of rows for pre-training: new rows in every epoch, resumable at the exact next batch."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data.batches import padding_mask
from saccade.data.corrupt import Hider
from saccade.data.permute import PermutedBatch, permute
from saccade.data.sampler import Sampler, plan_epoch
from saccade.data.sentences import Corpus, Row, plan_rows
from saccade.tokens.marks import Marks

EPOCH = 2**40
"""A row's number is that of its epoch times this, and its place in the epoch's plan."""
WAYS = 10
"""Number of different plans for static rows, used in turn (Devlin et al. 2018 made ten copies of their data)."""


@dataclass(frozen=True)
class RowBatch:
    """`<s> first </s>` or `<s> first </s> second </s>`, as the corpus has them."""

    tokens_BT: Tensor
    mask_BT: Tensor | None
    """True at real positions; None if no row is padded."""
    segments_BT: Tensor | None
    """0 up to the first </s>, 1 after it; None when every row is one text."""
    next_sentence_B: Tensor
    """Whether the second text follows the first; UNKNOWN if there is no label."""
    numbers: np.ndarray


@dataclass(frozen=True)
class MaskedBatch(RowBatch):
    """Rows with masked words."""

    chosen_BT: Tensor
    """True at tokens to predict."""
    labels_N: Tensor
    """The original tokens at these positions, row after row."""


class Rows(Sampler):
    """Rows in batches of similar length; a batch holds numbers, from which `batch` makes the same rows again."""

    def __init__(
        self,
        corpus: Corpus,
        marks: Marks,
        *,
        context: int,
        budget: int,
        seed: int,
        next_sentence: bool = False,
        static: bool = False,
    ) -> None:
        self.corpus, self.marks = corpus, marks
        self.context, self.next_sentence, self.static = context, next_sentence, static
        self.plans: dict[int, list[Row]] = {}
        super().__init__(np.zeros(0), np.zeros(0), budget=budget, seed=seed)

    def _plan(self) -> list[np.ndarray]:
        rows = self._rows(self.epoch)
        self.source = self.target = np.array([_length(row) for row in rows])
        batches = plan_epoch(self.source, self.target, self.budget, self.seed, self.epoch)
        return [batch + self.epoch * EPOCH for batch in batches]

    def fill(self) -> tuple[float, float]:
        padded = sum(len(batch) * int(self.source[batch % EPOCH].max()) for batch in self.batches)
        share = int(self.source.sum()) / padded
        return share, share

    def batch(self, numbers: np.ndarray) -> RowBatch:
        """The rows of these numbers, without masks."""
        rows = [self._rows(int(number) // EPOCH)[int(number) % EPOCH] for number in numbers]
        flat, marks = self.corpus.sentences.flat, self.marks
        tokens = np.full((len(rows), max(map(_length, rows))), marks.pad, dtype=np.int64)
        segments = np.zeros_like(tokens)
        for place, row in enumerate(rows):
            first, second = (flat[start:stop] for start, stop in (row.first, row.second))
            line = [marks.begin, *first, marks.end, *([*second, marks.end] if len(second) else [])]
            tokens[place, : len(line)] = line
            segments[place, len(first) + 2 : len(line)] = 1
        return RowBatch(
            tokens_BT=torch.from_numpy(tokens),
            mask_BT=padding_mask(tokens, marks.pad),
            segments_BT=torch.from_numpy(segments) if segments.any() else None,
            next_sentence_B=torch.tensor([row.next_sentence for row in rows]),
            numbers=numbers,
        )

    def masked(self, numbers: np.ndarray, hider: Hider) -> MaskedBatch:
        """The rows of these numbers with masks; the same numbers give the same masks."""
        plain = self.batch(numbers)
        rows = plain.tokens_BT.numpy()
        hidden = [hider.hide(row, self.random(number)) for row, number in zip(rows, numbers, strict=True)]
        chosen_BT = torch.from_numpy(np.stack([chosen for _, chosen in hidden]))
        return MaskedBatch(
            tokens_BT=torch.from_numpy(np.stack([read for read, _ in hidden])),
            mask_BT=plain.mask_BT,
            segments_BT=plain.segments_BT,
            next_sentence_B=plain.next_sentence_B,
            numbers=numbers,
            chosen_BT=chosen_BT,
            labels_N=plain.tokens_BT[chosen_BT],
        )

    def permuted(self, numbers: np.ndarray) -> PermutedBatch:
        """The rows of these numbers, each in a random order, the last ones of it to be predicted."""
        plain = self.batch(numbers)
        return permute(plain.tokens_BT, self.random(int(numbers[0])), self.marks, starts=numbers)

    def random(self, number: int) -> np.random.Generator:
        """A row's own generator."""
        return np.random.default_rng([self.seed, 1, self._way(int(number) // EPOCH), int(number) % EPOCH])

    def _rows(self, epoch: int) -> list[Row]:
        way = self._way(epoch)
        if way not in self.plans:
            random = np.random.default_rng([self.seed, 0, way])
            longest = self.context - (3 if self.next_sentence else 2)
            # A step may hold the last batch of one epoch and the first of the next.
            newest = list(self.plans)[-1:]
            self.plans = {old: self.plans[old] for old in newest}
            self.plans[way] = plan_rows(self.corpus, longest, random, next_sentence=self.next_sentence)
        return self.plans[way]

    def _way(self, epoch: int) -> int:
        return epoch % WAYS if self.static else epoch


def _length(row: Row) -> int:
    first, second = row.first[1] - row.first[0], row.second[1] - row.second[0]
    return first + 2 + (second + 1 if second else 0)

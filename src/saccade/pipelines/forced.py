"""How likely a given output is, piece by piece: what a model says of a text that it is made to write."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from saccade.axes import Pieces
from saccade.decode.choose import log_sum_exp
from saccade.decode.hypothesis import Hypothesis, write_each
from saccade.errors import UserError, WrongUse
from saccade.runtime.contract import AnyArrayMemory, AnyDecoder, Floats
from saccade.tokens.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Forced:
    """The natural log of the probability of every piece of one output, given each of several inputs.

    An output is pieces of text, one class, or one tag for each word; the probability of a piece is that given the
    pieces before it.
    """

    pieces: Pieces
    """What the output is made of."""
    logprobs_IP: Floats
    """Of each input, of each piece."""

    def __post_init__(self) -> None:
        if self.logprobs_IP.shape[1] != len(self.pieces):
            raise ValueError(f"{self.logprobs_IP.shape[1]} log-probabilities of {len(self.pieces)} pieces")

    @property
    def total_I(self) -> Floats:
        """Of the whole output."""
        total: Floats = self.logprobs_IP.sum(axis=1)
        return total

    @property
    def chance_I(self) -> Floats:
        """The geometric mean of the pieces' probabilities, between 0 and 1 whatever the length."""
        mean: Floats = np.exp(self.logprobs_IP.mean(axis=1))
        return mean

    def only(self, places: Sequence[int]) -> "Forced":
        """Some of the pieces."""
        labels = tuple(self.pieces.labels[place] for place in places)
        return Forced(Pieces.letters(labels), self.logprobs_IP[:, list(places)])

    @classmethod
    def join(cls, parts: "Sequence[Forced]") -> "Forced":
        """Outputs one after the other."""
        labels = tuple(label for part in parts for label in part.pieces.labels)
        starts = np.cumsum([0, *(len(part.pieces) for part in parts)]).tolist()
        alone = tuple(start + place for start, part in zip(starts, parts, strict=False) for place in part.pieces.alone)
        return cls(Pieces(labels=labels, alone=alone), np.concatenate([part.logprobs_IP for part in parts], axis=1))


AT_ONCE = 64
"""Inputs that are read side by side."""


def forced_text(
    decoder: AnyDecoder, memory: AnyArrayMemory, rows: int, hypothesis: Hypothesis, vocabulary: Vocabulary
) -> Forced:
    """One text, given each of so many memories. Its end counts too, if the model ended it."""
    ids, marks = hypothesis.tokens, vocabulary.marks
    logits_ITV, _ = write_each(decoder, memory, [[marks.start, *ids]] * rows)
    targets = [*ids, marks.end] if hypothesis.finished else ids
    return Forced(Pieces.of(vocabulary, ids, end=hypothesis.finished), chosen_logprobs(logits_ITV, targets))


def chosen_logprobs(logits_ITV: Floats, targets: Sequence[int]) -> Floats:
    """[I, T]: the log-probability of the target at every place."""
    logits_ITV = logits_ITV[:, : len(targets)]
    flat = logits_ITV.reshape(-1, logits_ITV.shape[-1]).astype(np.float64)
    normal_IT = log_sum_exp(flat).reshape(logits_ITV.shape[:2])
    chosen_IT = np.take_along_axis(logits_ITV, np.array(targets, dtype=np.int64)[None, :, None], axis=2)[..., 0]
    found: Floats = chosen_IT - normal_IT
    return found


def in_batches(count: int, find: Callable[[slice], Forced]) -> Forced:
    """The same output for many inputs, some at once."""
    parts = [find(slice(first, min(first + AT_ONCE, count))) for first in range(0, count, AT_ONCE)]
    if not parts:
        raise WrongUse("no inputs are given")
    return Forced(parts[0].pieces, np.concatenate([part.logprobs_IP for part in parts]))


def only_part(count: int, what: str) -> None:
    """Inputs in the place of another are those of one sentence."""
    if count != 1:
        raise UserError(f"{count} {what}s: an explanation is of one {what}; give them one by one")

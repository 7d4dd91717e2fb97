"""What a search finds, and how texts are read before it begins."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saccade.runtime.contract import AnyArrayMemory, DecoderLike, Floats, S

NEVER = float("-inf")


@dataclass(frozen=True)
class Hypothesis:
    """One text a decoder wrote."""

    tokens: list[int]
    """Prefix included, begin and end marks left out."""
    logprob: float
    """Natural log of its probability: the sum over the tokens written after the prefix, the end mark included."""
    score: float
    """The log-probability with the length penalty: what hypotheses are ranked by."""
    finished: bool
    """False when the length limit cut it off."""


def length_penalty(length: int, alpha: float) -> float:
    """((5 + n) / 6)^α, so that long texts are not ranked last only for being long (Wu et al. 2016, 7)."""
    return float(((5 + length) / 6) ** alpha)


def write_all(
    decoder: DecoderLike[S], memory: AnyArrayMemory | None, texts: Sequence[Sequence[int]]
) -> tuple[Floats, S]:
    """Write texts of any lengths, one per memory; the logits [B, V] of what follows each, and the state."""
    return _write(decoder, memory, texts, every=False)


def write_each(
    decoder: DecoderLike[S], memory: AnyArrayMemory | None, texts: Sequence[Sequence[int]]
) -> tuple[Floats, S]:
    """Write texts of any lengths, one per memory; the logits [B, T, V] of what follows each token, meaningless past a
    text's end, and the state."""
    return _write(decoder, memory, texts, every=True)


def _write(
    decoder: DecoderLike[S], memory: AnyArrayMemory | None, texts: Sequence[Sequence[int]], *, every: bool
) -> tuple[Floats, S]:
    lengths_B = np.array([len(text) for text in texts])
    tokens_BT = np.zeros((len(texts), lengths_B.max()), dtype=np.int64)  # past a text's end any id will do
    for row, text in enumerate(texts):
        tokens_BT[row, : len(text)] = text
    state = decoder.start(memory, 1 if memory is not None else len(texts))
    return decoder.extend(tokens_BT, lengths_B, state, every=every)


def forbid(logits_BV: Floats, tokens: Sequence[int]) -> Floats:
    """Make some tokens impossible, in place: a decoder's logits belong to the search that asked for them."""
    for token in tokens:
        if token < logits_BV.shape[1]:
            logits_BV[:, token] = NEVER
    return logits_BV

"""What a search returns, and how it begins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade.decode.running import Writer
from saccade.tokens.marks import BEGIN, PAD

NEVER = float("-inf")
NEVER_WRITTEN = (PAD, BEGIN)


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


def begin(writer: Writer, memory: Any, prefixes: Sequence[Sequence[int]], rows: int) -> tuple[Any, Any]:
    """Write the begin mark and every prefix; the logits [B, V] that follow, and the state, each prefix `rows` times."""
    last_BV, state = write_all(writer, memory, [[BEGIN, *prefix] for prefix in prefixes])
    if rows == 1:
        return last_BV, state
    return last_BV[state.own(np.arange(len(prefixes)).repeat(rows))], state.repeat(rows)


def write_all(writer: Writer, memory: Any, texts: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Write texts of any lengths, one per memory; the logits [B, V] of what follows each, and the state."""
    logits_BTV, state = write_each(writer, memory, texts)
    last_B = np.array([len(text) - 1 for text in texts])
    return logits_BTV[state.own(np.arange(len(texts))), state.own(last_B)], state


def write_each(writer: Writer, memory: Any, texts: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """Write texts of any lengths, one per memory; the logits [B, T, V] of what follows each token, meaningless past a
    text's end, and the state."""
    lengths_B = np.array([len(text) for text in texts])
    tokens_BT = np.full((len(texts), lengths_B.max()), PAD, dtype=np.int64)
    for row, text in enumerate(texts):
        tokens_BT[row, : len(text)] = text
    state = writer.start(memory, 1 if memory is not None else len(texts))
    return writer.extend(state.own(tokens_BT), state.own(lengths_B), state)


def forbid(logits_BV: Any, tokens: Sequence[int]) -> Any:
    """Make some tokens impossible, in place: a decoder's logits belong to the search that asked for them."""
    for token in tokens:
        logits_BV[:, token] = NEVER
    return logits_BV

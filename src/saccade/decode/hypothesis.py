"""What a search returns, and how it begins."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.models.contract import Decoder, Memory, State
from saccade.tokens.marks import BEGIN, PAD

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


def begin(
    decoder: Decoder, memory: Memory | None, prefixes: Sequence[Sequence[int]], rows: int
) -> tuple[Tensor, State]:
    """Write the begin mark and every prefix; the logits [B, V] that follow, and the state, each prefix `rows` times."""
    last_BV, state = write_all(decoder, memory, [[BEGIN, *prefix] for prefix in prefixes])
    return (last_BV, state) if rows == 1 else (last_BV.repeat_interleave(rows, dim=0), state.repeat(rows))


def write_all(decoder: Decoder, memory: Memory | None, texts: Sequence[Sequence[int]]) -> tuple[Tensor, State]:
    """Write texts of any lengths, one per memory; the logits [B, V] of what follows each, and the state."""
    lengths_B = torch.tensor([len(text) for text in texts])
    longest = int(lengths_B.max())
    tokens_BT = torch.tensor([[*text, *[PAD] * (longest - len(text))] for text in texts])
    state = decoder.start(memory, 1 if memory is not None else len(texts))
    device = state.device
    tokens_BT, lengths_B = tokens_BT.to(device), lengths_B.to(device)
    logits_BTV, state = decoder.extend(tokens_BT, lengths_B, state)
    return logits_BTV[torch.arange(len(texts), device=device), lengths_B - 1], state

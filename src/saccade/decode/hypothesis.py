"""What a search returns, and how it begins."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.models.contract import Decoder, Memory, State
from saccade.tokens.bpe import BEGIN, PAD

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
    """Write every prefix; the logits [B, V] that follow, and the state, each prefix `rows` times."""
    lengths_B = torch.tensor([1 + len(prefix) for prefix in prefixes])
    longest = int(lengths_B.max())
    tokens_BT = torch.tensor([[BEGIN, *prefix] + [PAD] * (longest - 1 - len(prefix)) for prefix in prefixes])
    state = decoder.start(memory, 1 if memory is not None else len(prefixes))
    device = state.device
    tokens_BT, lengths_B = tokens_BT.to(device), lengths_B.to(device)
    logits_BTV, state = decoder.extend(tokens_BT, lengths_B, state)
    last_BV = logits_BTV[torch.arange(len(prefixes), device=device), lengths_B - 1]
    return (last_BV, state) if rows == 1 else (last_BV.repeat_interleave(rows, dim=0), state.repeat(rows))

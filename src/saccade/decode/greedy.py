"""One token at a time, one text per source: the likeliest token, or one drawn by a chooser."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from saccade.decode.choose import best_tokens
from saccade.decode.filters import forbid
from saccade.decode.hypothesis import NEVER_WRITTEN, Hypothesis, begin, length_penalty
from saccade.decode.lexicon import Guide
from saccade.models.contract import Decoder, Memory
from saccade.tokens.marks import END

Choose = Callable[[Tensor, list[int]], tuple[Tensor, Tensor]]
"""Logits [B, V] of the next token, and which input each row belongs to -> log-probabilities [B] and tokens [B]."""


def likeliest(logits_BV: Tensor, _: list[int], gains_BV: np.ndarray | None = None) -> tuple[Tensor, Tensor]:
    logprobs_B1, tokens_B1 = best_tokens(logits_BV, 1, gains_BV)
    return logprobs_B1[:, 0], tokens_B1[:, 0]


@dataclass
class _Text:
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0
    written: int = 0
    finished: bool = False


def greedy(
    decoder: Decoder,
    memory: Memory | None,
    *,
    prefixes: Sequence[Sequence[int]],
    limits: Sequence[int],
    alpha: float = 0.0,
    choose: Choose = likeliest,
    guide: Guide | None = None,
) -> list[Hypothesis]:
    """Write each text to its end mark or its own limit of tokens; texts that are done leave the batch. A `guide`, which
    stands behind the prefixes, goes with the likeliest tokens only."""
    texts = [_Text(list(prefix)) for prefix in prefixes]
    logits_BV, state = begin(decoder, memory, prefixes, rows=1)
    active = list(range(len(texts)))
    while True:
        logits_BV = forbid(logits_BV, NEVER_WRITTEN)
        logprobs_B, tokens_B = likeliest(logits_BV, active, guide.gains()) if guide else choose(logits_BV, active)
        going = []
        for row, (token, logprob) in enumerate(zip(tokens_B.tolist(), logprobs_B.tolist(), strict=True)):
            text = texts[active[row]]
            text.logprob += logprob
            text.written += 1
            text.finished = token == END
            if not text.finished:
                text.tokens.append(token)
                if text.written < limits[active[row]]:
                    going.append(row)
        if not going:
            break
        if len(going) < len(active):
            rows = torch.tensor(going, device=tokens_B.device)
            state, tokens_B = state.reorder(rows), tokens_B[rows]
            active = [active[row] for row in going]
        if guide:
            guide.follow(np.array(going), tokens_B.numpy(force=True))
        logits_BV, state = decoder.step(tokens_B, state)
    return [Hypothesis(t.tokens, t.logprob, t.logprob / length_penalty(t.written, alpha), t.finished) for t in texts]

"""One token at a time, one text per source: the likeliest token, or one drawn by a chooser."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saccade.decode.choose import best_tokens
from saccade.decode.hypothesis import NEVER_WRITTEN, Hypothesis, begin, forbid, length_penalty
from saccade.decode.running import Writer
from saccade.tokens.marks import END

Choose = Callable[[Any, list[int]], tuple[np.ndarray, np.ndarray]]
"""Logits [B, V] of the next token, and which input each row belongs to -> log-probabilities [B] and tokens [B]."""


def likeliest(logits_BV: Any, _: list[int]) -> tuple[np.ndarray, np.ndarray]:
    logprobs_B1, tokens_B1 = best_tokens(logits_BV, 1)
    return logprobs_B1[:, 0], tokens_B1[:, 0]


@dataclass
class _Text:
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0
    written: int = 0
    finished: bool = False


def greedy(
    decoder: Writer,
    memory: Any,
    *,
    prefixes: Sequence[Sequence[int]],
    limits: Sequence[int],
    alpha: float = 0.0,
    choose: Choose = likeliest,
) -> list[Hypothesis]:
    """Write each text to its end mark or its own limit of tokens; texts that are done leave the batch."""
    texts = [_Text(list(prefix)) for prefix in prefixes]
    logits_BV, state = begin(decoder, memory, prefixes, rows=1)
    active = list(range(len(texts)))
    while True:
        logprobs_B, tokens_B = choose(forbid(logits_BV, NEVER_WRITTEN), active)
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
            state, tokens_B = state.reorder(state.own(np.array(going))), tokens_B[going]
            active = [active[row] for row in going]
        logits_BV, state = decoder.step(state.own(tokens_B), state)
    return [Hypothesis(t.tokens, t.logprob, t.logprob / length_penalty(t.written, alpha), t.finished) for t in texts]

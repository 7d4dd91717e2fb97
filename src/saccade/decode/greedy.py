"""One token at a time, one text per source: the likeliest token, or one drawn by a chooser."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from saccade.decode.choose import best_tokens
from saccade.decode.hypothesis import Hypothesis, begin, forbid, length_penalty
from saccade.runtime.contract import ArrayMemory, DecoderLike, Floats, Ids, S
from saccade.tokens.marks import Marks

Choose = Callable[[Floats, list[int]], tuple[Floats, Ids]]
"""Logits [B, V] of the next token, and which input each row belongs to -> log-probabilities [B] and tokens [B]."""


def likeliest(logits_BV: Floats, _: list[int]) -> tuple[Floats, Ids]:
    logprobs_B1, tokens_B1 = best_tokens(logits_BV, 1)
    return logprobs_B1[:, 0], tokens_B1[:, 0]


@dataclass
class _Text:
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0
    written: int = 0
    finished: bool = False


def greedy(
    decoder: DecoderLike[S],
    memory: ArrayMemory | None,
    *,
    prefixes: Sequence[Sequence[int]],
    marks: Marks,
    limits: Sequence[int],
    alpha: float = 0.0,
    choose: Choose = likeliest,
) -> list[Hypothesis]:
    """Write each text to its end mark or its own limit of tokens; texts that are done leave the batch."""
    texts = [_Text(list(prefix)) for prefix in prefixes]
    logits_BV, state = begin(decoder, memory, prefixes, marks, rows=1)
    active = list(range(len(texts)))
    while True:
        logprobs_B, tokens_B = choose(forbid(logits_BV, marks.never_written), active)
        going = []
        for row, (token, logprob) in enumerate(zip(tokens_B.tolist(), logprobs_B.tolist(), strict=True)):
            text = texts[active[row]]
            text.logprob += logprob
            text.written += 1
            text.finished = token == marks.end
            if not text.finished:
                text.tokens.append(token)
                if text.written < limits[active[row]]:
                    going.append(row)
        if not going:
            break
        if len(going) < len(active):
            state, tokens_B = state.reorder(np.array(going)), tokens_B[going]
            active = [active[row] for row in going]
        logits_BV, state = decoder.step(tokens_B, state)
    return [Hypothesis(t.tokens, t.logprob, t.logprob / length_penalty(t.written, alpha), t.finished) for t in texts]

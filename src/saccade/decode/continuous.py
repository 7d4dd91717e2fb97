"""Writing on from a text, token by token, past the end of the model's context if need be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from saccade.decode.greedy import Choose
from saccade.decode.hypothesis import forbid, write_all
from saccade.runtime.contract import DecoderLike, Ids, S
from saccade.tokens.marks import Marks


@dataclass(frozen=True)
class Written:
    """One token of one text."""

    text: int
    """Which of the texts."""
    token: int
    logprob: float


def write_on(
    decoder: DecoderLike[S],
    texts: Sequence[Sequence[int]],
    *,
    context: int,
    marks: Marks,
    choose: Choose,
    over: set[int],
) -> Iterator[list[Written]]:
    """The next token of every text, again and again; a text that the caller puts into `over` leaves.

    A text that fills the context goes on with its second half as all the model remembers. When that happens is
    decided by the text's own length, never by its neighbours'.
    """
    windows = [list(text[-_kept(len(text), context) :]) for text in texts]
    active = [i for i in range(len(texts)) if i not in over]
    state: S | None = None
    tokens_B: Ids = np.empty(0, dtype=np.int64)
    while active:
        if state is None:
            logits_BV, state = write_all(decoder, None, [windows[i] for i in active])
        else:
            logits_BV, state = decoder.step(tokens_B, state)
        logprobs_B, tokens_B = choose(forbid(logits_BV, marks.never_written), active)
        written = [
            Written(i, token, logprob)
            for i, token, logprob in zip(active, tokens_B.tolist(), logprobs_B.tolist(), strict=True)
        ]
        yield written
        going = [row for row, one in enumerate(written) if one.text not in over]
        full = False
        for row in going:
            window = windows[active[row]]
            window.append(written[row].token)
            if len(window) > context:
                del window[: -_kept(len(window), context)]
                full = True
        if full:
            state = None
        elif going and len(going) < len(active):
            state, tokens_B = state.reorder(np.array(going)), tokens_B[going]
        active = [active[row] for row in going]


def _kept(length: int, context: int) -> int:
    """How many of a text's last tokens are remembered: all that fit, or, when they do not, half a context."""
    return length if length <= context else max(1, context // 2)

"""Listening to a search: while somebody does, every step tells the beginnings there are and how each may go on.

Nothing is stored on sessions: a context variable carries the listener, as with looks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from saccade.decode.choose import best_tokens
from saccade.decode.hypothesis import NEVER
from saccade.decode.row import Text
from saccade.runtime.contract import Floats

LIKELY = 5
"""Ways on that are told of every beginning."""


@dataclass(frozen=True)
class PartialText:
    """A text as far as it was written, and its likeliest next tokens."""

    tokens: list[int]
    """Prefix included."""
    logprob: float
    """Natural log of the probability of what was written after the prefix."""
    likely: list[tuple[int, float]]
    """Tokens with the natural log of their probability, likeliest first."""
    rest: float
    """The probability of all other tokens together."""


@dataclass(frozen=True)
class SearchStep:
    """A text before its next tokens are chosen."""

    text: Text
    """The handle of the row; after the search its `best` holds what was found."""
    beginnings: list[PartialText]
    """One, or as many as the beam is wide; the likeliest first."""


Listener = Callable[[SearchStep], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """The listener is called at every step of every search inside the `with` block; what it raises ends the search."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def listened() -> bool:
    return _listener.get() is not None


def tell_step(text: Text, written: list[list[int]], logprobs: list[float], logits_KV: Floats) -> None:
    """Called by every group of rows before it chooses."""
    listener = _listener.get()
    if listener is None:
        return
    likely_KC, tokens_KC = best_tokens(np.ascontiguousarray(logits_KV, dtype=np.float32), LIKELY)
    found = [
        PartialText(
            tokens,
            logprob,
            list(zip(ids, values, strict=True)),
            max(0.0, 1.0 - float(np.exp(np.asarray(values, dtype=np.float64)).sum())),
        )
        for tokens, logprob, ids, values in zip(written, logprobs, tokens_KC.tolist(), likely_KC.tolist(), strict=True)
        if logprob > NEVER
    ]
    listener(SearchStep(text, found))

"""Sampling the next token, with one generator per text so that no text depends on its neighbours."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from saccade.decode.choose import log_sum_exp
from saccade.decode.filters import keep_likeliest, keep_nucleus, penalise, softmax
from saccade.errors import WrongUse
from saccade.runtime.contract import Floats, Ids

LARGEST_SEED = 2**40


@dataclass(frozen=True)
class Drawing:
    """How to sample."""

    temperature: float | None = None
    """Below 1 favours likely tokens, above 1 gives more varied texts; None takes the likeliest token."""
    top_k: int | None = None
    """Sample from this many likeliest tokens only."""
    top_p: float | None = None
    """Sample from the fewest tokens that hold this share of the probability."""
    repetition: float = 1.0
    """Above 1: tokens that were there before become less likely."""
    seed: int = 0
    """Same seed, same samples."""

    def __post_init__(self) -> None:
        if self.temperature is not None and not 0 < self.temperature < math.inf:
            raise WrongUse(f"temperature must be above 0, not {self.temperature}; leave it out for the likeliest text")
        if self.top_k is not None and self.top_k < 1:
            raise WrongUse(f"top-k must be at least 1, not {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise WrongUse(f"top-p must be above 0 and at most 1, not {self.top_p}")
        if not 0.1 <= self.repetition <= 10:
            raise WrongUse(f"the repetition penalty must be between 0.1 and 10, not {self.repetition}; 1 is none")
        if not 0 <= self.seed < LARGEST_SEED:
            raise WrongUse(f"the seed must be between 0 and {LARGEST_SEED - 1}, not {self.seed}")


class Generator:
    """Uniform numbers of one text: the Mersenne Twister, drawn as PyTorch's CPU generator draws doubles, so that a seed
    gives the texts it always gave."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed % 2**32)

    def uniform(self) -> float:
        """In [0, 1)."""
        high, low = np.frombuffer(self.random.bytes(8), dtype="<u4").tolist()
        return float(((high << 32 | low) & (2**53 - 1)) * 2.0**-53)


class Draws:
    """What sampling remembers of one text: its random numbers, and the tokens that a penalty makes less likely."""

    def __init__(self, seed: int, number: int, seen: Iterable[int] = ()) -> None:
        """`number`: the text's place in the whole input."""
        self.generator, self.seen = Generator(seed * 1_000_003 + number), set(seen)


def draw_tokens(logits_BV: Floats, drawing: Drawing, draws: Sequence[Draws]) -> tuple[Floats, Ids]:
    """Sample from softmax(logits / temperature) after the filters, with every row's own numbers; the seed of `drawing`
    is not asked. Log-probabilities [B] and tokens [B].

    The log-probabilities are the model's own: filters change what is sampled, not how likely it is.
    """
    drawn_B = _draw(_filtered(logits_BV, drawing, draws), drawing, draws)
    if drawing.repetition != 1:
        for one, token in zip(draws, drawn_B.tolist(), strict=True):
            one.seen.add(token)
    logprobs_B = logits_BV[np.arange(len(drawn_B)), drawn_B] - log_sum_exp(logits_BV)[:, 0]
    return logprobs_B, drawn_B


def _filtered(logits_BV: Floats, drawing: Drawing, draws: Sequence[Draws]) -> Floats:
    if drawing.repetition != 1:
        logits_BV = penalise(logits_BV, [one.seen for one in draws], drawing.repetition)
    if drawing.temperature is not None:
        # Measured from the likeliest, which stays at 0: however cold, the others at most become impossible.
        below_BV = (logits_BV - logits_BV.max(axis=1, keepdims=True)).astype(np.float64)
        with np.errstate(over="ignore"):
            logits_BV = below_BV / drawing.temperature
    if drawing.top_k is not None:
        logits_BV = keep_likeliest(logits_BV, drawing.top_k)
    return logits_BV if drawing.top_p is None else keep_nucleus(logits_BV, drawing.top_p)


def _draw(logits_BV: Floats, drawing: Drawing, draws: Sequence[Draws]) -> Ids:
    if drawing.temperature is None:
        likeliest_B: Ids = logits_BV.argmax(axis=1)
        return likeliest_B
    cumulative_BV = softmax(logits_BV).cumsum(axis=1)
    uniform_B = np.array([one.generator.uniform() for one in draws])
    # The first token whose cumulative probability passes the draw; scaled so that rounding cannot pass the last.
    drawn_B = (cumulative_BV <= (uniform_B * cumulative_BV[:, -1])[:, None]).sum(axis=1)
    limited_B: Ids = np.minimum(drawn_B, logits_BV.shape[1] - 1)
    return limited_B

"""Drawing the next token at random, with one generator per text so that no text depends on its neighbours."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade.decode.filters import keep_likeliest, keep_nucleus, penalise
from saccade.decode.running import as_array
from saccade.errors import WrongUse

LARGEST_SEED = 2**40


@dataclass(frozen=True)
class Drawing:
    """How to draw."""

    temperature: float | None = None
    """Below 1 bolder towards the likely, above 1 more varied; None takes the likeliest."""
    top_k: int | None = None
    """Draw from the so many likeliest tokens only."""
    top_p: float | None = None
    """Draw from the fewest tokens that hold this share of the probability."""
    repetition: float = 1.0
    """Above 1: tokens that were there before become less likely."""
    seed: int = 0
    """Same seed, same draws."""

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


@dataclass
class Draw:
    """A chooser for `greedy` that draws from softmax(logits / temperature) after the filters."""

    drawing: Drawing
    numbers: Sequence[int]
    """The texts' places in the whole input: they, not the batch, decide the draws."""
    prefixes: Sequence[Sequence[int]]
    """What stands there before the first draw."""
    seen: list[set[int]] = field(init=False)
    generators: list[torch.Generator] = field(init=False)

    def __post_init__(self) -> None:
        seed = self.drawing.seed
        self.seen = [set(prefix) for prefix in self.prefixes]
        self.generators = [torch.Generator().manual_seed(seed * 1_000_003 + number) for number in self.numbers]

    def __call__(self, logits_BV: Any, inputs: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """The log-probabilities are the model's own: what was filtered changes what is drawn, not how likely it is."""
        logits_BV = torch.as_tensor(logits_BV)
        drawn_B1 = self._draw(self._filtered(logits_BV, inputs), inputs)
        if self.drawing.repetition != 1:
            for i, token in zip(inputs, drawn_B1[:, 0].tolist(), strict=True):
                self.seen[i].add(token)
        logprobs_B1 = logits_BV.gather(1, drawn_B1) - logits_BV.logsumexp(dim=1, keepdim=True)
        return as_array(logprobs_B1[:, 0]), as_array(drawn_B1[:, 0])

    def _filtered(self, logits_BV: Tensor, inputs: list[int]) -> Tensor:
        drawing = self.drawing
        if drawing.repetition != 1:
            logits_BV = penalise(logits_BV, [self.seen[i] for i in inputs], drawing.repetition)
        if drawing.temperature is not None:
            # Seen from the likeliest, which stays at 0: however cold, nothing grows beyond what a float can hold.
            logits_BV = (logits_BV - logits_BV.amax(dim=1, keepdim=True)).double() / drawing.temperature
        if drawing.top_k is not None:
            logits_BV = keep_likeliest(logits_BV, drawing.top_k)
        return logits_BV if drawing.top_p is None else keep_nucleus(logits_BV, drawing.top_p)

    def _draw(self, logits_BV: Tensor, inputs: list[int]) -> Tensor:
        if self.drawing.temperature is None:
            return logits_BV.argmax(dim=1, keepdim=True)
        uniform = torch.stack([torch.rand(1, generator=self.generators[i], dtype=torch.float64) for i in inputs])
        cumulative = logits_BV.softmax(dim=-1).cumsum(dim=-1)
        # The first token whose cumulative probability passes the draw; scaled so that rounding cannot pass the last.
        drawn = torch.searchsorted(cumulative, uniform.to(cumulative.device) * cumulative[:, -1:], right=True)
        return drawn.clamp(max=logits_BV.shape[1] - 1)

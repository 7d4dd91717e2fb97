"""Drawing the next token at random, with one generator per text so that no text depends on its neighbours."""

import torch
from torch import Tensor

from saccade.errors import WrongUse


class Draw:
    """A chooser for `greedy` that draws from softmax(logits / temperature)."""

    def __init__(self, *, temperature: float, seed: int, numbers: list[int]) -> None:
        """`numbers` are the texts' places in the whole input: they, not the batch, decide the draws."""
        if temperature <= 0:
            raise WrongUse(f"temperature must be above 0, not {temperature}; leave it out for the likeliest text")
        self.temperature = temperature
        self.generators = [torch.Generator().manual_seed(seed * 1_000_003 + number) for number in numbers]

    def __call__(self, logits_BV: Tensor, inputs: list[int]) -> tuple[Tensor, Tensor]:
        uniform = torch.stack([torch.rand(1, generator=self.generators[i], dtype=torch.float64) for i in inputs])
        cumulative = (logits_BV.double() / self.temperature).softmax(dim=-1).cumsum(dim=-1)
        # The first token whose cumulative probability passes the draw; scaled so that rounding cannot pass the last.
        drawn = torch.searchsorted(cumulative, uniform.to(cumulative.device) * cumulative[:, -1:], right=True)
        drawn = drawn.clamp(max=logits_BV.shape[1] - 1)
        return (logits_BV.gather(1, drawn) - logits_BV.logsumexp(dim=1, keepdim=True))[:, 0], drawn[:, 0]

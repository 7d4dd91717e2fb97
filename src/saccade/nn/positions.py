"""Where a token stands: positional encodings as objects. Without one, attention sees a bag of words.

Each maps integer positions [...] to vectors [..., width]. `embed.py` adds or concatenates them.
"""

import math

import torch
from torch import Tensor, nn

from saccade.arch.positions import LearnedConfig, NoPositionsConfig, PositionsConfig, SinusoidalConfig


class Sinusoidal(nn.Module):
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(same) (Vaswani et al. 2017, 3.5).

    The two layouts hold the same numbers in another order of channels.
    """

    table: Tensor
    ready = 512

    def __init__(self, width: int, layout: str = "interleaved") -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"sinusoidal positions need an even width, not {width}")
        self.width, self.layout = width, layout
        # The first rows are computed once; they are not weights and are not saved.
        self.register_buffer("table", self._encode(torch.arange(self.ready)), persistent=False)

    def forward(self, positions: Tensor, last: int) -> Tensor:
        if last < self.ready:
            return self.table[positions]
        return self._encode(positions)

    def _encode(self, positions: Tensor) -> Tensor:
        rates = torch.exp(torch.arange(0, self.width, 2, device=positions.device) * (-math.log(10_000.0) / self.width))
        angles = positions.unsqueeze(-1) * rates
        if self.layout == "halves":
            return torch.cat([angles.sin(), angles.cos()], dim=-1)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class Learned(nn.Module):
    """A vector per position, learnt like a word's (BERT, GPT)."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.length = length
        self.vectors = nn.Embedding(length, width)
        nn.init.normal_(self.vectors.weight, std=0.02)

    def forward(self, positions: Tensor, last: int) -> Tensor:
        if last >= self.length:
            raise ValueError(f"position {last} asked of a model with {self.length} learned positions")
        vectors: Tensor = self.vectors(positions)
        return vectors


def build_positions(config: PositionsConfig, width: int) -> nn.Module | None:
    """The object a record describes; None where there are no positions."""
    match config:
        case SinusoidalConfig():
            return Sinusoidal(width, config.layout)
        case LearnedConfig():
            return Learned(width, config.length)
        case NoPositionsConfig():
            return None

"""Rotary positions: queries and keys are turned by their place, so that a score knows only how far apart they are."""

import torch
from torch import Tensor, nn

from saccade.arch.positions import AnyPositionsConfig, RotaryConfig


def build_rotary(positions: AnyPositionsConfig, head_width: int) -> "Rotary | None":
    """What turns heads of this width, if their positions are rotary."""
    if not isinstance(positions, RotaryConfig):
        return None
    return Rotary(head_width, positions.base, positions.layout)


class Rotary(nn.Module):
    """Pair i of the channels at position p is turned by the angle p · base^(-2i/H) (Su et al. 2021, 3.2)."""

    rates: Tensor

    def __init__(self, head_width: int, base: float = 10_000.0, layout: str = "interleaved") -> None:
        super().__init__()
        if head_width % 2:
            raise ValueError(f"rotary positions turn pairs of channels: heads need an even width, not {head_width}")
        self.layout = layout
        rates = base ** (-torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
        self.register_buffer("rates", rates.float(), persistent=False)

    def forward(self, x_BNTH: Tensor, start: int | Tensor = 0) -> Tensor:
        """`start` is the position of the first token: one number, or one per row."""
        at_T = torch.arange(x_BNTH.shape[2], device=x_BNTH.device)
        at = at_T + start if isinstance(start, int) else (at_T + start[:, None])[:, None]
        angles = self.angles(at)
        cos, sin = angles.cos(), angles.sin()
        if self.layout == "halves":
            one, other = x_BNTH.chunk(2, dim=-1)
            return torch.cat([one * cos - other * sin, one * sin + other * cos], dim=-1)
        one, other = x_BNTH[..., ::2], x_BNTH[..., 1::2]
        return torch.stack([one * cos - other * sin, one * sin + other * cos], dim=-1).flatten(-2)

    def angles(self, positions: Tensor) -> Tensor:
        """[..., H / 2]: how far each pair is turned at these positions [...]."""
        return positions.unsqueeze(-1) * self.rates

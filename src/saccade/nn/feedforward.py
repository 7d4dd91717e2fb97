"""The position-wise feed-forward network (Vaswani et al. 2017, 3.3), plain or gated."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from saccade.nn.stacked import Stacked

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """W2 f(W1 x): the same small MLP at every position."""

    def __init__(self, width: int, hidden: int, activation: str = "relu", *, bias: bool = True) -> None:
        super().__init__()
        self.widen = nn.Linear(width, hidden, bias=bias)
        self.activation = ACTIVATIONS[activation]
        self.narrow = nn.Linear(hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.narrow(self.activation(self.widen(x)))
        return result


class GatedFeedForward(nn.Module):
    """W2 (f(Wg x) * W1 x): one half of the widened vector lets the other through (Shazeer 2020)."""

    def __init__(self, width: int, hidden: int, activation: str = "silu", *, bias: bool = True) -> None:
        super().__init__()
        self.widen = Stacked(width, (hidden, hidden), bias=bias)
        self.activation = ACTIVATIONS[activation]
        self.narrow = nn.Linear(hidden, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.widen(x).chunk(2, dim=-1)
        result: Tensor = self.narrow(self.activation(gate) * value)
        return result

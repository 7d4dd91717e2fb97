"""The position-wise feed-forward network (Vaswani et al. 2017, 3.3)."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


class FeedForward(nn.Module):
    """W2 f(W1 x): the same small MLP at every position."""

    def __init__(self, width: int, hidden: int, activation: str = "relu") -> None:
        super().__init__()
        self.widen = nn.Linear(width, hidden)
        self.activation = ACTIVATIONS[activation]
        self.narrow = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.narrow(self.activation(self.widen(x)))
        return result

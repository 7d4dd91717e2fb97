"""Temporal convolution with gates: every position sees a few neighbours (Gehring et al. 2017)."""

import math

import torch
from torch import Tensor, nn

from saccade.nn.dropout import Dropout


class GatedConvolution(nn.Module):
    """A window of `kernel` neighbours through one matrix, half of it gating the other half (Dauphin et al. 2017).

    The window is laid side by side, so that a convolution is a linear layer: one step of a decoder is the same product
    as a whole sentence.
    """

    def __init__(self, width: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.kernel = kernel
        self.window = nn.Linear(kernel * width, 2 * width)
        # The gates halve the variance, and dropout would raise it.
        nn.init.normal_(self.window.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * width)))
        nn.init.zeros_(self.window.bias)
        self.dropout = Dropout(dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """[B, T + kernel - 1, D] -> [B, T, D]: position t sees x[t] … x[t + kernel - 1]."""
        count = x_BTD.shape[1] - self.kernel + 1
        x_BTD = self.dropout(x_BTD)
        windows = torch.cat([x_BTD[:, shift : shift + count] for shift in range(self.kernel)], dim=-1)
        gated: Tensor = nn.functional.glu(self.window(windows), dim=-1)
        return gated

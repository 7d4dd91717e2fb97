"""Dropout with cheap random numbers (Srivastava et al. 2014)."""

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero a share `p` of the numbers in training and scale the rest by 1 / (1 - p).

    The same in distribution as `nn.Dropout`, which on a CPU draws one random number per element, one after the
    other. Here one 64-bit draw decides four elements, 16 bits each, so p is met to within 1/65536.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device).random_(-(2**63), None)
        bits = draws.view(torch.int16)[: x.numel()].view(x.shape)
        kept = bits >= round(self.p * 2**16) - 2**15
        return x * (kept.to(x.dtype) / (1 - self.p))

    def extra_repr(self) -> str:
        return f"p={self.p}"

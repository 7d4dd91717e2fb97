"""Pooling: many values become one. An average treats them alike; attention lets a query choose.

What draws the eye by itself is a non-volitional cue: a key, there whether anyone asks or not. What one looks for is a
volitional cue: a query. Average pooling has keys at most; attention pooling weighs values by how query and key match.
"""

import torch
from torch import Tensor, nn

from saccade.nn.attention import attend
from saccade.nn.masks import Keys
from saccade.sites import Site


class Gaussian(nn.Module):
    """-w²‖q - k‖² / 2: softmax of it is Nadaraya-Watson kernel regression (1964)."""

    def __init__(self, sharpness: float = 1.0) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(float(sharpness)))

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return -((self.sharpness * torch.cdist(q, k)) ** 2) / 2


def average_pool(values_BSD: Tensor, mask_BS: Tensor | None = None) -> Tensor:
    """[B, S, D] -> [B, D]: every value weighs the same, whatever is asked."""
    if mask_BS is None:
        return values_BSD.mean(dim=1)
    real_BS1 = mask_BS[..., None].to(values_BSD.dtype)
    return (values_BSD * real_BS1).sum(dim=1) / real_BS1.sum(dim=1).clamp(min=1)


class AttentionPooling(nn.Module):
    """For each query [B, Q, D] an average of the values [B, S, V], weighted by the match with their keys [B, S, D]."""

    def __init__(self, score: nn.Module) -> None:
        super().__init__()
        self.score = score
        self.site = Site.cross()

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask_BS: Tensor | None = None) -> Tensor:
        mask = None if mask_BS is None else Keys(mask_BS)
        pooled = attend(self, queries[:, None], keys[:, None], values[:, None], score=self.score, mask=mask)
        return pooled[:, 0]


def kernel_regression(x_N: Tensor, y_N: Tensor, at_Q: Tensor, sharpness: float) -> Tensor:
    """A curve through noisy points: at each place the average of all, near ones weighing more."""
    pool = AttentionPooling(Gaussian(sharpness))
    with torch.no_grad():
        pooled: Tensor = pool(at_Q[None, :, None], x_N[None, :, None], y_N[None, :, None])
    return pooled[0, :, 0]

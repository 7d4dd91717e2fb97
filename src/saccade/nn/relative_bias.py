"""Attention by distance in a stack that writes: a query knows how far back each key stands (Dai et al. 2019, 3.3)."""

import math

import torch
from torch import Tensor, nn

from saccade.arch.positions import AnyPositionsConfig, RelativeConfig
from saccade.nn.relative import encode_distances


def build_relative(positions: AnyPositionsConfig, width: int, heads: int) -> "RelativeBias | None":
    """What tells queries the distances, if positions are relative."""
    return RelativeBias(width, heads) if isinstance(positions, RelativeConfig) else None


class RelativeBias(nn.Module):
    """Query i at key j: ((q_i + u)·k_j + (q_i + v)·W R_{i-j}) / √H; this gives q + u, and the second term."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.place = nn.Linear(width, width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(width))
        self.place_bias = nn.Parameter(torch.zeros(width))

    def forward(self, q_BNTH: Tensor, keys: int, start: int | Tensor = 0) -> tuple[Tensor, Tensor]:
        """`start` is the position of each row's first query. Keys ahead of a query have the distance 0: masks hide
        them."""
        queries, head_width = q_BNTH.shape[2:]
        places_PD = encode_distances(1, keys - 1, self.width, q_BNTH.device).flip(0)  # 0, 1, …, keys - 1
        r_NPH = self.place(places_PD).view(keys, self.heads, head_width).transpose(0, 1)
        scores_BNTP = (q_BNTH + self._heads(self.place_bias)) @ r_NPH.transpose(1, 2) / math.sqrt(head_width)
        query_T1 = torch.arange(queries, device=q_BNTH.device)[:, None]
        at = query_T1 + (start if isinstance(start, int) else start[:, None, None, None])
        distances = (at - torch.arange(keys, device=q_BNTH.device)).clamp(min=0)
        bias_BNTS = scores_BNTP.gather(-1, distances.expand_as(scores_BNTP))
        return q_BNTH + self._heads(self.content_bias), bias_BNTS

    def _heads(self, bias_D: Tensor) -> Tensor:
        """[D] -> [N, 1, H]"""
        return bias_D.view(self.heads, 1, -1)

"""Relative attention (Transformer-XL, Dai et al. 2019, 3.3; XLNet, Yang et al. 2019, 2.3-2.5): how far, not where.

A query knows how far away each key stands and, where texts have segments, whether it stands in its own. One stream of
queries, or two, look at the same keys and values.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from saccade.nn.attention import attend
from saccade.nn.masks import Mask
from saccade.nn.stacked import Stacked
from saccade.sites import Site


def encode_distances(queries: int, keys: int, width: int, device: torch.device | None = None) -> Tensor:
    """Sines, then cosines, of the distances `keys`, …, 1, 0, -1, …, 1 - `queries`: [P, D]. Keys ahead are negative.

    No pair is as far apart as the first: it only lets `shifted` be a view.
    """
    distances_P = torch.arange(keys, -queries, -1, device=device)
    rates = torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10_000.0) / width))
    angles = distances_P[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def shifted(scores: Tensor, keys: int) -> Tensor:
    """[..., T, P] by distance -> [..., T, S] by key, for queries that are the last T of S keys; nothing is copied.

    Query i finds key j at column T - i + j. In the flattened table that is T + i (P - 1) + j: rows one shorter,
    begun T later (Dai et al. 2019, appendix B).
    """
    *outer, queries, distances = scores.shape
    return scores.flatten(-2)[..., queries:].view(*outer, queries, distances - 1)[..., :keys]


@dataclass(frozen=True)
class Relation:
    """How queries stand to keys; the same in every layer.

    First come `ordered` queries, which are the last keys, one after the other, or none; then, perhaps, queries that
    stand anywhere.
    """

    distances_PD: Tensor
    """As `encode_distances` says them."""
    ordered: int
    columns_BKS: Tensor | None = None
    """Of each further query and each key: in which row of the distances theirs stands."""
    same_BTS: Tensor | None = None
    """True where query and key stand in one segment; None where segments do not matter."""
    mask: Mask | None = None


class RelativeAttention(nn.Module):
    """Query i at key j: ((q_i + u)·k_j + (q_i + v)·W R_{i-j} + (q_i + s)·g_ij) / √d.

    u, v and s are what a query likes at any place: some contents, some distances, its own segment or the other. g is
    one of two vectors, for keys of the same segment and of others.
    """

    def __init__(self, width: int, heads: int, *, segments: bool = False) -> None:
        super().__init__()
        self.site = Site.encoder()
        if width % heads:
            raise ValueError(f"width {width} does not divide into {heads} heads")
        self.heads, self.segments = heads, segments
        self.query = nn.Linear(width, width, bias=False)
        self.project = Stacked(width, (width, width), bias=False)
        self.place = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(width))
        self.place_bias = nn.Parameter(torch.zeros(width))
        if segments:
            self.segment_bias = nn.Parameter(torch.zeros(width))
            self.same_segment = nn.Parameter(torch.zeros(width))
            self.other_segment = nn.Parameter(torch.zeros(width))

    def forward(self, x_BTD: Tensor, seen_BSD: Tensor, relation: Relation) -> Tensor:
        """What the queries of x find in `seen`: a memory before the text, if there is one, and the text."""
        q_BTNH = self._heads(self.query(x_BTD))
        k, v = (self._heads(part).transpose(1, 2) for part in self.project(seen_BSD).chunk(2, dim=-1))
        q = (q_BTNH + self._heads(self.content_bias)).transpose(1, 2)
        bias = self._by_distance(q_BTNH, relation, seen_BSD.shape[1])
        if relation.same_BTS is not None:
            bias = bias + self._by_segment(q_BTNH, relation.same_BTS)
        context = attend(self, q, k, v, mask=relation.mask, bias=bias)
        out: Tensor = self.out(context.transpose(1, 2).flatten(2))
        return out

    def _by_distance(self, q_BTNH: Tensor, relation: Relation, keys: int) -> Tensor:
        """(q_i + v)·W R_{i-j} / √d: [B, N, T, S]"""
        rows, queries, _, width = q_BTNH.shape
        # Distances are the same in all rows: a head's queries of all rows meet them in one product.
        q_NXH = (q_BTNH + self._heads(self.place_bias)).permute(2, 0, 1, 3).flatten(1, 2)
        r_NHP = self._heads(self.place(relation.distances_PD) / math.sqrt(width)).permute(1, 2, 0)
        scores_NBTP = torch.bmm(q_NXH, r_NHP).view(self.heads, rows, queries, -1)
        parts = []
        if relation.ordered:
            parts.append(shifted(scores_NBTP[:, :, : relation.ordered], keys))
        if relation.columns_BKS is not None:
            columns_NBKS = relation.columns_BKS.expand(self.heads, -1, -1, -1)
            parts.append(scores_NBTP[:, :, relation.ordered :].gather(-1, columns_NBKS))
        return (parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)).transpose(0, 1)

    def _by_segment(self, q_BTNH: Tensor, same_BTS: Tensor) -> Tensor:
        """(q_i + s)·g_ij / √d: [B, N, T, S]"""
        if not self.segments:
            raise ValueError("segments given to an attention without segments")
        both_2NH = self._heads(torch.stack([self.same_segment, self.other_segment]))
        likes_BNT2 = torch.einsum("btnh,gnh->bntg", q_BTNH + self._heads(self.segment_bias), both_2NH)
        likes_BNT2 = likes_BNT2 / math.sqrt(q_BTNH.shape[-1])
        return torch.where(same_BTS[:, None], likes_BNT2[..., :1], likes_BNT2[..., 1:])

    def _heads(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., N, H]"""
        return x.view(*x.shape[:-1], self.heads, -1)

"""How well a query and a key match: score functions as objects, [..., T, D] x [..., S, D] -> [..., T, S].

Who asks the same keys again and again prepares them once: score(q, k) = score.compare(q, score.prepare(k)).
"""

import math

import torch
from torch import Tensor, nn


class Dot(nn.Module):
    """q·k (Luong et al. 2015, 3.1)."""

    def scale(self, width: int) -> float:
        return 1.0

    def prepare(self, k: Tensor) -> Tensor:
        return k

    def compare(self, q: Tensor, prepared: Tensor) -> Tensor:
        scores: Tensor = q @ prepared.transpose(-2, -1) * self.scale(q.shape[-1])
        return scores

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return self.compare(q, self.prepare(k))


class ScaledDot(Dot):
    """q·k / √d: for unit-variance q and k the score has variance 1 whatever d (Vaswani et al. 2017, 3.2.1)."""

    def scale(self, width: int) -> float:
        return 1.0 / math.sqrt(width)


class General(Dot):
    """q·W k, which lets queries and keys differ in width (Luong et al. 2015, 3.1)."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()
        self.key = nn.Linear(key_width, query_width, bias=False)
        nn.init.xavier_uniform_(self.key.weight)

    def prepare(self, k: Tensor) -> Tensor:
        prepared: Tensor = self.key(k)
        return prepared


class Additive(nn.Module):
    """v·tanh(W q + U k): a one-hidden-layer MLP on the pair (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, query_width: int, key_width: int, hidden: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_width, hidden)
        self.key = nn.Linear(key_width, hidden, bias=False)
        self.energy = nn.Linear(hidden, 1, bias=False)

    def prepare(self, k: Tensor) -> Tensor:
        prepared: Tensor = self.key(k)
        return prepared

    def compare(self, q: Tensor, prepared: Tensor) -> Tensor:
        pairs = self.query(q).unsqueeze(-2) + prepared.unsqueeze(-3)
        scores: Tensor = self.energy(torch.tanh(pairs)).squeeze(-1)
        return scores

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        return self.compare(q, self.prepare(k))

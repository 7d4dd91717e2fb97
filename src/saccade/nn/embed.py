"""Token ids to vectors that know what they are and where they stand."""

import math

import torch
from torch import Tensor, nn

from saccade.arch.positions import PositionsConfig
from saccade.nn.dropout import Dropout
from saccade.nn.front_end import Vectors
from saccade.nn.positions import build_positions


class Embedding(nn.Module):
    """Token vectors with positions added or concatenated.

    They begin small and are scaled by √d (Vaswani et al. 2017, 3.4), or, not `scaled`, are as GPT-2's begin.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int,
        positions: PositionsConfig,
        *,
        concatenate: bool = False,
        dropout: float,
        scaled: bool = True,
    ) -> None:
        super().__init__()
        # Concatenated, half of the channels say what and half say where.
        part = width // 2 if concatenate and positions.kind != "none" else width
        self.tokens = nn.Embedding(vocabulary, part)
        nn.init.normal_(self.tokens.weight, std=part**-0.5 if scaled else 0.02)
        self.positions = build_positions(positions, width - part or width)
        self.concatenate = concatenate
        self.scale = math.sqrt(part) if scaled else 1.0
        self.dropout = Dropout(dropout)

    def read(self, source: Tensor, mask: Tensor | None = None) -> Vectors:
        """As a front end."""
        return Vectors(self(source), mask)

    def forward(self, tokens_BT: Tensor, start: int | Tensor = 0, last: int | None = None) -> Tensor:
        """`start` is the position of each row's first token, `last` the highest of any: known, not read back."""
        x: Tensor = self.tokens(tokens_BT)
        if self.scale != 1:
            x = x * self.scale
        if self.positions is not None:
            position_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
            at = position_T + (start if isinstance(start, int) else start[:, None])
            where = self.positions(at, tokens_BT.shape[1] - 1 if last is None else last)
            x = torch.cat([x, where.expand(*x.shape[:2], -1)], dim=-1) if self.concatenate else x + where
        result: Tensor = self.dropout(x)
        return result

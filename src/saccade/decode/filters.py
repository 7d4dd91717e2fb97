"""Changes to the next token's logits before one is drawn."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.decode.hypothesis import NEVER


def keep_likeliest(logits_BV: Tensor, count: int) -> Tensor:
    """Top-k: only the `count` likeliest tokens stay possible (Fan et al. 2018); those as likely as the last one too."""
    if count >= logits_BV.shape[1]:
        return logits_BV
    least_B1 = logits_BV.topk(count, dim=1).values[:, -1:]
    return logits_BV.masked_fill(logits_BV < least_B1, NEVER)


def keep_nucleus(logits_BV: Tensor, share: float) -> Tensor:
    """Top-p: the fewest tokens that hold at least `share` of the probability (Holtzman et al. 2020); never none."""
    if share >= 1:
        return logits_BV  # rounded sums reach 1 before the last token
    best_BV, order_BV = logits_BV.sort(dim=1, descending=True, stable=True)
    held_BV = best_BV.softmax(dim=1).cumsum(dim=1)
    # A token goes when those before it hold the share already; the likeliest has none before it.
    gone_BV = F.pad(held_BV[:, :-1] >= share, (1, 0))
    return logits_BV.masked_fill(gone_BV.scatter(1, order_BV, gone_BV), NEVER)


def penalise(logits_BV: Tensor, seen: Sequence[set[int]], penalty: float) -> Tensor:
    """Tokens that were there before become less likely: their logit is divided by the penalty, or multiplied where it
    is negative (Keskar et al. 2019, 4.1)."""
    changed_BV = logits_BV.clone()
    for row, tokens in enumerate(seen):
        if tokens:
            chosen = torch.tensor(sorted(tokens), device=logits_BV.device)
            values = logits_BV[row, chosen]
            changed_BV[row, chosen] = torch.where(values > 0, values / penalty, values * penalty)
    return changed_BV

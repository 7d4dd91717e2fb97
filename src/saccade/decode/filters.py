"""Changes to the next token's logits before one is sampled."""

from collections.abc import Sequence

import numpy as np

from saccade.decode.hypothesis import NEVER
from saccade.runtime.contract import Floats


def keep_likeliest(logits_BV: Floats, count: int) -> Floats:
    """Top-k: only the `count` likeliest tokens stay possible (Fan et al. 2018); those as likely as the last one too."""
    if count >= logits_BV.shape[1]:
        return logits_BV
    least_B1 = np.partition(logits_BV, -count, axis=1)[:, -count, None]
    return np.where(logits_BV < least_B1, NEVER, logits_BV)


def keep_nucleus(logits_BV: Floats, share: float) -> Floats:
    """Top-p: the fewest tokens that hold at least `share` of the probability (Holtzman et al. 2020); never none."""
    if share >= 1:
        return logits_BV  # rounded sums reach 1 before the last token
    order_BV = np.argsort(-logits_BV, axis=1, kind="stable")
    best_BV = np.take_along_axis(logits_BV, order_BV, axis=1)
    held_BV = softmax(best_BV).cumsum(axis=1)
    # A token goes when those before it hold the share already; the likeliest has none before it.
    gone_BV = np.pad(held_BV[:, :-1] >= share, ((0, 0), (1, 0)))
    result = logits_BV.copy()
    np.put_along_axis(result, order_BV, np.where(gone_BV, NEVER, best_BV), axis=1)
    return result


def penalise(logits_BV: Floats, seen: Sequence[set[int]], penalty: float) -> Floats:
    """Tokens that were there before become less likely: their logit is divided by the penalty, or multiplied where it
    is negative (Keskar et al. 2019, 4.1)."""
    changed_BV = logits_BV.copy()
    for row, tokens in enumerate(seen):
        if tokens:
            chosen = np.array(sorted(tokens))
            values = logits_BV[row, chosen]
            changed_BV[row, chosen] = np.where(values > 0, values / penalty, values * penalty)
    return changed_BV


def softmax(logits_BV: Floats) -> Floats:
    """Probabilities of each row."""
    powers = np.exp(logits_BV - logits_BV.max(axis=1, keepdims=True))
    result: Floats = powers / powers.sum(axis=1, keepdims=True)
    return result

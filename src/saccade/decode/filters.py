"""Changes to the next token's logits before anything is chosen."""

from collections.abc import Sequence

from torch import Tensor


def forbid(logits_BV: Tensor, tokens: Sequence[int]) -> Tensor:
    """The same logits with some tokens made impossible."""
    logits_BV = logits_BV.clone()
    logits_BV[:, list(tokens)] = float("-inf")
    return logits_BV

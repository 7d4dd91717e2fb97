"""Changes to the next token's logits before anything is chosen."""

from collections.abc import Sequence

from torch import Tensor


def forbid(logits_BV: Tensor, tokens: Sequence[int]) -> Tensor:
    """Make some tokens impossible, in place: a decoder's logits belong to the search that asked for them."""
    for token in tokens:
        logits_BV[:, token] = float("-inf")
    return logits_BV

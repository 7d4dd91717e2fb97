"""Gradient clipping."""

from collections.abc import Sequence

from torch import Tensor, nn


def clip(weights: Sequence[Tensor], most: float) -> float:
    """The norm of all gradients. Gradients are scaled down if it is above `most` (Pascanu et al. 2013).

    Like `nn.utils.clip_grad_norm_`, but without a multiplication by one if nothing is clipped.
    """
    total = nn.utils.get_total_norm([weight.grad for weight in weights if weight.grad is not None])
    norm = total.item()
    if norm > most:
        nn.utils.clip_grads_with_norm_(weights, most, total)
    return norm

"""The optimiser: fused AdamW, with weight decay on matrices only, and gradients clipped before it steps."""

from collections.abc import Sequence

from pydantic import Field
from torch import Tensor, nn, optim

from saccade.config import Record


class AdamConfig(Record):
    rate: float = Field(1e-3, gt=0)
    """Peak learning rate."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Decay of the two running means."""
    epsilon: float = Field(1e-9, gt=0)
    """Keeps the step finite where gradients vanish."""
    decay: float = Field(0.0, ge=0)
    """Weight decay of matrices; norms and biases have none."""


def build_optimizer(model: nn.Module, config: AdamConfig) -> optim.AdamW:
    matrices = [weight for weight in model.parameters() if weight.ndim >= 2]
    vectors = [weight for weight in model.parameters() if weight.ndim < 2]
    groups = [{"params": matrices, "weight_decay": config.decay}, {"params": vectors, "weight_decay": 0.0}]
    return optim.AdamW(groups, lr=config.rate, betas=config.betas, eps=config.epsilon, fused=True)


def clip(weights: Sequence[Tensor], most: float) -> float:
    """The norm of all gradients together, which are then scaled down to `most` if it is larger (Pascanu et al. 2013).

    As `nn.utils.clip_grad_norm_`, which multiplies by one where there is nothing to clip.
    """
    total = nn.utils.get_total_norm([weight.grad for weight in weights if weight.grad is not None])
    norm = total.item()
    if norm > most:
        nn.utils.clip_grads_with_norm_(weights, most, total)
    return norm

"""The optimiser: fused AdamW, with weight decay on matrices only."""

from pydantic import Field
from torch import nn, optim

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

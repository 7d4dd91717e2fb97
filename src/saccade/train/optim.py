"""The optimiser: fused AdamW or Muon, with weight decay on matrices only; and gradients clipped before it steps."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from torch import Tensor, nn, optim

from saccade.config import Record
from saccade.train.muon import Muon, matrices_inside


class AdamConfig(Record):
    rate: float = Field(1e-3, gt=0)
    """Peak learning rate."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Decay of the two running means."""
    epsilon: float = Field(1e-9, gt=0)
    """Keeps the step finite where gradients vanish."""
    decay: float = Field(0.0, ge=0)
    """Weight decay of matrices; norms and biases have none."""


def build_optimizer(model: nn.Module, config: AdamConfig, muon: float = 0.0) -> optim.AdamW:
    """AdamW; with a momentum for `muon`, the matrices inside the model's blocks move by that."""
    inside = dict(matrices_inside(model)) if muon else {}
    others = [weight for weight in model.parameters() if weight not in inside]
    groups: list[dict[str, Any]] = [
        {"params": [weight for weight in others if weight.ndim >= 2], "weight_decay": config.decay},
        {"params": [weight for weight in others if weight.ndim < 2], "weight_decay": 0.0},
    ]
    if inside:
        sizes = list(inside.values())
        groups.append({"params": list(inside), "weight_decay": config.decay, "momentum": muon, "sizes": sizes})
    kind = Muon if inside else optim.AdamW
    return kind(groups, lr=config.rate, betas=config.betas, eps=config.epsilon, fused=True)


def moments_of(group: dict[str, Any]) -> tuple[str, ...]:
    """The names of what the optimiser remembers of each weight of a group, in the weight's own shape."""
    return ("momentum",) if "momentum" in group else ("exp_avg", "exp_avg_sq")


def clip(weights: Sequence[Tensor], most: float) -> float:
    """The norm of all gradients together, which are then scaled down to `most` if it is larger (Pascanu et al. 2013).

    As `nn.utils.clip_grad_norm_`, which multiplies by one where there is nothing to clip.
    """
    total = nn.utils.get_total_norm([weight.grad for weight in weights if weight.grad is not None])
    norm = total.item()
    if norm > most:
        nn.utils.clip_grads_with_norm_(weights, most, total)
    return norm

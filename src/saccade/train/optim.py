"""The optimiser: fused AdamW or Muon, with weight decay on matrices only."""

from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn, optim

from saccade.config import Record
from saccade.train.depth import rate_shares
from saccade.train.muon import Muon, matrices_inside


class AdamConfig(Record):
    rate: float = Field(1e-3, gt=0)
    """Peak learning rate."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Decay rates of the two running means."""
    epsilon: float = Field(1e-9, gt=0)
    """Added to the denominator, so that steps stay finite where gradients vanish."""
    decay: float = Field(0.0, ge=0)
    """Weight decay of matrices. Norms and biases have none."""


def build_optimizer(
    model: nn.Module,
    config: AdamConfig,
    muon: float = 0.0,
    *,
    layer_decay: float = 1.0,
    kind: torch.dtype = torch.float32,
    muon_class: type[Muon] = Muon,
) -> optim.AdamW:
    """AdamW for all trained weights; if `muon` is a momentum, Muon for the matrices inside the blocks, with products of
    this `kind`. The `share` of the learning rate falls by `layer_decay` with every layer below the top."""
    inside = {weight: sizes for weight, sizes in matrices_inside(model) if muon and weight.requires_grad}
    groups: list[dict[str, Any]] = []
    for share, weights in _by_share(model, layer_decay).items():
        others = [weight for weight in weights if weight not in inside]
        matrices, vectors = ([w for w in others if (w.ndim >= 2) == wanted] for wanted in (True, False))
        groups.append({"params": matrices, "weight_decay": config.decay, "share": share})
        groups.append({"params": vectors, "weight_decay": 0.0, "share": share})
        if own := [weight for weight in weights if weight in inside]:
            sizes = [inside[weight] for weight in own]
            own_way = {"momentum": muon, "sizes": sizes}
            groups.append({"params": own, "weight_decay": config.decay, "share": share, **own_way})
    groups = [group for group in groups if group["params"]]
    settings: dict[str, Any] = {"lr": config.rate, "betas": config.betas, "eps": config.epsilon, "fused": True}
    return muon_class(groups, kind=kind, **settings) if inside else optim.AdamW(groups, **settings)


def _by_share(model: nn.Module, layer_decay: float) -> dict[float, list[Tensor]]:
    """The trained weights, by their share of the learning rate."""
    found: dict[float, list[Tensor]] = {}
    for weight, share in rate_shares(model, layer_decay).items():
        if weight.requires_grad:
            found.setdefault(share, []).append(weight)
    return found


def moments_of(group: dict[str, Any]) -> tuple[str, ...]:
    """Names of the optimiser's moments for the weights of a group."""
    return ("momentum",) if "momentum" in group else ("exp_avg", "exp_avg_sq")

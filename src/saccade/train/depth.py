"""The layer of each weight: fine-tuning moves lower layers less, or not at all."""

import re

from torch import Tensor, nn

from saccade.errors import UserError

BLOCK = re.compile(r"(?:^|\.)blocks\.(\d+)\.")


def depths(model: nn.Module) -> dict[Tensor, int]:
    """0 for token vectors and positions, n for the n-th block, one more than the last block for the head."""
    names = dict(model.named_parameters())
    found = {name: BLOCK.search(name) for name in names}
    top = 1 + max((int(block[1]) + 1 for block in found.values() if block), default=0)
    depth = {
        name: int(block[1]) + 1 if block else 0 if ".embed." in f".{name}" else top for name, block in found.items()
    }
    return {names[name]: number for name, number in depth.items()}


def freeze(model: nn.Module, layers: int) -> None:
    """Freeze the token vectors and the first blocks, `layers` in all."""
    found = depths(model)
    if layers > (top := max(found.values())):
        raise UserError(f"train.freeze is {layers}, but there are {top} layers to freeze: token vectors and blocks")
    for weight, depth in found.items():
        if depth < layers:
            weight.requires_grad_(False)


def rate_shares(model: nn.Module, decay: float) -> dict[Tensor, float]:
    """Each weight's share of the learning rate: `decay` for each layer below the top (Howard & Ruder 2018, 3.2)."""
    found = depths(model)
    top = max(found.values(), default=0)
    return {weight: decay ** (top - depth) for weight, depth in found.items()}

"""Model folders: what is stored comes back, up to the rounding of its storage."""

from pathlib import Path

import torch
from torch import Tensor, nn

from saccade.folder import read_folder, write_folder


def stored(weight: Tensor, folder: Path) -> Tensor:
    """A matrix, after it was written as int8 and read again."""
    model = nn.Linear(*reversed(weight.shape), bias=False)
    model.weight = nn.Parameter(weight)
    write_folder(folder, {"task": "none", "model": {}}, model, "{}", storage="int8")
    return read_folder(folder).weights["weight"]


def test_int8_is_off_by_half_a_step_at_most_and_by_nothing_the_second_time(tmp_path: Path) -> None:
    weight = torch.randn(2000, 40) * torch.logspace(-6, 3, 2000)[:, None]
    once = stored(weight, tmp_path / "once")
    step = weight.abs().amax(dim=1, keepdim=True) / 127
    # A scale has eight bits: a step is up to 1/256 larger or smaller than the row asks.
    assert ((once - weight).abs() <= 0.51 * step).all()
    assert torch.equal(stored(once, tmp_path / "again"), once)

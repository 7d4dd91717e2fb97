"""Muon: its steps are PyTorch's, its matrices those inside the blocks, and training by it resumes exactly."""

import pytest
import torch
from torch import Tensor, nn, optim

from saccade.arch.gpt import GptConfig
from saccade.models.gpt import build_gpt
from saccade.nn.stacked import Stacked
from saccade.train.muon import Muon, matrices_inside, orthogonal
from saccade.train.optim import AdamConfig, build_optimizer


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return build_gpt(GptConfig(layers=2, width=16, heads=2, hidden=64, context=8), 11)


def give_gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        weight.grad = torch.randn(weight.shape, generator=generator)


@pytest.mark.parametrize("shape", [(16, 16), (48, 16), (16, 64)])
def test_singular_values_come_near_one_and_directions_stay(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(shape)
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    found = u.T @ orthogonal(matrix) @ v.T
    values = found.diagonal()
    assert values.min() > 0.6
    assert values.max() < 1.3
    torch.testing.assert_close(found, torch.diag(values), atol=1e-4, rtol=0)


@pytest.mark.parametrize("shape", [(24, 24), (96, 24), (24, 96)])
def test_steps_are_pytorchs(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    start = torch.randn(shape)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    settings = {"lr": 0.1, "weight_decay": 0.2}
    mine = Muon([{"params": [ours], "momentum": 0.9, "sizes": [(shape[0],)], **settings}])
    other = optim.Muon([theirs], momentum=0.9, adjust_lr_fn="match_rms_adamw", **settings)
    for _ in range(4):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        mine.step()
        other.step()
    moved = (ours - start).detach()
    # Theirs are rounded to bfloat16 on the way.
    assert float((ours - theirs).detach().norm() / moved.norm()) < 0.02


def test_a_stack_moves_as_its_matrices_would_alone() -> None:
    torch.manual_seed(0)
    stack, gradient = nn.Parameter(torch.randn(40, 16)), torch.randn(40, 16)
    parts = [nn.Parameter(part.clone()) for part in stack.detach().split((16, 8, 16))]
    whole = Muon([{"params": [stack], "momentum": 0.9, "sizes": [(16, 8, 16)]}], lr=0.1)
    apart = Muon([{"params": parts, "momentum": 0.9, "sizes": [(len(part),) for part in parts]}], lr=0.1)
    stack.grad = gradient
    for part, piece in zip(parts, gradient.split((16, 8, 16)), strict=True):
        part.grad = piece
    whole.step()
    apart.step()
    torch.testing.assert_close(stack.detach(), torch.cat([part.detach() for part in parts]))


def test_only_the_matrices_of_blocks_are_its_own_and_adam_moves_the_rest() -> None:
    models = {name: small_model() for name in ("muon", "adam")}
    config = AdamConfig(rate=0.01, decay=0.1)
    for name, model in models.items():
        optimizer = build_optimizer(model, config, 0.95 if name == "muon" else 0.0)
        for seed in range(3):
            give_gradients(model, seed)
            optimizer.step()
    other = dict(models["adam"].named_parameters())
    different = {
        name for name, weight in models["muon"].named_parameters() if not torch.equal(weight.detach(), other[name])
    }
    layers = ("self_attention.project", "self_attention.out", "feedforward.widen", "feedforward.narrow")
    assert different == {f"decoder.blocks.{layer}.{name}.weight" for layer in range(2) for name in layers}


def test_queries_keys_and_values_are_matrices_of_their_own() -> None:
    model = small_model()
    sizes: dict[Tensor, tuple[int, ...]] = dict(matrices_inside(model))
    stacked = [module for module in model.modules() if isinstance(module, Stacked)]
    assert [sizes[module.weight] for module in stacked] == [(16, 16, 16)] * 2

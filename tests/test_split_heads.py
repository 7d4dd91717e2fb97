"""Heads taken apart in one pass are those that PyTorch takes apart and turns, forward and backward."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from saccade import native
from saccade.arch.positions import RotaryConfig
from saccade.nn import split_heads as at_once
from saccade.nn.multihead import CrossAttention, SelfAttention
from saccade.nn.rotary import Rotary
from saccade.nn.split_heads import Part, split_heads

pytestmark = pytest.mark.skipif(native.kernels() is None, reason="no kernels on this machine")
HEAD_WIDTH = 6


def plain(x_BTE: Tensor, parts: Sequence[Part], rotary: Rotary | None, start: int) -> tuple[Tensor, ...]:
    split = x_BTE.float().split([part.heads * HEAD_WIDTH for part in parts], dim=-1)
    heads = [x.view(*x.shape[:2], -1, HEAD_WIDTH).transpose(1, 2) for x in split]
    return tuple(
        rotary(x, start) if part.turned and rotary is not None else x for x, part in zip(heads, parts, strict=True)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", ["interleaved", "halves", None])
@pytest.mark.parametrize("start", [0, 7])
def test_heads_and_gradients_equal(dtype: torch.dtype, layout: str | None, start: int) -> None:
    rotary = None if layout is None else Rotary(HEAD_WIDTH, layout=layout)
    parts = [Part(4, rotary is not None), Part(2, rotary is not None), Part(2)]
    x_BTE = torch.randn(3, 5, 8 * HEAD_WIDTH).to(dtype).requires_grad_()
    expected = plain(x_BTE, parts, rotary, start)
    found = split_heads(x_BTE, parts, rotary, start)
    weights = [torch.randn_like(x) for x in expected]
    gradients = [
        torch.autograd.grad(sum((x * w).sum() for x, w in zip(split, weights, strict=True)), x_BTE)[0]  # type: ignore[arg-type]
        for split in (expected, found)
    ]
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(
        gradients[1], gradients[0], **({} if dtype == torch.float32 else {"rtol": 0.01, "atol": 0.01})
    )


def test_numbers_that_are_none_stay_none_when_they_are_rounded() -> None:
    x_BTE = torch.randn(1, 2, HEAD_WIDTH, dtype=torch.bfloat16, requires_grad=True)
    (split,) = split_heads(x_BTE, [Part(1)], None)
    strange = torch.tensor([float("nan"), float("inf"), -float("inf"), 3.4e38, 1.00390625, 1.01171875]).expand(2, 6)
    split.backward(strange.view(1, 1, 2, 6))  # type: ignore[no-untyped-call]
    assert x_BTE.grad is not None
    assert torch.equal(x_BTE.grad.isnan(), strange.view(1, 2, 6).isnan())
    torch.testing.assert_close(x_BTE.grad, strange.view(1, 2, 6).bfloat16(), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("key_heads", [4, 2])
def test_attention_learns_the_same_with_and_without(key_heads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rotary = Rotary(HEAD_WIDTH, RotaryConfig().base)
    own = SelfAttention(24, 4, key_heads=key_heads, rotary=rotary)
    cross = CrossAttention(24, 4, 24, rotary=rotary)
    x_BTD, memory_BSD = torch.randn(2, 5, 24), torch.randn(2, 7, 24)

    def gradients() -> list[Tensor]:
        total = (cross(own(x_BTD), cross.keys_values(memory_BSD)) ** 2).sum()
        return list(torch.autograd.grad(total, [*own.parameters(), *cross.parameters()]))

    used = 0
    once = at_once.splits_at_once

    def counted(*arguments: object) -> bool:
        nonlocal used
        used += 1
        return once(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("saccade.nn.multihead.splits_at_once", counted)
    found = gradients()
    assert used == 3
    monkeypatch.setattr("saccade.nn.multihead.splits_at_once", lambda *_: False)
    for one, other in zip(found, gradients(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)

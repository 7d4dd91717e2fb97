"""The loss a few rows at a time is PyTorch's cross-entropy: value and gradients, with and without the C kernels."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from saccade import native
from saccade.nn.dropout import Dropout
from saccade.train import loss
from saccade.train.loss import cross_entropy


@pytest.fixture(params=["kernels", "plain"], autouse=True)
def _with_and_without_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(native, "_load", lambda: "no C compiler")
    elif native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows_at_once", [1, 7, 1000])
def test_value_and_gradients_are_pytorchs(
    smoothing: float, bias: bool, rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, width, vocabulary = 33, 12, 50
    monkeypatch.setattr(loss, "CHUNK_BYTES", 4 * vocabulary * rows_at_once)
    head, features = nn.Linear(width, vocabulary, bias=bias), torch.randn(rows, width, requires_grad=True)
    labels = torch.randint(vocabulary, (rows,))
    found, likelihood = cross_entropy(features, head, labels, smoothing)
    (found / rows).backward()  # type: ignore[no-untyped-call]
    weights = [features, *head.parameters()]
    gradients = [weight.grad for weight in weights]
    for weight in weights:
        weight.grad = None
    expected = F.cross_entropy(head(features), labels, label_smoothing=smoothing, reduction="sum")
    (expected / rows).backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(likelihood, F.cross_entropy(head(features), labels, reduction="sum"))
    for weight, gradient in zip(weights, gradients, strict=True):
        torch.testing.assert_close(gradient, weight.grad, rtol=1e-4, atol=1e-6)


def test_without_gradients_the_same_value() -> None:
    head, features, labels = nn.Linear(12, 50), torch.randn(9, 12), torch.randint(50, (9,))
    with_them, _ = cross_entropy(features, head, labels, 0.1)
    with torch.inference_mode():
        without, _ = cross_entropy(features, head, labels, 0.1)
    torch.testing.assert_close(with_them, without)


def test_a_logit_that_is_no_number_is_not_hidden() -> None:
    head, features = nn.Linear(4, 10), torch.randn(3, 4)
    features[1, 2] = float("nan")
    found, _ = cross_entropy(features, head, torch.zeros(3, dtype=torch.long), 0.1)
    assert torch.isnan(found)


def test_the_logits_of_a_batch_are_never_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, held = [], []
    row_losses = loss._row_losses

    def counted(logits: torch.Tensor, *arguments: Any, **settings: Any) -> tuple[torch.Tensor, torch.Tensor]:
        at_once.append(logits.nbytes)
        held.append(logits.untyped_storage().nbytes())
        return row_losses(logits, *arguments, **settings)

    monkeypatch.setattr(loss, "_row_losses", counted)
    head, features = nn.Linear(8, 5000), torch.randn(2000, 8, requires_grad=True)
    cross_entropy(features, head, torch.zeros(2000, dtype=torch.long), 0.0)
    assert 0 < max(at_once) <= loss.CHUNK_BYTES
    assert max(held) <= loss.GRADIENT_BYTES < 2000 * 5000 * 4


@pytest.mark.skipif(native.kernels() is None, reason="no kernels on this machine")
@pytest.mark.parametrize("gradient", [True, False])
def test_rounded_logits_give_what_the_plain_path_gives(gradient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels = (3 * torch.randn(40, 300)).bfloat16(), torch.randint(300, (40,))
    ours = logits.clone()
    found = loss._row_losses(ours, labels, 0.1, gradient=gradient)
    monkeypatch.setattr(native, "kernels", lambda: None)
    expected = loss._row_losses(logits, labels, 0.1, gradient=gradient)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours, logits)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_with_its_sum_drops_and_passes_the_gradient_alike(p: float) -> None:
    dropout = Dropout(p).train()
    x, f = torch.randn(400, 33, requires_grad=True), torch.ones(400, 33, requires_grad=True)
    total = dropout.add(x, f)
    total.sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert f.grad is not None
    torch.testing.assert_close(total, x + f.grad)  # f is one: what it added is what its gradient shows
    assert torch.equal(x.grad, torch.ones_like(x))
    assert sorted(set(f.grad.unique().tolist())) == pytest.approx([0.0, 1 / (1 - p)])
    assert float((f.grad == 0).float().mean()) == pytest.approx(p, abs=4 * (p * (1 - p) / f.numel()) ** 0.5)


def test_dropout_is_the_seeds_alone() -> None:
    dropout, x = Dropout(0.3).train(), torch.randn(1000, 70)
    torch.manual_seed(5)
    one = dropout(x)
    assert not torch.equal(dropout(x), one)  # drawn anew at every call
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        torch.manual_seed(5)
        assert torch.equal(dropout(x), one)  # and not by how many threads there are
    finally:
        torch.set_num_threads(threads)


def test_dropout_does_nothing_when_not_training() -> None:
    dropout, x, f = Dropout(0.3).eval(), torch.randn(3, 4), torch.randn(3, 4)
    assert torch.equal(dropout.add(x, f), x + f)

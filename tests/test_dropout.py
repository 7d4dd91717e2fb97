"""Our dropout is dropout: the share, the scale, the gradient, and nothing outside training."""

import pytest
import torch

from saccade.nn.dropout import Dropout, TokenDropout, drawn_from


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_the_share_dropped_and_the_mean_kept(p: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(1000, 1003)  # a count that is no multiple of four
    y = Dropout(p)(x)
    # Five standard errors of a share over a million draws.
    assert (y == 0).float().mean().item() == pytest.approx(p, abs=5 * (p * (1 - p) / x.numel()) ** 0.5 + 2**-16)
    assert torch.equal(y[y != 0], torch.full_like(y[y != 0], 1 / (1 - p)))


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(0)
    dropped = (Dropout(0.5)(torch.ones(400_000)) == 0).float()
    for distance in (1, 2, 3, 4, 5):
        together = (dropped[:-distance] * dropped[distance:]).mean().item()
        assert together == pytest.approx(0.25, abs=0.005)


def test_the_gradient_flows_where_the_number_was_kept() -> None:
    x = torch.randn(50, 50, requires_grad=True)
    y = Dropout(0.3)(x)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad == 0, y == 0)


def test_nothing_happens_outside_training() -> None:
    x = torch.randn(5, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_the_same_seed_drops_the_same() -> None:
    x, dropout = torch.randn(64, 64), Dropout(0.2)
    torch.manual_seed(3)
    one = dropout(x)
    torch.manual_seed(3)
    assert torch.equal(one, dropout(x))


def test_tokens_are_hidden_in_training_only_and_marks_never() -> None:
    hide, tokens_BT = TokenDropout(0.3, mask=99, first=3), torch.arange(60).repeat(500, 1)
    with drawn_from(5):
        hidden_BT = hide(tokens_BT)
    with drawn_from(5):
        assert torch.equal(hide(tokens_BT), hidden_BT), "the seed decides"
    assert torch.equal(hidden_BT[:, :3], tokens_BT[:, :3])
    changed_BT = hidden_BT[:, 3:] != tokens_BT[:, 3:]
    assert (hidden_BT[:, 3:][changed_BT] == 99).all()
    assert float(changed_BT.float().mean()) == pytest.approx(0.3, abs=0.015)  # more than five deviations
    assert torch.equal(hide.eval()(tokens_BT), tokens_BT)

"""Attention: the oracle does what the formula says, masks mean what they say, and the fused path equals the oracle."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from saccade.nn.attention import SCALED_DOT, attend, attention
from saccade.nn.masks import Causal, Keys, Mask
from saccade.nn.scores import Additive, Dot, General, ScaledDot

WIDTH = 6
SCORES = {
    "additive": lambda: Additive(WIDTH, WIDTH, hidden=9),
    "dot": Dot,
    "general": lambda: General(WIDTH, WIDTH),
    "scaled dot": ScaledDot,
}
SIZE = st.integers(1, 6)


def queries_keys_values(
    rows: int, heads: int, queries: int, keys: int, width: int = WIDTH, value_width: int = 4
) -> tuple[Tensor, Tensor, Tensor]:
    q_BNTD = torch.randn(rows, heads, queries, width)
    k_BNSD = torch.randn(rows, heads, keys, width)
    return q_BNTD, k_BNSD, torch.randn(rows, heads, keys, value_width)


def masks(rows: int, keys: int) -> dict[str, Mask | None]:
    """Every kind of mask; in `keys` and in those joined with it, row 0 may look at nothing."""
    keys_BS = torch.rand(rows, keys) < 0.6
    keys_BS[0] = False
    offsets_B = torch.arange(rows) % keys
    return {
        "none": None,
        "keys": Keys(keys_BS),
        "causal": Causal(),
        "causal with offsets": Causal(offsets_B),
        "causal and keys": Causal() & Keys(keys_BS),
        "causal with offsets and keys": Causal(offsets_B) & Keys(keys_BS),
    }


MASKS = list(masks(1, 1))


# The oracle


@pytest.mark.parametrize("kind", SCORES)
@given(rows=SIZE, heads=SIZE, queries=SIZE, keys=SIZE, value_width=SIZE, seed=st.integers(0, 1000))
def test_weights_are_shares_of_the_allowed_keys(
    kind: str, rows: int, heads: int, queries: int, keys: int, value_width: int, seed: int
) -> None:
    torch.manual_seed(seed)
    q_BNTD, k_BNSD, v_BNSH = queries_keys_values(rows, heads, queries, keys, value_width=value_width)
    keys_BS = torch.rand(rows, keys) < 0.5
    context_BNTH, weights_BNTS = attention(q_BNTD, k_BNSD, v_BNSH, score=SCORES[kind](), mask=Keys(keys_BS))

    assert weights_BNTS.shape == (rows, heads, queries, keys)
    assert context_BNTH.shape == (rows, heads, queries, value_width)
    assert (weights_BNTS >= 0).all()
    for row in range(rows):
        assert (weights_BNTS[row][..., ~keys_BS[row]] == 0).all()
        expected = 1.0 if keys_BS[row].any() else 0.0
        torch.testing.assert_close(weights_BNTS[row].sum(-1), torch.full((heads, queries), expected))


def test_context_is_the_average_of_the_values_by_weight() -> None:
    q_TD, k_SD, v_SH = (part[0, 0] for part in queries_keys_values(1, 1, queries=3, keys=5))
    context_TH, weights_TS = attention(q_TD, k_SD, v_SH)
    for t in range(3):
        shares = [math.exp(float(q_TD[t] @ k_SD[s]) / math.sqrt(WIDTH)) for s in range(5)]
        for s in range(5):
            assert float(weights_TS[t, s]) == pytest.approx(shares[s] / sum(shares), rel=1e-5)
        average_H = sum(share * v_SH[s] for s, share in enumerate(shares)) / sum(shares)
        torch.testing.assert_close(context_TH[t], average_H)


def test_scores_are_their_formulas_for_queries_and_keys_of_different_widths() -> None:
    q_TQ, k_SK = torch.randn(4, 6), torch.randn(3, 5)
    general, additive = General(6, 5), Additive(6, 5, hidden=7)
    general_TS, additive_TS = general(q_TQ, k_SK), additive(q_TQ, k_SK)
    for t in range(4):
        for s in range(3):
            torch.testing.assert_close(general_TS[t, s], q_TQ[t] @ general.key.weight @ k_SK[s])
            hidden = torch.tanh(additive.query.weight @ q_TQ[t] + additive.query.bias + additive.key.weight @ k_SK[s])
            torch.testing.assert_close(additive_TS[t, s], additive.energy.weight[0] @ hidden)


@pytest.mark.parametrize("kind", SCORES)
def test_many_queries_are_each_query_alone(kind: str) -> None:
    q_BNTD, k_BNSD, v_BNSH = queries_keys_values(2, 3, queries=5, keys=4)
    score = SCORES[kind]()
    together_BNTH, _ = attention(q_BNTD, k_BNSD, v_BNSH, score=score)
    alone = [attention(q_BNTD[..., t : t + 1, :], k_BNSD, v_BNSH, score=score)[0] for t in range(5)]
    torch.testing.assert_close(together_BNTH, torch.cat(alone, dim=-2))


def test_a_bias_of_log_c_makes_a_key_weigh_c_times_as_much() -> None:
    q_BNTD, k_BNSD, v_BNSH = queries_keys_values(1, 2, queries=3, keys=4)
    bias_S = torch.tensor([0.0, math.log(5.0), 0.0, 0.0])
    _, plain = attention(q_BNTD, k_BNSD, v_BNSH)
    context, biased = attention(q_BNTD, k_BNSD, v_BNSH, bias=bias_S)
    torch.testing.assert_close(biased[..., 1] / biased[..., 0], 5 * plain[..., 1] / plain[..., 0])
    torch.testing.assert_close(attend(nn.Module(), q_BNTD, k_BNSD, v_BNSH, bias=bias_S), context)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("fast", [False, True], ids=["oracle", "attend"])
def test_a_row_that_may_look_at_nothing_gives_zeros_and_a_finite_gradient(kind: str, fast: bool) -> None:
    parts = [part.requires_grad_() for part in queries_keys_values(2, 1, queries=3, keys=4)]
    mask = Keys(torch.tensor([[False] * 4, [True, True, False, True]]))
    score = SCORES[kind]()
    if fast:
        context_BNTH = attend(nn.Module(), *parts, score=score, mask=mask)
    else:
        context_BNTH, _ = attention(*parts, score=score, mask=mask)
    assert (context_BNTH[0] == 0).all()
    assert (context_BNTH[1] != 0).any()
    context_BNTH.square().sum().backward()
    for part in parts:
        assert part.grad is not None
        assert part.grad.isfinite().all()
        assert (part.grad[0] == 0).all()
        assert (part.grad[1] != 0).any()


# Masks


@given(rows=SIZE, queries=SIZE, keys=SIZE, seed=st.integers(0, 1000))
def test_joined_masks_allow_what_both_allow(rows: int, queries: int, keys: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    keys_BS = torch.rand(rows, keys, generator=random) < 0.5
    offsets_B = torch.randint(0, keys, (rows,), generator=random)
    for causal, offsets in ((Causal(), [0] * rows), (Causal(offsets_B), offsets_B.tolist())):
        expected = [
            [[bool(keys_BS[b, s]) and s <= offsets[b] + t for s in range(keys)] for t in range(queries)]
            for b in range(rows)
        ]
        for joined in (causal & Keys(keys_BS), Keys(keys_BS) & causal):
            allowed = joined.allowed(queries, keys).expand(rows, 1, queries, keys)
            assert allowed[:, 0].tolist() == expected


def test_a_key_mask_is_never_made_as_large_as_queries_times_keys() -> None:
    assert Keys(torch.ones(2, 7, dtype=torch.bool)).allowed(1000, 7).numel() == 2 * 7


# The path that is used


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (1, 9), (9, 4), (33, 70)])
def test_attend_equals_the_oracle(kind: str, name: str, queries: int, keys: int) -> None:
    # Values as wide as keys and not: PyTorch takes another kernel for each.
    for value_width in (WIDTH, 4):
        parts = queries_keys_values(3, 2, queries, keys, value_width=value_width)
        score, mask = SCORES[kind](), masks(3, keys)[name]
        expected, _ = attention(*parts, score=score, mask=mask)
        torch.testing.assert_close(attend(nn.Module(), *parts, score=score, mask=mask), expected, atol=1e-5, rtol=1e-5)


def test_attend_equals_the_oracle_where_hundreds_of_keys_in_a_row_are_hidden() -> None:
    # The fused kernel reads keys in blocks of 512: one in which nothing is allowed must leave no trace.
    parts = queries_keys_values(3, 2, queries=40, keys=1100, value_width=WIDTH)
    keys_BS = torch.ones(3, 1100, dtype=torch.bool)
    keys_BS[0, :530], keys_BS[1, 500:1090], keys_BS[2] = False, False, False
    for mask in (Keys(keys_BS), Keys(keys_BS) & Causal(torch.tensor([540, 1000, 0]))):
        expected, _ = attention(*parts, mask=mask)
        torch.testing.assert_close(attend(nn.Module(), *parts, mask=mask), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", MASKS)
def test_attend_has_the_gradient_of_the_oracle(name: str) -> None:
    parts = [part.requires_grad_() for part in queries_keys_values(3, 2, queries=6, keys=6)]
    mask = masks(3, 6)[name]
    pull = torch.randn(3, 2, 6, 4)
    plain = torch.autograd.grad(attention(*parts, mask=mask)[0], parts, pull)
    fused = torch.autograd.grad(attend(nn.Module(), *parts, mask=mask), parts, pull)
    for one, other in zip(plain, fused, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


# Why the scale (Vaswani et al. 2017, 3.2.1)

WIDTHS = [4, 16, 64, 256, 1024]


@pytest.mark.parametrize("width", WIDTHS)
def test_scaled_scores_have_variance_one_and_unscaled_ones_the_width(width: int) -> None:
    q_B1D, k_B1D = torch.randn(8192, 1, width), torch.randn(8192, 1, width)
    assert float(SCALED_DOT(q_B1D, k_B1D).var()) == pytest.approx(1.0, rel=0.15)
    assert float(Dot()(q_B1D, k_B1D).var()) == pytest.approx(width, rel=0.15)


def test_without_the_scale_softmax_saturates_as_the_width_grows() -> None:
    def entropies(score: nn.Module) -> list[float]:
        found = []
        for width in WIDTHS:
            q_TD, k_SD = torch.randn(200, width), torch.randn(64, width)
            found.append(float(torch.special.entr(attention(q_TD, k_SD, k_SD, score=score)[1]).sum(-1).mean()))
        return found

    unscaled, scaled = entropies(Dot()), entropies(ScaledDot())
    assert all(wider < narrower for narrower, wider in itertools.pairwise(unscaled))
    assert unscaled[-1] < 0.2, "almost one-hot"
    assert max(scaled) - min(scaled) < 0.2
    assert min(scaled) > 0.8 * math.log(64), "almost even"

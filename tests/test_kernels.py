"""The C kernels equal plain PyTorch, up to the rounding they promise."""

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from saccade import native
from saccade.arch.gpt import GptConfig
from saccade.decode.choose import best_tokens
from saccade.runtime.kernels import unknown_parts
from saccade.runtime.packing import Packed

needs_kernels = pytest.mark.skipif(native.kernels() is None, reason=f"no C kernels: {native.why_not()}")
pytestmark = needs_kernels


@pytest.fixture(autouse=True)
def _no_gradients() -> object:
    with torch.inference_mode():
        yield


def packed(linear: nn.Linear, bits: int) -> Callable[[Tensor], Tensor]:
    layer = Packed.of(linear.weight.numpy(), None if linear.bias is None else linear.bias.numpy(), bits)
    return lambda x: torch.from_numpy(layer(x.numpy()))


def distance(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm() / other.norm())


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 13, 40])
@pytest.mark.parametrize(("inputs", "outputs"), [(32, 16), (250, 77), (33, 1), (513, 40), (2048, 24), (1, 17)])
@pytest.mark.parametrize(("bits", "near"), [(16, 1e-3), (8, 1e-2)])
def test_a_packed_layer_is_the_layer_for_every_shape(
    rows: int, inputs: int, outputs: int, bits: int, near: float
) -> None:
    linear, x = nn.Linear(inputs, outputs), torch.randn(rows, inputs)
    error = (packed(linear, bits)(x) - linear(x)).abs()
    # Measured against the lengths of both vectors: their product itself may nearly vanish.
    assert bool((error <= near * x.norm(dim=1)[:, None] * linear.weight.norm(dim=1)).all())


def test_a_packed_layer_without_bias_and_with_more_dimensions() -> None:
    linear, x = nn.Linear(24, 40, bias=False), torch.randn(2, 3, 5, 24).transpose(0, 1)
    assert distance(packed(linear, 16)(x), linear(x)) < 1e-3


def test_the_largest_integers_do_not_overflow() -> None:
    linear = nn.Linear(4096, 20, bias=False)
    linear.weight.fill_(1.0)
    x = torch.ones(7, 4096)
    torch.testing.assert_close(packed(linear, 16)(x), linear(x), rtol=1e-5, atol=0)
    torch.testing.assert_close(packed(linear, 8)(-x), linear(-x), rtol=1e-5, atol=0)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("weight", [1.0, -1.0])
def test_the_widest_layer_does_not_overflow(bits: int, weight: float) -> None:
    """Whatever comes first: sums that grow and shrink again, and bytes that are shifted to be positive."""
    inputs = native.MOST_INPUTS
    linear = nn.Linear(inputs, 17, bias=False)
    linear.weight.fill_(weight)
    x = torch.ones(5, inputs)
    x[1] = -1
    x[2, inputs // 4 :] = -1
    x[3, : inputs // 4] = -1
    x[4, ::2] = -1
    torch.testing.assert_close(packed(linear, bits)(x), linear(x), rtol=1e-5, atol=1e-2)


def test_a_wider_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="131,073 inputs"):
        packed(nn.Linear(native.MOST_INPUTS + 1, 1, bias=False), 8)
    config = GptConfig(layers=1, width=16, heads=2, feedforward=native.MOST_INPUTS + 1)
    assert unknown_parts(config) == ["feedforward = 131073"]
    assert unknown_parts(GptConfig(layers=1, width=16, heads=2, feedforward=native.MOST_INPUTS)) == []


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf, 3e38])
def test_a_row_of_bad_numbers_spoils_no_other(bits: int, bad: float) -> None:
    layer, x = packed(nn.Linear(100, 60), bits), torch.randn(7, 100)
    before = layer(x)
    x[3, ::7] = bad
    after = layer(x)
    assert torch.equal(after[:3], before[:3])
    assert torch.equal(after[4:], before[4:])


def test_the_best_of_rows_with_bad_numbers_are_tokens() -> None:
    logits = torch.randn(5, 100)
    logits[1, 10:] = torch.nan
    logits[2] = torch.nan
    logits[3] = -torch.inf
    logits[4, 5] = torch.inf
    logprobs, tokens = best_tokens(logits.numpy(), 4)
    assert ((tokens >= 0) & (tokens < 100)).all()
    expected = logits[:1].log_softmax(dim=1).topk(4, dim=1)
    assert tokens[:1].tolist() == expected.indices.tolist()
    torch.testing.assert_close(torch.from_numpy(logprobs[:1]), expected.values, rtol=1e-5, atol=1e-5)


def test_zeros_stay_zeros() -> None:
    linear = nn.Linear(20, 30)
    linear.weight[3] = 0
    found = packed(linear, 16)(torch.zeros(2, 20))
    assert torch.equal(found, linear.bias.expand(2, 30))


def test_weights_stored_as_int8_are_kept_exactly() -> None:
    """The rest is the rounding of the inputs, thirteen bits of them."""
    linear = nn.Linear(64, 64, bias=False)
    scale = torch.rand(64, 1) + 0.1
    linear.weight.copy_(torch.randint(-127, 128, (64, 64)) * scale)
    linear.weight[:, 0] = 127 * scale[:, 0]
    x = torch.randint(-100, 100, (5, 64)).float()
    x[:, 0] = 4095 / 5
    assert distance(packed(linear, 16)(x), linear(x)) < 2e-4
    x = (x * 5).round()  # already on the grid of the inputs
    x[:, 0] = 4095
    torch.testing.assert_close(packed(linear, 16)(x), linear(x), rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_row_does_not_depend_on_its_neighbours(bits: int) -> None:
    layer, x = packed(nn.Linear(100, 60), bits), torch.randn(23, 100)
    x[5] *= 1000
    together = layer(x)
    for row in range(23):
        assert torch.equal(layer(x[row : row + 1])[0], together[row])


def test_one_thread_and_two_give_the_same() -> None:
    layer, x = packed(nn.Linear(100, 60), 16), torch.randn(23, 100)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = layer(x)
        torch.set_num_threads(2)
        assert torch.equal(layer(x), one)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(("rows", "vocabulary", "count"), [(1, 5, 5), (3, 33, 4), (160, 1000, 10), (2, 40_000, 1)])
def test_the_best_tokens_are_those_of_a_whole_log_softmax(rows: int, vocabulary: int, count: int) -> None:
    logits = 5 * torch.randn(rows, vocabulary)
    logits[:, 1] = -torch.inf
    logprobs, tokens = best_tokens(logits.numpy(), count)
    expected = logits.log_softmax(dim=1).topk(count, dim=1)
    assert tokens.tolist() == expected.indices.tolist()
    torch.testing.assert_close(torch.from_numpy(logprobs), expected.values, rtol=1e-5, atol=1e-5)


def test_of_equal_tokens_the_lower_comes_first() -> None:
    _, tokens = best_tokens(np.zeros((1, 100), dtype=np.float32), 3)
    assert tokens.tolist() == [[0, 1, 2]]


def test_without_kernels_numpy_finds_the_same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.randn(40, 50)
    logits[:, 1] = -torch.inf
    monkeypatch.setattr(native, "_load", lambda: "no C compiler")
    logprobs, tokens = best_tokens(logits.numpy(), 3)
    expected = logits.log_softmax(dim=1).topk(3, dim=1)
    assert tokens.tolist() == expected.indices.tolist()
    torch.testing.assert_close(torch.from_numpy(logprobs), expected.values)


def test_the_structures_are_as_large_as_in_c() -> None:
    library = native.needed()
    sizes = (ctypes.c_int * 7)()
    library.structure_sizes(sizes)
    stacks, grids = (native.Layer, native.Stack, native.Job), (native.PictureConvolution, native.Grids)
    assert list(sizes) == [ctypes.sizeof(kind) for kind in (native.Linear, native.Norm, *stacks, *grids)]

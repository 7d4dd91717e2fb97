"""Convolutions over pictures: PyTorch's numbers, pictures of any size alone or padded, the attention module, batch norm
in training and folded, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from saccade import native
from saccade.arch.convolutions import ConvolutionsFrontEnd, Pair
from saccade.arch.heads import ClassHead, EncoderModel
from saccade.arch.weights import parameters, stored
from saccade.errors import UserError, WrongUse
from saccade.models.answering import arrays_of
from saccade.models.encoders import build_encoder_model
from saccade.nn.convolutions import BatchNorm, GridAttention, GridConvolution, PictureConvolutions
from saccade.nn.watch import watch
from saccade.runtime.contract import Array
from saccade.runtime.convolutions import PlainConvolutions
from saccade.runtime.kernel_pictures import KernelConvolutions
from saccade.runtime.open import EncoderRuntime
from saccade.runtime.watch import watching
from saccade.sites import Edit
from saccade.train.gradients import PlainGradients, choose_gradients
from saccade.train.objective import ClassObjective

NEAR = 1e-5
STAGES = [
    {"width": 8, "kernel": 3},
    {"width": 12, "stride": [2, 2], "residual": 1},
    {"width": 16, "pool": [2, 3], "more": 1},
]
FRONT = {"kind": "convolutions", "height": 16, "width": 24, "stages": STAGES, "attention": [2, 3]}
STACK = {"kind": "transformer", "layers": 2, "width": 12, "heads": 4, "feedforward": 24, "dropout": 0.0}
CASES: dict[str, dict[str, Any]] = {
    "a grid": {"kind": "grid", "front": FRONT | {"positions": False}},
    "a grid, layer norm, gelu": {"kind": "grid", "front": FRONT | {"norm": "layer", "activation": "gelu"}},
    "a Transformer on it": STACK | {"front": FRONT},
    "a Transformer, no norm, class token": STACK | {"front": FRONT | {"norm": "none", "class_token": True}},
}
SIZES = [(16, 24), (9, 24), (16, 5), (3, 7), (1, 1)]


def classifier(name: str) -> tuple[Any, EncoderModel]:
    torch.manual_seed(0)
    config = EncoderModel.read({"encoder": CASES[name], "head": {"outputs": 5, "pooling": "mean"}}, where=name)
    model = build_encoder_model(config, 0).eval()
    with torch.no_grad():
        for part, weight in model.named_parameters():
            noise = 0.1 * torch.randn_like(weight)
            weight.add_(noise.abs() if part.endswith("variance") else noise)
    return model, config


def pictures() -> list[Array]:
    random = np.random.default_rng(0)
    return [random.random((*size, 3)).astype(np.float32) for size in SIZES]


def padded(ones: list[Array]) -> tuple[Array, Array]:
    """With what would be noticed around them."""
    whole, mask = np.full((len(ones), 16, 24, 3), 9, np.float32), np.zeros((len(ones), 16, 24), bool)
    for number, one in enumerate(ones):
        whole[number, : one.shape[0], : one.shape[1]] = one
        mask[number, : one.shape[0], : one.shape[1]] = True
    return whole, mask


def by_torch(model: Any, whole: Array, mask: Array | None = None) -> Array:
    with torch.no_grad():
        logits: Tensor = model(torch.from_numpy(whole), None if mask is None else torch.from_numpy(mask))
    return logits.numpy()


@pytest.mark.parametrize("name", CASES)
def test_pictures_of_any_size_are_each_alone(name: str) -> None:
    model, config = classifier(name)
    together = by_torch(model, *padded(pictures()))
    runtime = EncoderRuntime(config, arrays_of(model), "exact")
    plain = runtime.outputs(*padded(pictures()))
    for number, one in enumerate(pictures()):
        np.testing.assert_allclose(by_torch(model, one[None])[0], together[number], atol=NEAR)
        np.testing.assert_allclose(runtime.outputs(one[None])[0], plain[number], atol=NEAR)


@pytest.mark.parametrize("name", CASES)
def test_the_runtimes_are_pytorch(name: str) -> None:
    model, config = classifier(name)
    expected = by_torch(model, *padded(pictures()))
    runtime = EncoderRuntime(config, arrays_of(model), "exact")
    np.testing.assert_allclose(runtime.outputs(*padded(pictures())), expected, atol=NEAR)
    fast = EncoderRuntime(config, arrays_of(model))
    assert native.kernels() is None or fast.choice.engine == "kernels"
    difference = fast.outputs(*padded(pictures())) - expected
    assert float(np.linalg.norm(difference) / np.linalg.norm(expected)) < 2e-3


@pytest.mark.parametrize("how", ["int16", "int8"])
@pytest.mark.parametrize("name", CASES)
def test_the_kernels_read_each_picture_as_if_alone(name: str, how: Any) -> None:
    if native.kernels() is None:
        pytest.skip("no C kernels here")
    model, config = classifier(name)
    fast = EncoderRuntime(config, arrays_of(model), how)
    together = fast.outputs(*padded(pictures()))
    exact = EncoderRuntime(config, arrays_of(model), "exact").outputs(*padded(pictures()))
    assert float(np.linalg.norm(together - exact) / np.linalg.norm(exact)) < (0.1 if how == "int8" else 2e-3)
    for number, one in enumerate(pictures()):
        np.testing.assert_allclose(fast.outputs(one[None])[0], together[number], atol=NEAR)
    with native.single_threaded():
        assert np.array_equal(fast.outputs(*padded(pictures())), together)


@pytest.mark.parametrize("pool", [(1, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize(("kernel", "stride"), [(1, (1, 1)), (3, (1, 1)), (3, (2, 1)), (5, (3, 2))])
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
def test_a_stage_on_the_kernels_is_the_plain_one(norm: Any, kernel: int, stride: Pair, pool: Pair) -> None:
    """With several strips and threads, channels that fill no step, and more outputs than a panel has."""
    if native.kernels() is None:
        pytest.skip("no C kernels here")
    stage = {"width": 21, "kernel": kernel, "stride": stride, "pool": pool, "more": 1, "residual": 1}
    options = {"kind": "convolutions", "height": 40, "width": 90, "channels": 5, "norm": norm, "activation": "gelu"}
    front = ConvolutionsFrontEnd.read(options | {"stages": [stage]}, where="test")
    random = np.random.default_rng(0)
    shapes = stored(front.weights(21, 0, "source"))
    weights = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    weights |= {name: np.abs(weight) + 1 for name, weight in weights.items() if name.endswith("variance")}
    x = random.normal(0, 1, (3, 40, 90, 5)).astype(np.float32)
    mask = np.zeros(x.shape[:3], dtype=bool)
    mask[0, :, :], mask[1, :17, :31], mask[2, :1, :1] = True, True, True
    plain = PlainConvolutions(front, weights)
    for real in (None, mask):
        expected = plain(x, real)[0]
        for bits, most in ((16, 2e-3), (8, 0.1)):
            found = KernelConvolutions(front, weights, bits)(x, real)[0]
            assert float(np.linalg.norm(found - expected) / np.linalg.norm(expected)) < most


@pytest.mark.parametrize("name", CASES)
def test_watched_is_unwatched_and_both_hear_the_same(name: str) -> None:
    model, config = classifier(name)
    whole, mask = padded(pictures())
    runtime = EncoderRuntime(config, arrays_of(model), "exact")
    before = runtime.outputs(whole, mask)
    with watching() as heard:
        assert np.array_equal(runtime.outputs(whole, mask), before)
    with torch.no_grad(), watch(model) as looks:
        model(torch.from_numpy(whole), torch.from_numpy(mask))
    assert [(one.name, one.site) for one in heard] == [(one.name, one.site) for one in looks]
    assert heard.looks[0].name == "encoder.embed.stages.1.attention"
    assert heard.looks[0].memory == "source_stage2"
    for mine, theirs in zip(heard, looks, strict=True):
        np.testing.assert_allclose(mine.weights_BNTS, theirs.weights_BNTS.numpy(), atol=NEAR)
    edit = Edit(without_memory={"source_stage2": [0, 5]}, without_heads=[("encoder.embed.stages.2.attention", 0)])
    with watching(edit):
        edited = runtime.outputs(whole, mask)
    with torch.no_grad(), watch(model, edit):
        expected = by_torch(model, whole, mask)
    assert not np.allclose(edited, before, atol=1e-6)
    np.testing.assert_allclose(edited, expected, atol=NEAR)


@pytest.mark.parametrize("name", CASES)
def test_a_classifier_has_the_listed_tensors(name: str) -> None:
    model, config = classifier(name)
    described = config.weights(0)
    assert stored(described) == {n: tuple(weight.shape) for n, weight in model.named_parameters()}
    assert parameters(described) == sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


def test_many_pictures_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model, config = classifier("a grid")
    runtime = EncoderRuntime(config, arrays_of(model), "exact")
    expected = runtime.outputs(*padded(pictures()))
    monkeypatch.setattr("saccade.runtime.convolutions.NUMBERS_AT_ONCE", 1)
    few = EncoderRuntime(config, arrays_of(model), "exact")
    assert isinstance(few.plain.pictures, PlainConvolutions)
    assert few.plain.pictures.at_once == 1
    np.testing.assert_allclose(few.outputs(*padded(pictures())), expected, atol=NEAR)


# The parts are PyTorch's


@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (3, 2)])
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_a_convolution_is_pytorchs(kernel: int, stride: tuple[int, int]) -> None:
    ours, theirs = GridConvolution(4, 6, kernel, stride, bias=True), nn.Conv2d(4, 6, kernel, stride, kernel // 2)
    with torch.no_grad():
        theirs.weight.copy_(ours.weight.view(6, kernel, kernel, 4).permute(0, 3, 1, 2))
        theirs.bias.copy_(ours.bias)  # type: ignore[union-attr]
    x = torch.randn(2, 4, 7, 9)
    torch.testing.assert_close(ours(x), theirs(x))


def test_batch_norm_is_pytorchs_and_counts_in_training_only() -> None:
    ours, theirs, x = BatchNorm(5), nn.BatchNorm2d(5), torch.randn(4, 5, 3, 2)
    for _ in range(3):
        torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours.mean, theirs.running_mean)  # type: ignore[arg-type]
    torch.testing.assert_close(ours.variance, theirs.running_var)  # type: ignore[arg-type]
    before = ours.mean.clone()
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))
    with torch.no_grad():
        ours.train()(x)
    assert torch.equal(ours.mean, before)


def test_the_attention_module_begins_as_nothing_and_is_learnt() -> None:
    front = ConvolutionsFrontEnd.read(FRONT, where="test")
    module, x = GridAttention(front.stages[1], "grid"), torch.randn(2, 12, 3, 4)
    assert torch.equal(module(x, None), x)
    module(x, None).square().sum().backward()
    assert module.gain.grad is not None
    assert float(module.gain.grad.abs()) > 0


def test_without_the_module_a_model_is_the_same_at_the_start() -> None:
    parts = []
    for attention in ([2, 3], []):
        torch.manual_seed(0)
        front = ConvolutionsFrontEnd.read(FRONT | {"attention": attention}, where="test")
        parts.append(PictureConvolutions(front, 16, 0.0).eval())
    with_it, without = parts
    with_it.load_state_dict(without.state_dict(), strict=False)
    x = torch.rand(1, 16, 24, 3)
    torch.testing.assert_close(with_it(x).x_MSD, without(x).x_MSD)


# Training


def test_batches_are_not_cut_in_parts_where_means_are_counted() -> None:
    model, _ = classifier("a grid")
    assert isinstance(choose_gradients("auto", model, ClassObjective(), torch.float32), PlainGradients)
    with pytest.raises(UserError, match="batch norm"):
        choose_gradients("threads", model, ClassObjective(), torch.float32)
    plain, _ = classifier("a grid, layer norm, gelu")
    assert not isinstance(choose_gradients("auto", plain, ClassObjective(), torch.float32), PlainGradients)


# What is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stages": []}, "at least 1"),
        ({"stages": [{"width": 4, "kernel": 2}]}, "odd"),
        ({"stages": [{"width": 4, "stride": [0, 1]}]}, "between 1 and 64"),
        ({"attention": [4]}, "there are 3 stages"),
        ({"class_token": True, "positions": False}, "needs positions"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongUse, match=words):
        ConvolutionsFrontEnd.read(FRONT | options, where="front")


def test_a_head_on_a_grid_takes_its_mean() -> None:
    with pytest.raises(ValueError, match="pooling = 'mean'"):
        EncoderModel(encoder=CASES["a grid"], head=ClassHead(outputs=2))  # type: ignore[arg-type]
    front = ConvolutionsFrontEnd.read(FRONT, where="test")
    with pytest.raises(UserError, match="17 x 24 pixels"):
        front.grid_of(17, 24, 3)
    assert (front.cell, front.grid, front.grids_of(9, 5)) == ((4, 6), (4, 4), [(9, 5), (5, 3), (3, 1)])

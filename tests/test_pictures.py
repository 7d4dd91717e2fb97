"""Pictures as patches: every front end, head and runtime reads a picture alike, alone or padded."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from conftest import (
    ancestor,
    by_pytorch,
    on_plain,
    random_sequences,
    read,
    read_arrays,
)
from saccade import native
from saccade.arch.encoder_decoder import StackConfig
from saccade.arch.front_end import PatchesFrontEnd
from saccade.arch.heads import ClassHead, EncoderModel, TagsHead
from saccade.arch.weights import flops, parameters, stored
from saccade.errors import UserError
from saccade.models.answering import arrays_of
from saccade.models.encoders import build_encoder_model
from saccade.nn.front_end import Patches
from saccade.nn.watch import watch
from saccade.runtime.contract import Array, ArrayMemory
from saccade.runtime.open import EncoderRuntime, SequenceRuntime

NEAR = 1e-5
SOURCES = random_sequences([6, 3, 5])
FRONT = {"kind": "patches", "height": 8, "width": 12, "channels": 3, "patch": 4}
STACK = {"layers": 2, "width": 16, "heads": 4, "feedforward": 24, "dropout": 0.0}


def pictures(sizes: list[tuple[int, int]], front: PatchesFrontEnd) -> list[Array]:
    """Pictures of so many pixels each."""
    random = np.random.default_rng(0)
    return [random.standard_normal((*size, front.channels)).astype(np.float32) for size in sizes]


def padded(ones: list[Array], front: PatchesFrontEnd) -> tuple[Array, Array]:
    """In the upper left corner of the largest picture there is, with what would be noticed around them; and which
    pixels are theirs."""
    whole = np.full((len(ones), front.height, front.width, front.channels), 9, dtype=np.float32)
    mask = np.zeros(whole.shape[:3], dtype=bool)
    for number, one in enumerate(ones):
        height, width = one.shape[:2]
        whole[number, :height, :width] = one
        mask[number, :height, :width] = True
    return whole, mask


@dataclass(frozen=True)
class Case:
    model: Any
    config: EncoderModel
    front: PatchesFrontEnd


def classifier(pooling: str, *, class_token: bool = True, **options: Any) -> Case:
    torch.manual_seed(0)
    front = PatchesFrontEnd.read(FRONT | {"class_token": class_token}, where="test")
    encoder = StackConfig.read(STACK | {"front": front.table(), "activation": "gelu"} | options, where="test")
    config = EncoderModel(encoder=encoder, head=ClassHead.read({"outputs": 5, "pooling": pooling}, where="test"))
    model = build_encoder_model(config, 0).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return Case(model, config, front)


SIZES = [(8, 12), (4, 12), (8, 4), (3, 7), (1, 1)]
"""Some in whole patches, some not."""


def by_torch(model: Any, whole: Array, mask: Array | None = None) -> Array:
    with torch.no_grad():
        logits: Tensor = model(torch.from_numpy(whole), None if mask is None else torch.from_numpy(mask))
    return logits.numpy()


@pytest.mark.parametrize("pooling", ["dense", "first", "mean"])
def test_pictures_of_any_size_are_each_alone(pooling: str) -> None:
    case = classifier(pooling)
    ones = pictures(SIZES, case.front)
    together = by_torch(case.model, *padded(ones, case.front))
    for one, logits in zip(ones, together, strict=True):
        np.testing.assert_allclose(by_torch(case.model, one[None])[0], logits, atol=NEAR)


@pytest.mark.parametrize(
    "options", [{}, {"order": "post"}, {"norm": "rms", "gated": True, "activation": "silu"}], ids=str
)
@pytest.mark.parametrize(
    ("pooling", "class_token"), [("dense", True), ("first", True), ("mean", False), ("mean", True)]
)
def test_the_runtimes_classify_pictures_as_pytorch_does(
    pooling: str, class_token: bool, options: dict[str, Any]
) -> None:
    case = classifier(pooling, class_token=class_token, **options)
    whole, mask = padded(pictures(SIZES, case.front), case.front)
    expected, weights = by_torch(case.model, whole, mask), arrays_of(case.model)
    plain = EncoderRuntime(case.config, weights, "exact")
    np.testing.assert_allclose(plain.outputs(whole, mask), expected, atol=NEAR)
    assert plain.context == case.front.length
    if native.kernels() is not None:
        fast = EncoderRuntime(case.config, weights)
        assert fast.choice.engine == "kernels"
        difference = fast.outputs(whole, mask) - expected
        assert float(np.linalg.norm(difference) / np.linalg.norm(expected)) < 2e-3


def test_the_looks_of_a_picture_classifier_are_heard() -> None:
    case = classifier("first")
    one = np.stack(pictures([(8, 12)], case.front))
    with torch.no_grad(), watch(case.model) as looks:
        case.model(torch.from_numpy(one))
    heard = EncoderRuntime(case.config, arrays_of(case.model)).look(one)
    assert heard.encoder.shape == (2, 1, 4, 7, 7)
    np.testing.assert_allclose(heard.encoder, looks.encoder.numpy(), atol=NEAR)


@pytest.mark.parametrize(
    "name", ["patches to transformer", "patches, class token, post-norm", "one memory by its name"]
)
def test_the_kernels_read_pictures(name: str) -> None:
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    model = ancestor(name)
    fast, plain = SequenceRuntime(model.config, arrays_of(model)), on_plain(model)
    assert fast.choice.engine == "kernels"
    found, expected = (read_arrays(runtime, SOURCES) for runtime in (fast, plain))
    assert isinstance(found, ArrayMemory)
    assert isinstance(expected, ArrayMemory)
    real_MS = expected.mask_MS
    np.testing.assert_allclose(found.states_MSD[real_MS], expected.states_MSD[real_MS], atol=2e-3)
    assert found.grid == expected.grid
    tokens_BT, lengths_B = np.array(random_sequences([4, 4, 4], seed=2)), np.array([4, 4, 4])
    logits, expected_logits = (
        one.decoder.extend(tokens_BT, lengths_B, one.decoder.start(memory))[0]
        for one, memory in ((fast, found), (plain, expected))
    )
    assert float(np.linalg.norm(logits - expected_logits) / np.linalg.norm(expected_logits)) < 5e-3


def test_a_memory_of_a_picture_has_its_grid() -> None:
    model = ancestor("patches, class token, post-norm")
    front = model.encoder.config.front
    one = np.stack(pictures([(6, 4)], front))
    memory, arrays = model.read(torch.from_numpy(one)), on_plain(model).read(one)
    assert memory.grid == arrays.grid == by_pytorch(model).read(one).grid == (3, 2)
    assert memory.states_MSD.shape[1] == arrays.states_MSD.shape[1] == 1 + 3 * 2, "the class token stands before"
    assert arrays.rows(np.array([0, 0])).grid == (3, 2)
    assert read(ancestor("transformer to gru"), SOURCES).grid is None


def test_a_patch_is_its_own_square_and_knows_its_place() -> None:
    front = PatchesFrontEnd.read(FRONT, where="test")
    patches = Patches(front, 8, 0.0)
    (one,) = pictures([(8, 12)], front)
    before = patches(torch.from_numpy(one[None])).x_MSD[0].detach()
    for row in range(2):
        for column in range(3):
            changed = one.copy()
            changed[4 * row + 1, 4 * column + 2] += 1
            after = patches(torch.from_numpy(changed[None])).x_MSD[0].detach()
            moved = (after - before).abs().amax(-1) > 0
            assert moved.nonzero().flatten().tolist() == [3 * row + column]
    corner = patches(torch.from_numpy(one[None, :, :4])).x_MSD[0]
    torch.testing.assert_close(corner, before[[0, 3]], msg="the left column of patches keeps its places")


def test_pictures_that_do_not_fit_are_refused() -> None:
    front = PatchesFrontEnd.read(FRONT, where="test")
    for height, width, channels, words in (
        (8, 16, 3, "8 x 16 pixels with 3 channels was given to a model that reads 8 x 12"),
        (8, 12, 1, "with 1 channels"),
    ):
        with pytest.raises(UserError, match=words):
            front.grid_of(height, width, channels)


# The records


@pytest.mark.parametrize(
    ("layers", "width", "heads", "patch", "count"),
    [(12, 768, 12, 16, 86_567_656), (24, 1024, 16, 16, 304_326_632), (32, 1280, 16, 14, 632_045_800)],
    ids=["ViT-B/16", "ViT-L/16", "ViT-H/14"],
)
def test_vision_transformers_are_counted_exactly(layers: int, width: int, heads: int, patch: int, count: int) -> None:
    encoder = StackConfig(
        layers=layers,
        width=width,
        heads=heads,
        feedforward=4 * width,
        activation="gelu",
        front=PatchesFrontEnd(patch=patch, class_token=True),
    )
    assert parameters(EncoderModel(encoder=encoder, head=ClassHead(outputs=1000, pooling="first")).weights(0)) == count


@pytest.mark.parametrize("class_token", [False, True])
@pytest.mark.parametrize("pooling", ["dense", "first", "mean"])
def test_a_picture_classifier_has_the_listed_tensors(pooling: str, class_token: bool) -> None:
    case = classifier(pooling, class_token=class_token)
    assert stored(case.config.weights(0)) == {
        name: tuple(weight.shape) for name, weight in case.model.named_parameters()
    }


def test_a_class_token_is_a_position_but_no_patch() -> None:
    case = classifier("first")
    matrices = sum(w.numel() for n, w in case.model.encoder.named_parameters() if w.ndim == 2 and "embed" not in n)
    assert case.model.encoder.flops(7) == 2 * (7 * matrices + 6 * case.model.encoder.embed.patches.weight.numel())
    assert flops(case.config.weights(0), {"row": 1}) == 2 * 5 * 16


def test_only_classes_stand_on_pictures() -> None:
    encoder = StackConfig.read(STACK | {"front": FRONT}, where="test")
    with pytest.raises(ValueError, match="only classes"):
        EncoderModel(encoder=encoder, head=TagsHead(outputs=2))
    with pytest.raises(ValueError, match="needs a front end"):
        EncoderModel(encoder=StackConfig(), head=ClassHead(outputs=2))

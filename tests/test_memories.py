"""Encoders own their front end, and a decoder looks at several memories, each under its own name.

What holds for every family (padding, steps, joins, the runtime) is tested with all families; here is what is new.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from conftest import (
    ANCESTORS,
    MARKS,
    SEVERAL,
    ancestor,
    by_pytorch,
    given,
    on_plain,
    random_sequences,
    random_tokens_BT,
    read,
    read_arrays,
    shaken,
    tensors,
)
from saccade import native
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.arch.front_end import PatchesFrontEnd
from saccade.arch.heads import ClassHead, EncoderModel, TagsHead
from saccade.arch.weights import flops, parameters, stored
from saccade.decode.row import Beam, Greedy, RowRequest
from saccade.decode.search import search
from saccade.errors import WrongUse
from saccade.models.answering import arrays_of
from saccade.models.contract import Memory, NamedMemories
from saccade.models.encdec import EncoderDecoder
from saccade.models.encoders import build_encoder_model
from saccade.nn.front_end import Patches
from saccade.nn.watch import watch
from saccade.runtime.contract import Array, ArrayMemories, ArrayMemory
from saccade.runtime.open import EncoderRuntime, SequenceRuntime
from saccade.runtime.watch import watching
from saccade.sites import Edit

NEAR = 1e-5
SOURCES, TARGET_BT = random_sequences([6, 3, 5]), random_tokens_BT(3, 5, seed=1)
FRONT = {"kind": "patches", "height": 8, "width": 12, "channels": 3, "patch": 4}
STACK = {"layers": 2, "width": 16, "heads": 4, "feedforward": 24, "dropout": 0.0}
LOOKING = [name for name in SEVERAL if ANCESTORS[name]["decoder"].get("attention") != "none"]


def written(model: EncoderDecoder, sources: Any) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model(sources, None, TARGET_BT)
    return logits


@pytest.fixture(params=SEVERAL)
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    return ancestor(request.param)


# Several memories


def test_the_order_in_which_sources_are_given_does_not_matter(model: EncoderDecoder) -> None:
    sources, _ = tensors(SOURCES, model)
    turned = dict(reversed(sources.items()))
    assert list(turned) != list(sources)
    assert torch.equal(written(model, turned), written(model, sources))
    memory = model.read(sources)
    assert torch.equal(
        model.decoder(TARGET_BT, NamedMemories(dict(reversed(memory.by_name.items())))),
        model.decoder(TARGET_BT, memory),
    )


def test_each_memory_matters_alone(model: EncoderDecoder) -> None:
    sources, _ = tensors(SOURCES, model)
    others, _ = tensors(random_sequences([6, 3, 5], seed=7), model)
    before = written(model, sources)
    for name in sources:
        assert not torch.allclose(written(model, sources | {name: others[name]}), before, atol=1e-4), name


def test_each_memory_has_its_own_padding(model: EncoderDecoder) -> None:
    """A memory is padded however long the others are."""
    sources, _ = tensors(SOURCES, model)
    lengths = {name: random_sequences([2, 8, 1], seed=3) for name in sources}
    for name in sources:
        mixed = sources | {name: tensors(lengths[name], model)[0][name]}
        together = written(model, mixed)
        for row in range(3):
            alone, _ = tensors([SOURCES[row]], model)
            one = tensors([lengths[name][row]], model)[0][name]
            with torch.no_grad():
                expected = model(alone | {name: one}, None, TARGET_BT[row : row + 1])
            torch.testing.assert_close(together[row : row + 1], expected, atol=NEAR, rtol=NEAR)


@pytest.mark.parametrize("decoder", ["patches to transformer", "patches to gru", "gru over patches"])
def test_one_memory_by_its_name_is_the_only_encoder_bit_for_bit(decoder: str) -> None:
    table = ANCESTORS[decoder]
    one = shaken(table, 20, 0)
    other = shaken({"encoders": {"picture": table["encoder"]}, "decoder": table["decoder"]}, 20, 1)
    renamed = {
        name.replace("encoder.", "encoder_picture.", 1)
        .replace("cross_attention.", "cross_attention_picture.")
        .replace("around_cross.", "around_cross_picture."): weight
        for name, weight in one.state_dict().items()
    }
    other.load_state_dict(renamed)
    with torch.no_grad():
        assert torch.equal(other(*tensors(SOURCES, other), TARGET_BT), one(*tensors(SOURCES, one), TARGET_BT))
    lengths = np.full(3, TARGET_BT.shape[1])
    found, expected = (
        plain.decoder.extend(TARGET_BT.numpy(), lengths, plain.decoder.start(read_arrays(plain, SOURCES)), every=True)[
            0
        ]
        for plain in (on_plain(other), on_plain(one))
    )
    assert np.array_equal(found, expected)


def test_a_memory_called_source_is_the_only_encoder() -> None:
    """`encoders` with one of this name has the tensors of `encoder`, and no model folder needs to change."""
    table = ANCESTORS["transformer to gru"]
    one, other = (
        EncoderDecoderConfig.read(part | {"decoder": table["decoder"], "tie": "none"}, where="test")
        for part in ({"encoder": table["encoder"]}, {"encoders": {"source": table["encoder"]}})
    )
    assert one.weights(20) == other.weights(20)


def test_a_memory_may_be_given_its_name_or_none_where_it_is_the_only_one() -> None:
    model = ancestor("one memory by its name")
    memory = read(model, SOURCES)
    assert isinstance(memory, Memory)
    assert torch.equal(model.decoder(TARGET_BT, memory), model.decoder(TARGET_BT, NamedMemories({"picture": memory})))


def test_other_memories_than_those_of_the_decoder_are_refused(model: EncoderDecoder) -> None:
    memory, runtime = read(model, SOURCES), on_plain(model)
    arrays = read_arrays(runtime, SOURCES)
    assert isinstance(memory, NamedMemories)
    assert isinstance(arrays, ArrayMemories)
    picture, sources = memory.by_name["picture"], given(model.config, SOURCES)[0]
    assert isinstance(sources, dict)
    for wrong in (picture, NamedMemories({"picture": picture}), NamedMemories({**memory.by_name, "sound": picture})):
        with pytest.raises(ValueError, match="looks at picture, question was given picture"):
            model.decoder.start(wrong)
    with pytest.raises(ValueError, match="looks at picture, question was given picture"):
        runtime.decoder.start(arrays.by_name["picture"])
    for reader in (runtime, by_pytorch(model)):
        with pytest.raises(ValueError, match="picture, question was given question"):
            reader.read({"question": sources["question"]})


def test_rows_of_several_memories_are_the_rows_of_each(model: EncoderDecoder) -> None:
    memory, chosen = read(model, SOURCES), torch.tensor([2, 0, 0])
    assert isinstance(memory, NamedMemories)
    for name, one in memory.rows(chosen).by_name.items():
        assert torch.equal(one.states_MSD, memory.by_name[name].states_MSD[chosen])


@pytest.mark.parametrize("by", [on_plain, by_pytorch], ids=["plain", "PyTorch"])
def test_texts_searched_together_are_each_alone(model: EncoderDecoder, by: Any) -> None:
    """Beams share their memories; rows leave as they end; the session only passes memories on."""
    runtime = by(model)
    requests = [
        RowRequest([MARKS.start], limit, strategy) for limit, strategy in ((3, Beam(3)), (7, Greedy()), (5, Beam(3)))
    ]
    together = search(runtime.decoder, requests, read_arrays(runtime, SOURCES), marks=MARKS)
    for row, source in enumerate(SOURCES):
        (alone,) = search(runtime.decoder, [requests[row]], read_arrays(runtime, [source]), marks=MARKS)
        assert [text.tokens for text in together[row]] == [text.tokens for text in alone]


# Looking


@pytest.mark.parametrize("name", LOOKING)
def test_each_memory_is_watched_under_its_own_name(name: str) -> None:
    model = ancestor(name)
    memory = read(model, SOURCES)
    before = model.decoder(TARGET_BT, memory)
    with watch(model) as looks:
        assert torch.equal(model.decoder(TARGET_BT, memory), before), "watched is unwatched, bit for bit"
    assert {look.memory for look in looks if look.kind == "cross"} == {"picture", "question"}
    for memory_name in ("picture", "question"):
        weights = looks.of("cross", memory_name)
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert (weights[:, 1, ..., len(SOURCES[1]) + 1 :] == 0).all(), "padding is not looked at"
        assert all(memory_name in look.name for look in looks if look.memory == memory_name)
    with pytest.raises(WrongUse, match="picture and question"):
        _ = looks.cross


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("hidden", ["picture", "question"])
def test_what_is_hidden_of_one_memory_is_masked_there_alone(name: str, hidden: str) -> None:
    """The decoder does not look at it; an encoder that attends does not either."""
    model = ancestor(name)
    runtime, lengths = on_plain(model), np.full(3, TARGET_BT.shape[1])
    with watching(Edit(without_memory={hidden: [1]})) as looks:
        state = runtime.decoder.start(read_arrays(runtime, SOURCES))
        found, _ = runtime.decoder.extend(TARGET_BT.numpy(), lengths, state, every=True)
    assert all(
        (look.weights_BNTS[..., 1] == 0).all() == (look.memory == hidden) for look in looks if look.kind == "cross"
    )
    with torch.no_grad(), watch(model, Edit(without_memory={hidden: [1]})):
        expected = model(*tensors(SOURCES, model), TARGET_BT).numpy()
    np.testing.assert_allclose(found, expected, atol=NEAR)


# Which runtime


def test_the_kernels_refuse_several_memories_by_name(model: EncoderDecoder) -> None:
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    choice = SequenceRuntime(model.config, arrays_of(model)).choice
    assert (choice.engine, choice.how) == ("plain", "exact")
    assert "encoders = picture, question" in choice.why


# Pictures


def pictures(sizes: list[tuple[int, int]], front: PatchesFrontEnd) -> list[Array]:
    """Pictures of so many patches each."""
    random = np.random.default_rng(0)
    return [
        random.standard_normal((rows * front.patch, columns * front.patch, front.channels)).astype(np.float32)
        for rows, columns in sizes
    ]


def padded(ones: list[Array], front: PatchesFrontEnd) -> tuple[Array, Array]:
    """In the upper left corner of the largest picture there is, with what would be noticed around them; and which
    patches are real."""
    rows, columns = front.grid
    whole = np.full((len(ones), front.height, front.width, front.channels), 9, dtype=np.float32)
    mask = np.zeros((len(ones), rows, columns), dtype=bool)
    for number, one in enumerate(ones):
        height, width = one.shape[:2]
        whole[number, :height, :width] = one
        mask[number, : height // front.patch, : width // front.patch] = True
    return whole, mask.reshape(len(ones), -1)


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


SIZES = [(2, 3), (1, 3), (2, 1), (1, 2)]


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
    one = np.stack(pictures([(2, 3)], case.front))
    with torch.no_grad(), watch(case.model) as looks:
        case.model(torch.from_numpy(one))
    heard = EncoderRuntime(case.config, arrays_of(case.model)).look(one)
    assert heard.encoder.shape == (2, 1, 4, 7, 7)
    np.testing.assert_allclose(heard.encoder, looks.encoder.numpy(), atol=NEAR)


@pytest.mark.parametrize("name", ["patches to transformer", "patches, class token, post-norm"])
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


def test_a_memory_of_a_picture_has_its_grid() -> None:
    model = ancestor("patches, class token, post-norm")
    front = model.encoder.config.front
    one = np.stack(pictures([(3, 2)], front))
    memory, arrays = model.read(torch.from_numpy(one)), on_plain(model).read(one)
    assert memory.grid == arrays.grid == by_pytorch(model).read(one).grid == (3, 2)
    assert memory.states_MSD.shape[1] == arrays.states_MSD.shape[1] == 1 + 3 * 2, "the class token stands before"
    assert arrays.rows(np.array([0, 0])).grid == (3, 2)
    assert read(ancestor("transformer to gru"), SOURCES).grid is None


def test_a_patch_is_its_own_square_and_knows_its_place() -> None:
    front = PatchesFrontEnd.read(FRONT, where="test")
    patches = Patches(front, 8, 0.0)
    (one,) = pictures([(2, 3)], front)
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
        (8, 10, 3, "8 x 10 pixels do not divide into patches of 4"),
    ):
        with pytest.raises(ValueError, match=words):
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


def test_each_memory_is_counted_by_its_own_positions() -> None:
    config = ancestor("two memories, transformer").config
    whole = config.flops(20, {"picture": 7, "question": 4}, 3)
    apart = [config.flops(20, {"picture": 7, "question": 0}, 0), config.flops(20, {"picture": 0, "question": 4}, 0)]
    assert whole == sum(apart) + config.flops(20, {"picture": 0, "question": 0}, 3)
    assert apart[0] == 7 * config.flops(20, {"picture": 1, "question": 0}, 0) > 0


def test_a_class_token_is_a_position_but_no_patch() -> None:
    case = classifier("first")
    matrices = sum(w.numel() for n, w in case.model.encoder.named_parameters() if w.ndim == 2 and "embed" not in n)
    assert case.model.encoder.flops(7) == 2 * (7 * matrices + 6 * case.model.encoder.embed.patches.weight.numel())
    assert flops(case.config.weights(0), {"row": 1}) == 2 * 5 * 16


def test_a_config_reads_what_it_writes_and_an_only_encoder_has_the_keys_it_had() -> None:
    for name in ANCESTORS:
        config = ancestor(name).config
        assert EncoderDecoderConfig.read(config.table(), where=name) == config
    table = EncoderDecoderConfig().table()
    assert table.keys() == {"kind", "encoder", "decoder", "tie"}
    assert "front" not in table["encoder"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"encoder": STACK, "encoders": {"picture": STACK}}, "one encoder, or several"),
        ({"encoders": {}}, "at least 1"),
        ({"encoders": {"Picture!": STACK}}, "'picture', in small letters, not 'Picture!'"),
        ({"encoders": {"target": STACK}}, "not 'target'"),
        ({"decoder": STACK | {"front": FRONT}}, "a front end is an encoder's"),
        ({"encoder": STACK | {"front": FRONT, "positions": {"kind": "learned"}}}, "positions of its own"),
        ({"encoder": STACK | {"front": FRONT | {"patch": 5}}}, "8 x 12 pixels do not divide into patches of 5"),
        (
            {"encoders": {"a": STACK, "b": STACK}, "decoder": {"kind": "convolution", "width": 16}},
            "convolutional decoder looks at one memory, not at 2",
        ),
        ({"encoders": {"a": STACK, "b": STACK | {"width": 8}}, "decoder": STACK}, "8 and 16"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_does_not_fit_is_said_in_one_line(table: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongUse, match=words) as raised:
        EncoderDecoderConfig.read(table, where="model")
    assert "\n" not in str(raised.value)


def test_only_classes_stand_on_pictures() -> None:
    encoder = StackConfig.read(STACK | {"front": FRONT}, where="test")
    with pytest.raises(ValueError, match="only classes"):
        EncoderModel(encoder=encoder, head=TagsHead(outputs=2))
    with pytest.raises(ValueError, match="needs a front end"):
        EncoderModel(encoder=StackConfig(), head=ClassHead(outputs=2))

"""Plain NumPy is the PyTorch model, for every family and part: logits, steps, attention weights, and edits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from conftest import ANCESTORS, MARKS, ancestor, random_sequences, read_arrays, shaken, tensors
from saccade import native
from saccade.arch.bert import BertConfig
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.heads import ClassHead, EncoderModel, TagsHead, WordsHead
from saccade.models.answering import arrays_of
from saccade.models.encdec import EncoderDecoder
from saccade.models.encoders import build_encoder_model
from saccade.nn import attention as nn_attention
from saccade.nn.masks import Keys
from saccade.nn.watch import watch
from saccade.runtime import kernels
from saccade.runtime.contract import Array
from saccade.runtime.open import EncoderRuntime, LanguageRuntime, SequenceRuntime, UnknownPart
from saccade.runtime.watch import watching
from saccade.sites import Edit
from saccade.sources.text import pad_sources
from tiny import CONTEXT, GPTS, tiny_gpt

NEAR = 1e-5
STACK = {"layers": 2, "width": 16, "heads": 4, "feedforward": 24, "dropout": 0.0}
LATER = {"norm": "rms", "gated": True, "activation": "silu", "key_heads": 2, "bias": False}
STACKS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"order": "post"},
    "gelu": {"activation": "gelu"},
    "learned": {"positions": {"kind": "learned", "length": 30}},
    "halves": {"positions": {"kind": "sinusoidal", "layout": "halves"}},
    "no positions": {"positions": {"kind": "none"}},
    "concatenated": {"combine": "concatenate"},
    "rotary": {"positions": {"kind": "rotary"}},
    "rotary halves": {"positions": {"kind": "rotary", "layout": "halves", "base": 50.0}},
    "rms": {"norm": "rms"},
    "gated": {"gated": True, "activation": "gelu"},
    "one key head": {"key_heads": 1},
    "no bias": {"bias": False},
    "epsilon": {"epsilon": 0.1},
    "all together": LATER | {"positions": {"kind": "rotary", "layout": "halves"}},
}
FAMILIES = [*STACKS, *(name for name in ANCESTORS if "convolution" not in name)]
SOURCES = random_sequences([7, 3, 5])
TARGETS = np.array(random_sequences([6, 6, 6], seed=4))


def sequence_model(name: str) -> EncoderDecoder:
    if name in ANCESTORS:
        return ancestor(name)
    stack = STACK | STACKS[name]
    return shaken({"encoder": stack, "decoder": stack, "tie": "none"}, 20, 0)


def teacher_forced(model: EncoderDecoder) -> Array:
    with torch.no_grad():
        logits: Tensor = model(*tensors(SOURCES, model), torch.from_numpy(TARGETS))
    return logits.numpy()


def written(runtime: SequenceRuntime) -> Array:
    state = runtime.decoder.start(read_arrays(runtime, SOURCES))
    logits, _ = runtime.decoder.extend(TARGETS, np.full(len(TARGETS), TARGETS.shape[1]), state, every=True)
    return logits


@pytest.mark.parametrize("name", FAMILIES)
def test_plain_encoders_and_decoders_are_pytorchs(name: str) -> None:
    model = sequence_model(name)
    runtime, expected = SequenceRuntime(model.config, arrays_of(model), "exact"), teacher_forced(model)
    np.testing.assert_allclose(written(runtime), expected, atol=NEAR)
    state = runtime.decoder.start(read_arrays(runtime, SOURCES))
    for place in range(TARGETS.shape[1]):
        logits, state = runtime.decoder.step(TARGETS[:, place], state)
        np.testing.assert_allclose(logits, expected[:, place], atol=NEAR)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_plain_state_keeps_its_rows_apart(name: str) -> None:
    """Ragged beginnings, beams that change places, sentences that leave, states that join: each row as if alone."""
    model = sequence_model(name)
    runtime = SequenceRuntime(model.config, arrays_of(model), "exact")
    decoder, lengths = runtime.decoder, np.array([4, 2, 1])

    def alone(source: list[int], tokens: list[int]) -> Array:
        memory = read_arrays(runtime, [source])
        return decoder.extend(np.array([tokens]), np.array([len(tokens)]), decoder.start(memory))[0][0]

    _, state = decoder.extend(TARGETS[:, :4], lengths, decoder.start(read_arrays(runtime, SOURCES)))
    texts = [(row, TARGETS[row, : lengths[row]].tolist()) for row in range(3)]
    _, other = decoder.extend(TARGETS[:1, :3], np.array([3]), decoder.start(read_arrays(runtime, SOURCES[1:2])))
    state = state.repeat(2).reorder(np.array([5, 0, 2, 1])).join(other)
    texts = [texts[2], texts[0], texts[1], texts[0], (1, TARGETS[0, :3].tolist())]
    new = np.array([6, 7, 8, 9, 10])
    logits, _ = decoder.step(new, state)
    for row, (source, tokens) in enumerate(texts):
        expected = alone(SOURCES[source], [*tokens, int(new[row])])
        np.testing.assert_allclose(logits[row], expected, atol=NEAR)


@pytest.mark.parametrize("name", GPTS)
def test_plain_language_models_are_pytorchs(name: str) -> None:
    model = tiny_gpt(name)
    tokens = np.array(random_sequences([CONTEXT, CONTEXT]))
    runtime = LanguageRuntime(model.config, arrays_of(model), "exact")
    with torch.no_grad(), watch(model) as looks:
        expected = model(torch.from_numpy(tokens)).numpy()
    # Weights of the tiny models are large, and so are their logits.
    np.testing.assert_allclose(runtime.logits(tokens), expected, atol=NEAR * np.abs(expected).max())
    heard = runtime.look(tokens).of("decoder")
    np.testing.assert_allclose(heard, looks.decoder.numpy(), atol=5e-5)


BERTS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"segments": 0, "epsilon": 1e-5},
    "pre-norm, rotary": {"order": "pre", "positions": {"kind": "rotary"}},
    "all together": LATER,
}
HEADS = [WordsHead(next_sentence=True), ClassHead(outputs=3), TagsHead(outputs=5)]


@dataclass(frozen=True)
class Asked:
    tokens_BT: Array
    mask_BT: Array
    segments_BT: Array
    chosen_BT: Array


def encoder_case(name: str, head: Any) -> tuple[nn.Module, EncoderModel, Asked]:
    torch.manual_seed(0)
    config = EncoderModel(encoder=BertConfig.read(STACK | {"context": 32} | BERTS[name], where=name), head=head)
    model = build_encoder_model(config, 21).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    tokens, mask = pad_sources(SOURCES, MARKS)
    segments = (np.arange(tokens.shape[1]) > 2).astype(np.int64) * np.ones((len(tokens), 1), dtype=np.int64)
    chosen = mask & (np.random.default_rng(0).random(tokens.shape) < 0.6)
    return model, config, Asked(tokens, mask, segments * mask, chosen)


def by_pytorch(model: Any, head: Any, asked: Asked) -> Array:
    tokens, mask, segments, chosen = map(torch.from_numpy, vars(asked).values())
    with torch.no_grad():
        if isinstance(head, ClassHead):
            return model(tokens, mask, segments).numpy()
        if isinstance(head, TagsHead):
            return model(tokens, mask, chosen).numpy()
        return model.guess(tokens, chosen, mask, segments)[0].numpy()


@pytest.mark.parametrize("head", HEADS, ids=repr)
@pytest.mark.parametrize("name", BERTS)
def test_plain_encoders_with_heads_are_pytorchs(name: str, head: Any) -> None:
    model, config, asked = encoder_case(name, head)
    runtime = EncoderRuntime(config, arrays_of(model), "exact")
    segments = None if isinstance(head, TagsHead) else asked.segments_BT
    found = runtime.outputs(asked.tokens_BT, asked.mask_BT, segments, asked.chosen_BT)
    np.testing.assert_allclose(found, by_pytorch(model, head, asked), atol=NEAR)


@pytest.mark.parametrize("head", HEADS, ids=repr)
@pytest.mark.parametrize("name", ["bert", "roberta", "pre-norm, rotary"])
@pytest.mark.parametrize(("how", "near"), [("int16", 2e-3), ("int8", 0.1)])
def test_encoders_with_heads_on_the_kernels_are_the_plain_ones(name: str, head: Any, how: Any, near: float) -> None:
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    model, config, asked = encoder_case(name, head)
    plain, fast = (EncoderRuntime(config, arrays_of(model), one) for one in ("exact", how))
    assert fast.choice.engine == "kernels"
    expected, found = (one.outputs(*vars(asked).values()) for one in (plain, fast))
    assert float(np.linalg.norm(found - expected) / np.linalg.norm(expected)) < near


# Looking


@pytest.mark.parametrize("name", FAMILIES)
def test_the_weights_heard_are_the_oracles(name: str) -> None:
    model = sequence_model(name)
    with torch.no_grad(), watch(model) as looks:
        model(*tensors(SOURCES, model), torch.from_numpy(TARGETS))
    runtime = SequenceRuntime(model.config, arrays_of(model), "exact")
    with watching() as heard:
        logits = written(runtime)
    assert [(look.name, look.site) for look in heard] == [(look.name, look.site) for look in looks]
    for mine, theirs in zip(heard.looks, looks, strict=True):
        np.testing.assert_allclose(mine.weights_BNTS, theirs.weights_BNTS.numpy(), atol=NEAR)
    assert np.array_equal(logits, written(runtime)), "watched is unwatched, bit for bit"


def test_what_is_watched_runs_plain_even_where_the_kernels_answer() -> None:
    model = sequence_model("pre-norm")
    runtime = SequenceRuntime(model.config, arrays_of(model))
    exact = SequenceRuntime(model.config, arrays_of(model), "exact")
    with watching() as heard:
        assert np.array_equal(written(runtime), written(exact))
    assert len(heard.looks) == 2 * 6


# Edits: the same model in PyTorch with a head's output set to zero, or with keys hidden


def with_zeroed_head(monkeypatch: pytest.MonkeyPatch, model: EncoderDecoder, site: str, head: int) -> None:
    plain: Callable[..., Tensor] = nn_attention.attend

    def attend(module: nn.Module, *args: Any, **options: Any) -> Tensor:
        context = plain(module, *args, **options)
        if module is model.get_submodule(site):
            context = context.clone()
            context[:, head] = 0
        return context

    monkeypatch.setattr("saccade.nn.multihead.attend", attend)


@pytest.mark.parametrize(
    "site", ["encoder.blocks.0.self_attention", "decoder.blocks.1.self_attention", "decoder.blocks.0.cross_attention"]
)
@pytest.mark.parametrize("name", STACKS)
def test_a_head_switched_off_is_its_output_zeroed(name: str, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = sequence_model(name)
    runtime = SequenceRuntime(model.config, arrays_of(model), "exact")
    with watching(Edit(without_heads=[(site, 2)])):
        found = written(runtime)
    assert not np.allclose(found, written(runtime), atol=1e-4), "a head that changes nothing shows nothing"
    with_zeroed_head(monkeypatch, model, site, 2)
    np.testing.assert_allclose(found, teacher_forced(model), atol=NEAR)


@pytest.mark.parametrize(
    "name", [name for name in FAMILIES if not any(part in name for part in ("to", "patch", "memor"))]
)
def test_hidden_source_positions_are_masked_keys(name: str) -> None:
    """In a Transformer nobody looks at them; a recurrent encoder still reads them, but its decoder does not look."""
    model = sequence_model(name)
    if not model.config.decoder.looks:
        pytest.skip("it does not look")
    runtime = SequenceRuntime(model.config, arrays_of(model), "exact")
    with watching(Edit(without_source={1, 2})) as looks:
        found = written(runtime)
    assert all(not look.weights_BNTS[..., [1, 2]].any() for look in looks if look.kind != "decoder")
    source, mask = pad_sources(SOURCES, MARKS)
    assert mask is not None
    hidden = mask.copy()
    hidden[:, [1, 2]] = False
    with torch.no_grad():
        tokens, real = torch.from_numpy(source), torch.from_numpy(hidden)
        recurrent = name in ANCESTORS
        memory = model.read(tokens, torch.from_numpy(mask) if recurrent else real)
        seen = type(memory)(memory.states_MSD, real, memory.final, memory.grid)
        expected = model.decoder(torch.from_numpy(TARGETS), seen).numpy()
    np.testing.assert_allclose(found, expected, atol=NEAR)


def test_hidden_target_positions_are_masked_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_gpt("rotary")
    tokens = np.array(random_sequences([8, 8]))
    runtime = LanguageRuntime(model.config, arrays_of(model), "exact")
    with watching(Edit(without_target=(3,))):
        found = runtime.logits(tokens)
    keys = torch.ones(2, 8, dtype=torch.bool)
    keys[:, 3] = False
    with torch.no_grad():
        expected = model.decoder.logits(model.decoder.features(torch.from_numpy(tokens), only=Keys(keys))).numpy()
    np.testing.assert_allclose(found, expected, atol=NEAR * np.abs(expected).max())


EDITS = {
    "nothing": Edit(),
    "a head of each layer": Edit(
        without_heads=[
            *(("encoder.blocks.0.self_attention", 2), ("decoder.blocks.1.self_attention", 0)),
            *(("decoder.blocks.0.cross_attention", 1), ("decoder.cross_attention", 0)),
        ]
    ),
    "source positions": Edit(without_source={0, 2}),
    "target positions": Edit(without_target=[1, 2]),
    "everything one can look at": Edit(without_source=range(99)),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", FAMILIES)
def test_an_edit_in_pytorch_is_the_edit_in_the_plain_runtime(name: str, edit: str) -> None:
    model = sequence_model(name)
    runtime = SequenceRuntime(model.config, arrays_of(model), "exact")
    with watching(EDITS[edit]) as arrays:
        found = written(runtime)
    with watch(model, EDITS[edit]) as tensors:
        expected = teacher_forced(model)
    np.testing.assert_allclose(found, expected, atol=NEAR)
    for mine, theirs in zip(arrays, tensors, strict=True):
        np.testing.assert_allclose(mine.weights_BNTS, theirs.weights_BNTS.numpy(), atol=NEAR)


def test_what_is_not_known_is_said_by_its_name() -> None:
    model = ancestor("convolution")
    with pytest.raises(UnknownPart, match="kind = 'convolution'"):
        SequenceRuntime(model.config, arrays_of(model))


def test_the_kernels_say_which_part_they_do_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    stack = STACK | LATER
    config = EncoderDecoderConfig.read({"encoder": STACK, "decoder": stack, "tie": "none"}, where="test")
    model = shaken({"encoder": STACK, "decoder": stack, "tie": "none"}, 20, 0)
    assert SequenceRuntime(config, arrays_of(model)).choice.engine == "kernels"
    monkeypatch.setattr(kernels, "KNOWN_NORMS", frozenset({"layer"}))
    monkeypatch.setattr(kernels, "KNOWN_ACTIVATIONS", frozenset({"relu"}))
    choice = SequenceRuntime(config, arrays_of(model)).choice
    assert (choice.engine, choice.how) == ("plain", "exact")
    for part in ("norm = 'rms'", "activation = 'silu'"):
        assert part in choice.why


def test_looking_within_an_edit_is_edited() -> None:
    model = sequence_model("pre-norm")
    runtime = SequenceRuntime(model.config, arrays_of(model))
    source, target = np.array([SOURCES[0]]), TARGETS[:1]
    with watching(Edit(without_source=[2])):
        looks = runtime.look(source, target)
    assert not looks.of("cross")[..., 2].any()
    assert runtime.look(source, target).of("cross")[..., 2].all()

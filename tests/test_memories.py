"""Encoders own their front end, and a decoder looks at several memories, each under its own name.

What holds for every family (padding, steps, joins, the runtime) is tested with all families; here is what is new.
"""

from pathlib import Path
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
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.decode.row import Beam, Greedy, RowRequest
from saccade.decode.search import search
from saccade.errors import WrongUse
from saccade.folder import read_folder
from saccade.models.answering import arrays_of
from saccade.models.contract import Memory, NamedMemories
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.nn.watch import watch
from saccade.pipelines.opening import open_sequence
from saccade.runtime.contract import ArrayMemories
from saccade.runtime.open import SequenceRuntime
from saccade.runtime.watch import watching
from saccade.sites import Edit
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from saccade.weights import filled, write_folder
from tiny import ask

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


@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_a_folder_with_several_memories_answers_as_the_model_that_was_stored(tmp_path: Path, storage: Any) -> None:
    """With the tied token vectors stored once; doctor says why the kernels do not run it."""
    vocabulary = train_vocabulary(TokensConfig(kind="bytes"), ["a"])
    encoders = {"picture": ANCESTORS["patches to gru"]["encoder"], "question": STACK}
    model = shaken({"encoders": encoders, "decoder": STACK, "tie": "all"}, len(vocabulary), 0)
    table = {"task": "translation", "name": "two", "model": model.config.table(), "layer": 1}
    write_folder(tmp_path, table, model, vocabulary.tokenizer.to_str(), storage=storage)
    runtime = open_sequence(read_folder(tmp_path), vocabulary, "exact")
    stored_model = filled(
        read_folder(tmp_path),
        model.config.weights(len(vocabulary)),
        lambda: build_encoder_decoder(model.config, len(vocabulary)),
    ).eval()
    state = runtime.decoder.start(read_arrays(runtime, SOURCES))
    found, _ = runtime.decoder.extend(TARGET_BT.numpy(), np.full(3, TARGET_BT.shape[1]), state, every=True)
    with torch.no_grad():
        expected = stored_model(*tensors(SOURCES, model), TARGET_BT).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    if native.kernels() is not None:
        assert "plain, exact: the C kernels do not know encoders = picture, question" in ask("doctor", tmp_path).out


# The records


def test_each_memory_is_counted_by_its_own_positions() -> None:
    config = ancestor("two memories, transformer").config
    whole = config.flops(20, {"picture": 7, "question": 4}, 3)
    apart = [config.flops(20, {"picture": 7, "question": 0}, 0), config.flops(20, {"picture": 0, "question": 4}, 0)]
    assert whole == sum(apart) + config.flops(20, {"picture": 0, "question": 0}, 3)
    assert apart[0] == 7 * config.flops(20, {"picture": 1, "question": 0}, 0) > 0


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

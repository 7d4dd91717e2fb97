"""Interventions: on every bundled kind of model, what is taken away changes the output as it does in PyTorch."""

from pathlib import Path

import numpy as np
import pytest
import torch

import saccade
from conftest import MARKS, on_plain, random_sequences, small_model
from saccade.errors import UserError, WrongUse
from saccade.explaining.boxes import answer_subject
from saccade.explaining.explain import explained
from saccade.explaining.interventions import exactly, forced_under, intervene, sweep
from saccade.explaining.places import attention_layers, edit_of
from saccade.pipelines.pipeline import Request
from saccade.sites import Edit
from saccade.sources.text import pad_sources
from small_pictures import hearer, pipelines

MODELS = [
    ("en-es", "this cat is very large"),
    ("en-es-rnn", "this cat is very large"),
    ("pronouncer", "eye"),
    ("speller", "I hav a cat"),
    ("stories", "Once upon a time"),
    ("bert-mini", "the cat sat on the [MASK]"),
    ("tagger", "The cat sat."),
]
SENTENCE = "this cat is very large"
PICTURES = pipelines()


@pytest.mark.parametrize(("name", "text"), MODELS)
def test_every_bundled_model_is_weighed_without_each_head_and_each_word(name: str, text: str) -> None:
    pipeline = saccade.load(name)
    request = Request(max_tokens=8) if name == "stories" else Request()
    before = exactly(pipeline, text, request=request)
    plain = forced_under(pipeline, before, Edit())
    assert np.isfinite(plain.logprobs_IP).all()
    assert (plain.logprobs_IP <= 0).all()
    rows = list(sweep(pipeline, before))
    layers = attention_layers(pipeline, before)
    assert len(rows) == sum(layer.heads for layer in layers)
    assert len({row.label for row in rows}) == len(rows)
    assert any(abs(row.change) > 0.01 for row in rows), "some head matters"
    hidden = intervene(pipeline, text, edit_of(pipeline, before, words=[2]), request=request, before=before)
    assert hidden.change != 0
    assert hidden.pieces == list(plain.pieces.labels)
    np.testing.assert_array_equal(forced_under(pipeline, before, Edit()).logprobs_IP, plain.logprobs_IP)


def test_the_score_of_an_answer_is_the_sum_of_its_pieces() -> None:
    translator = saccade.load("en-es", "exact")
    answer = translator(SENTENCE)
    # The search sums the kernels' exponentials, which are off by up to 3e-5 a piece.
    near = 1e-4 * len(answer.looks.target)
    assert translator.forced(answer).total_I[0] == pytest.approx(answer.logprob, abs=near)
    given = translator.given(SENTENCE, answer.text)
    assert given.logprob == pytest.approx(answer.logprob, abs=near)
    assert given.looks.target == answer.looks.target
    worse = translator.given(SENTENCE, "este perro es muy grande")
    assert worse.logprob < answer.logprob - 3


def test_without_the_word_it_is_not_translated_and_without_the_layer_neither() -> None:
    translator = saccade.load("en-es")
    before = exactly(translator, SENTENCE)
    word = intervene(translator, SENTENCE, edit_of(translator, before, words=[2]))
    assert word.after is not None
    assert word.changed
    assert "gato" not in word.after.text
    cat = word.pieces.index(" gato")
    assert np.argmin(word.after_P - word.before_P) == cat
    cross = [layer for layer in attention_layers(translator, before) if layer.kind == "cross"]
    every = [layer.label for layer in cross]
    blind = edit_of(translator, before, layers=every)
    one_by_one = edit_of(
        translator, before, heads=[f"{one.label}.{n}" for one in cross for n in range(1, one.heads + 1)]
    )
    assert intervene(translator, SENTENCE, blind).change < -5
    np.testing.assert_array_equal(
        forced_under(translator, before, blind).logprobs_IP, forced_under(translator, before, one_by_one).logprobs_IP
    )


@pytest.mark.parametrize("layer", ["encoder.blocks.1.self_attention", "decoder.blocks.0.cross_attention"])
def test_a_head_taken_away_is_the_pytorch_model_with_its_output_weights_zeroed(layer: str) -> None:
    """The other way to be without a head: what it says is multiplied by zero in W^O."""
    model = small_model(layers=2, heads=4)
    source, mask = pad_sources(random_sequences([6, 3]), MARKS)
    target = np.array(random_sequences([5, 5], seed=1))
    runtime = on_plain(model)

    def written() -> np.ndarray:
        state = runtime.decoder.start(runtime.read(source, mask))
        return np.array(runtime.decoder.extend(target, np.array([5, 5]), state, every=True)[0])

    with saccade.watch(runtime, Edit(without_heads=[(layer, 2)])):
        edited = written()
    with saccade.watch(runtime, Edit(without_layers=[layer])):
        none = written()
    out = model.get_submodule(f"{layer}.out").weight
    width = out.shape[1] // 4
    with torch.no_grad():
        out[:, 2 * width : 3 * width] = 0
        zeroed = model(*map(torch.from_numpy, (source, mask, target))).numpy()
        out.zero_()
        gone = model(*map(torch.from_numpy, (source, mask, target))).numpy()
    np.testing.assert_allclose(edited, zeroed, atol=1e-5)
    np.testing.assert_allclose(none, gone, atol=1e-5)


def test_a_hidden_position_is_the_pytorch_model_with_that_key_masked() -> None:
    model = small_model(layers=2, heads=4)
    source, _ = pad_sources(random_sequences([6, 6]), MARKS)
    target = np.array(random_sequences([5, 5], seed=1))
    runtime = on_plain(model)
    with saccade.watch(runtime, Edit(without_source=[3])):
        state = runtime.decoder.start(runtime.read(source, None))
        edited = runtime.decoder.extend(target, np.array([5, 5]), state, every=True)[0]
    mask = np.ones(source.shape, dtype=bool)
    mask[:, 3] = False
    with torch.no_grad():
        masked = model(*map(torch.from_numpy, (source, mask, target))).numpy()
    np.testing.assert_allclose(edited, masked, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"heads": ["9.1"]}, "there are [0-9] layers of cross attention"),
        ({"heads": ["1.9"]}, "has 5 heads"),
        ({"heads": ["croos:1.1"]}, "did you mean"),
        ({"heads": ["x"]}, "a head is a layer and a number"),
        ({"layers": ["x"]}, "a layer is a number"),
        ({"words": [9]}, "word 9 asked, but there are 5"),
        ({"cells": [(1, 1)]}, "no picture"),
    ],
)
def test_what_is_not_there_is_said(options: dict[str, list[str]], said: str) -> None:
    translator = saccade.load("en-es")
    with pytest.raises(WrongUse, match=said):
        edit_of(translator, exactly(translator, SENTENCE), **options)  # type: ignore[arg-type]


def test_layers_that_are_not_there_are_said_by_watch() -> None:
    translator = saccade.load("en-es")
    with (
        pytest.raises(WrongUse, match=r"no layer 'decoder\.blocks\.9"),
        saccade.watch(translator, Edit(without_layers=["decoder.blocks.9.cross_attention"])),
    ):
        translator(SENTENCE)


def test_inputs_in_the_place_of_another_are_those_of_one_sentence(tmp_path: Path) -> None:
    translator = saccade.load("en-es")
    with pytest.raises(UserError, match="2 sentences"):
        translator.forced(translator("He came. She went."), ["He came."])


# Pictures


@pytest.mark.parametrize("name", list(PICTURES))
def test_models_of_pictures_are_weighed_without_heads_and_cells_and_explained(name: str) -> None:
    pipeline, raw = PICTURES[name]
    before = exactly(pipeline, raw)
    plain = forced_under(pipeline, before, Edit())
    np.testing.assert_allclose(pipeline.forced(before).logprobs_IP, plain.logprobs_IP, atol=0.05)
    subject = answer_subject(pipeline, raw, before)
    whole = subject.cover.under(np.ones(subject.cover.places, dtype=np.float32))
    again = pipeline.forced(before, [whole, whole])
    np.testing.assert_allclose(again.logprobs_IP, np.repeat(pipeline.forced(before).logprobs_IP, 2, 0), atol=1e-4)
    assert subject.box([whole])[0] == pytest.approx(float(np.exp(again.logprobs_IP[0].mean())), abs=1e-4)
    for method in ("rise", "occlusion", "random"):
        found = explained(subject, method, masks=20)  # type: ignore[arg-type]
        assert found.values_P.shape == (16 * 16,)
        assert np.isfinite(found.values_P).all()
    if name == "sees, convolutions":
        return  # nothing attends there
    assert sum(1 for _ in sweep(pipeline, before)) == sum(one.heads for one in attention_layers(pipeline, before))
    hidden = intervene(pipeline, raw, edit_of(pipeline, before, cells=[(2, 3), (4, 1)]), before=before, answer=False)
    assert hidden.change != 0
    for method in ("attention", "rollout"):
        found = explained(subject, method)  # type: ignore[arg-type]
        assert found.values_P.shape == (16 * 16,)
        assert found.values_P.min() >= 0


def test_a_cell_behind_a_class_token_is_the_cell_that_is_meant() -> None:
    pipeline, raw = PICTURES["sees, class token"]
    before = exactly(pipeline, raw)
    assert edit_of(pipeline, before, cells=[(1, 1), (4, 4)]).without_memory == {"source": [1, 16]}
    plain, other = PICTURES["sees"][0], exactly(*PICTURES["sees"])
    assert edit_of(plain, other, cells=[(1, 1), (4, 4)]).without_memory == {"source": [0, 15]}
    with pytest.raises(WrongUse, match="4 rows and 4 columns"):
        edit_of(plain, other, cells=[(5, 1)])


def test_words_of_a_question_and_cells_of_its_picture_are_hidden_apart() -> None:
    pipeline, raw = PICTURES["answers"]
    before = exactly(pipeline, raw)
    edit = edit_of(pipeline, before, words=[2], cells=[(1, 2)])
    assert set(edit.without_memory) == {"question", "picture"}
    assert edit.without_memory["picture"] == [1]
    question = answer_subject(pipeline, raw, before, question=True)
    assert explained(question, "rise", masks=20).labels == ["what", "is", "it", "?"]


# What watching costs


def test_a_watched_decode_writes_the_same() -> None:
    translator = saccade.load("en-es", "exact")
    texts = [SENTENCE, "Yesterday I saw a very large black cat in the garden of my neighbour."]
    expected = [(one.text, one.score) for one in translator(texts)]
    with saccade.watch(translator):
        assert [(one.text, one.score) for one in translator(texts)] == expected


# Sounds


def test_a_recording_is_weighed_and_explained() -> None:
    pipeline, raw = hearer()
    before = exactly(pipeline, raw)
    assert before.text
    own = pipeline.forced(before)
    np.testing.assert_allclose(pipeline.forced(before, [raw]).logprobs_IP, own.logprobs_IP, atol=1e-4)
    assert sum(1 for _ in sweep(pipeline, before)) == sum(one.heads for one in attention_layers(pipeline, before))
    subject = answer_subject(pipeline, raw, before)
    for method in ("rise", "occlusion", "attention", "rollout"):
        found = explained(subject, method, masks=20)  # type: ignore[arg-type]
        assert found.values_P.shape == (50,)
        assert found.values_P.any()
    assert explained(subject, "attention").values_P.min() >= 0
    assert intervene(pipeline, raw, edit_of(pipeline, before, words=[3]), before=before, answer=False).change != 0

"""`saccade.watch` on what `saccade.load` returns and on PyTorch modules: one call, one record, the same edits."""

import numpy as np
import pytest
import torch

import saccade
from conftest import MARKS, ancestor, by_pytorch, on_plain, random_sequences, read_arrays, small_model
from saccade.errors import WrongUse
from saccade.models.encdec import EncoderDecoder
from saccade.pipelines.opening import SequenceModel
from saccade.sites import Edit, Site
from saccade.sources.text import pad_sources

SOURCES = random_sequences([6, 3])
TARGETS = np.array(random_sequences([5, 5], seed=1))
SENTENCE = "this cat is very large"


def written(model: SequenceModel) -> np.ndarray:
    state, found = model.decoder.start(read_arrays(model, SOURCES)), []
    for place in range(TARGETS.shape[1]):
        logits, state = model.decoder.step(TARGETS[:, place], state)
        found.append(logits.copy())
    return np.stack(found, axis=1)


def forced(model: EncoderDecoder) -> np.ndarray:
    source, mask = pad_sources(SOURCES, MARKS)
    with torch.no_grad():
        found: np.ndarray = model(*map(torch.from_numpy, (source, mask, TARGETS))).numpy()
    return found


EDITS = [
    Edit(),
    Edit(without_source=[1]),
    Edit(without_heads=[("decoder.cross_attentions.1", 0)]),
    Edit(without_target=[0, 1]),
]


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_a_pipeline_that_runs_in_pytorch_is_heard_and_edited(edit: Edit) -> None:
    model = ancestor("convolution")
    answering = by_pytorch(model)
    before = written(answering)
    with saccade.watch(answering, edit) as steps:
        found = written(answering)
    with saccade.watch(model, edit) as whole:
        expected = forced(model)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert {look.name for look in steps} == {look.name for look in whole}
    assert {look.site for look in steps} == {Site.cross()}
    assert np.array_equal(found, before) == (edit in (EDITS[0], EDITS[3])), (
        "convolutions do not look at what they wrote"
    )
    assert np.array_equal(written(answering), before), "nothing is left behind"


def test_looks_of_a_pipeline_in_pytorch_are_under_the_edit_of_the_watcher() -> None:
    answering = by_pytorch(ancestor("convolution"))
    source = np.array([SOURCES[0]])
    with saccade.watch(answering, Edit(without_source=[2])):
        assert not answering.look(source, TARGETS[:1]).cross[..., 2].any()
    assert answering.look(source, TARGETS[:1]).cross[..., 2].all()


@pytest.mark.parametrize("answering", [by_pytorch, on_plain])
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Edit(without_heads=[("decoder.blocks.0.cross_atention", 0)]), "did you mean decoder.blocks.0.cross_attention"),
        (Edit(without_heads=[("decoder.blocks.0.cross_attention", 9)]), "no head 9"),
    ],
)
def test_a_head_that_is_not_there_is_said(answering: object, edit: Edit, said: str) -> None:
    model = answering(small_model())  # type: ignore[operator]
    with pytest.raises(WrongUse, match=said), saccade.watch(model, edit):
        written(model)


def test_what_is_no_model_cannot_be_watched() -> None:
    with pytest.raises(WrongUse, match=r"saccade\.load"), saccade.watch("en-es"):
        pass


# The bundled translator, as the README has it


def test_a_watched_translator_answers_as_exactly_as_an_unwatched_one() -> None:
    translator = saccade.load("en-es", "exact")
    before = translator(SENTENCE)
    with saccade.watch(translator) as heard:
        watched = translator(SENTENCE)
    assert (watched.text, watched.score) == (before.text, before.score)
    assert heard.of("encoder").shape[2:] == before.looks.encoder.shape[1:]
    assert {look.memory for look in heard} == {"source", "target"}


def test_a_hidden_word_is_not_translated() -> None:
    translator = saccade.load("en-es")
    place = translator(SENTENCE).looks.source.index(" cat")
    with saccade.watch(translator, Edit(without_source=[place])):
        blind = translator(SENTENCE)
        looks = blind.looks
    assert "gato" not in blind.text
    assert not looks.cross[..., place].any()
    assert "gato" in translator(SENTENCE).text

"""What all pipelines promise: lists and generators, one clear line for wrong inputs, text and repr, pickling."""

import dataclasses
import html
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saccade
from saccade.errors import UserError, WrongUse
from saccade.pipelines.answer import Answer
from saccade.pipelines.load import load
from saccade.pipelines.pipeline import Pipeline, Request
from saccade.pipelines.table import TASKS
from tiny import SENTENCES, tiny_completer, write_tiny_language_model, write_tiny_model

ASKED = {
    "en-es": "good morning",
    "stories": "Once upon",
    "speller": "I recieve teh letter.",
    "pronouncer": "knight",
    "bert-mini": "the [MASK] sat",
    "tagger": "The cat sat.",
}
"""Of every pipeline one model, and something to ask it."""


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load(write_tiny_model(tmp_path_factory.mktemp("pipelines") / "tiny"))


@pytest.fixture(scope="module")
def completer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load(write_tiny_language_model(tmp_path_factory.mktemp("pipelines") / "tiny"))


def test_one_in_one_out_many_in_a_list_out(translator: Any) -> None:
    expected = [translator(text).text for text in SENTENCES]
    for many in (
        SENTENCES,
        tuple(SENTENCES),
        (text for text in SENTENCES),
        dict.fromkeys(SENTENCES),
        map(str, SENTENCES),
        np.array(SENTENCES),
        np.array(SENTENCES, dtype=object),
    ):
        assert [answer.text for answer in translator(many)] == expected
    assert translator([]) == []
    for scalar in (np.str_(SENTENCES[0]), np.array(SENTENCES[0])):
        assert (translator(scalar).text, repr(translator(scalar).source)) == (expected[0], repr(SENTENCES[0]))


@pytest.mark.parametrize("wrong", [3, 2.5, None, True, b"one", ["one", 3], [None], [["one"]], object(), np.array(3)])
def test_what_is_no_text_is_one_clear_line(translator: Any, completer: Any, wrong: Any) -> None:
    for pipeline in (translator, completer):
        with pytest.raises(WrongUse, match="a text is a string, not "):
            pipeline(wrong)


WRONG_OPTIONS: dict[str, Any] = {
    "beam": "wide",
    "best": 0,
    "alpha": "much",
    "temperature": [1],
    "seed": 1.5,
    "prefix": 3,
    "max_tokens": "ten",
    "stop": 3,
    "top_k": True,
}


@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_a_wrong_option_is_one_clear_line(completer: Any, name: str) -> None:
    with pytest.raises(WrongUse, match=name):
        completer("one", **{name: WRONG_OPTIONS[name]})


def test_an_option_that_means_nothing_is_refused(translator: Any, completer: Any) -> None:
    with pytest.raises(WrongUse, match=r"top_k means nothing to a Translator; its options: alpha, beam"):
        translator("one", top_k=3)
    with pytest.raises(WrongUse, match="prefix means nothing to a Completer"):
        completer("one", prefix="two")


def test_the_options_of_a_call_are_the_fields_of_a_request() -> None:
    named = [name for name in inspect.signature(Pipeline.__call__).parameters if name not in ("self", "inputs")]
    assert named == [field.name for field in dataclasses.fields(Request)]
    for name in named:
        assert f"\n            {name} " in (Pipeline.__call__.__doc__ or ""), f"{name} has no help"


def test_one_bad_input_leaves_the_others_their_answers(translator: Any) -> None:
    long = "x" * (TASKS["translation"].source.longest + 1)
    one, too_long, two, number = translator.answer(["one", long, "two", 3], Request())
    assert (one.text, two.text) == (translator("one").text, translator("two").text)
    assert isinstance(too_long, UserError)
    assert "characters" in str(too_long)
    assert isinstance(number, WrongUse)


def test_too_many_tokens_are_refused_alone(translator: Any) -> None:
    many = " ".join("ab" for _ in range(translator.longest_source))
    one, refused = translator.answer(["one", many], Request())
    assert isinstance(one, Answer)
    assert "tokens in one sentence; at most 1000" in str(refused)


# Every bundled kind


@pytest.fixture(params=ASKED)
def asked(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    pipeline: Any = saccade.load(request.param)
    return pipeline, pipeline(ASKED[request.param])


def test_an_answer_is_its_text_and_a_pipeline_says_what_it_is(asked: tuple[Any, Any]) -> None:
    pipeline, answer = asked
    assert isinstance(answer, Answer)
    assert str(answer) == answer.text
    assert answer.best[0] is answer
    assert pipeline.home.name in repr(pipeline)
    assert pipeline.home.task in repr(pipeline)
    assert pipeline.choice.engine in repr(pipeline)
    assert len(repr(answer)) < 250
    assert repr(answer.text[:60]) in repr(answer)
    assert " at 0x" not in repr(answer) + repr(answer.looks)
    assert len(repr(answer.looks)) < 250


def test_a_notebook_shows_the_text_and_the_looks(asked: tuple[Any, Any]) -> None:
    _, answer = asked
    assert answer._repr_png_() == answer.looks._repr_png_()
    assert (answer._repr_png_() or b"").startswith(b"\x89PNG")
    assert f"<p>{html.escape(answer.text)}</p>{answer.looks._repr_html_()}" == answer._repr_html_()
    assert pickle.loads(pickle.dumps(dataclasses.replace(answer)))._repr_html_() is None, "without its model"


def test_long_answers_show_their_beginning() -> None:
    """Also those of tasks to come: no field of theirs is shown."""

    @dataclasses.dataclass(frozen=True)
    class Long(Answer):
        ids: list[int]

    assert repr(Long("a\nb", "x" * 9000, 0.5, list(range(9000)))) == f"Long('{'x' * 60}'…, score=0.5, source='a\\nb')"


def test_tagged_words_come_with_their_tags() -> None:
    answer = saccade.load("tagger")("The cat sat.")
    assert answer.words == [("The", "DET"), ("cat", "NOUN"), ("sat", "VERB"), (".", "PUNCT")]


def test_pipelines_pickle_as_where_they_came_from(asked: tuple[Any, Any]) -> None:
    pipeline, answer = asked
    packed = pickle.dumps(pipeline)
    assert len(packed) < 500
    again = pickle.loads(packed)
    assert type(again) is type(pipeline)
    assert again(answer.source) == answer


def test_answers_pickle_as_their_data(asked: tuple[Any, Any]) -> None:
    pipeline, answer = asked
    packed = pickle.dumps(answer)
    assert len(packed) < 5_000
    again = pickle.loads(packed)
    assert again == answer
    assert again.record() == answer.record()
    with pytest.raises(WrongUse, match="without its model"):
        _ = again.looks
    assert answer.pipeline is pipeline, "the one that was pickled keeps its model"
    _ = answer.looks
    assert pickle.loads(pickle.dumps(answer)).looks is not None, "what was computed before is data"


def test_how_it_computes_is_kept(tmp_path: Path) -> None:
    exact = load(write_tiny_model(tmp_path / "tiny"), "exact")
    assert pickle.loads(pickle.dumps(exact)).choice.how == "exact"


def test_a_pipeline_of_no_folder_says_why_it_cannot_be_pickled() -> None:
    with pytest.raises(pickle.PicklingError, match="not loaded from a folder"):
        pickle.dumps(tiny_completer())


@pytest.mark.parametrize("name", TASKS)
def test_every_row_says_what_its_verb_takes(name: str) -> None:
    source = TASKS[name].source
    assert source.takes_files == (source.kind not in ("text", "pair"))
    if not source.takes_files:
        assert source.longest == TASKS[name].limits["longest"]

"""A request belongs to a text: texts that are asked differently in one call are each as if asked alone."""

from pathlib import Path
from typing import Any

import pytest

import saccade
from saccade.errors import WrongUse
from saccade.pipelines.pipeline import Request
from saccade.pipelines.translator import Translator
from tiny import tiny_completer, write_tiny_model

TRANSLATED = {
    "one two three four": Request(),
    "two cats see one dog": Request(beam=1),
    "four dogs see three cats": Request(beam=6, alpha=0.0, best=4),
    "one cat sees": Request(temperature=1.0, seed=7),
    "two dogs": Request(temperature=0.5, seed=7, prefix="one "),
    "three": Request(prefix="two cats", beam=3),
    "one": Request(best=3),
}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    found: Translator = saccade.load(write_tiny_model(tmp_path_factory.mktemp("tiny") / "model"))
    return found


def best_of(answer: Any) -> list[tuple[str, float]]:
    return [(one.text, one.score) for one in answer.best]


def assert_each_alone(pipeline: Any, asked: dict[str, Request], near: float = 1e-4) -> list[Any]:
    together = pipeline.answer(list(asked), list(asked.values()))
    for number, ((text, request), answer) in enumerate(zip(asked.items(), together, strict=True)):
        (alone,) = pipeline.answer([text], request, numbers=[number])
        assert [one for one, _ in best_of(answer)] == [one for one, _ in best_of(alone)]
        scores = [score for _, score in best_of(alone)]
        assert [score for _, score in best_of(answer)] == pytest.approx(scores, abs=near)
    return list(together)


def test_translations_have_their_own_beams_draws_and_prefixes(translator: Translator) -> None:
    together = assert_each_alone(translator, TRANSLATED)
    assert [len(answer.best) for answer in together] == [1, 1, 4, 1, 1, 1, 3]
    assert together[5].text.startswith("two cats")


def test_a_request_for_all_is_that_request_for_each(translator: Translator) -> None:
    texts = list(TRANSLATED)
    request = Request(beam=3, best=2)
    shared, each = translator.answer(texts, request), translator.answer(texts, [request] * len(texts))
    assert [best_of(answer) for answer in shared] == [best_of(answer) for answer in each]


@pytest.mark.parametrize("pipeline", ["translator", "completer"])
def test_too_few_requests_are_refused(pipeline: str, translator: Translator) -> None:
    asked: Any = translator if pipeline == "translator" else tiny_completer()
    with pytest.raises(WrongUse, match="2 requests for 3 texts"):
        asked.answer(["one", "two", "three"], [Request(), Request()])


COMPLETED = {
    "one": Request(max_tokens=30),
    "two cats see": Request(temperature=1.0, seed=3, max_tokens=40),
    "four dogs see three cats": Request(temperature=1.0, seed=3, max_tokens=5),
    "three": Request(temperature=1.2, top_k=40, repetition=1.2, stop=("e", "o"), max_tokens=40),
    "für 5 €": Request(repetition=1.5, max_tokens=30),
    "": Request(temperature=0.8, top_p=0.9, seed=1, max_tokens=35),
    "two": Request(beam=3, max_tokens=30),
    "dog": Request(beam=4, alpha=1.0, max_tokens=12, stop=("a",)),
}


def test_completions_have_their_own_draws_stops_beams_and_lengths() -> None:
    completer = tiny_completer()
    together = assert_each_alone(completer, COMPLETED, near=1e-3)
    for number, (text, answer) in enumerate(zip(COMPLETED, together, strict=True)):
        assert answer.text == "".join(completer.stream(text, COMPLETED[text], number))
        assert len(answer.ids) <= (COMPLETED[text].max_tokens or 0)
    assert {answer.ended for answer in together} >= {"length", "stop"}


def test_a_beam_finds_likelier_completions_than_greedy_search() -> None:
    completer, prompts = tiny_completer(), ["one", "two cats", "three dogs see"]
    greedy, beam = (completer(prompts, beam=width, max_tokens=12) for width in (1, 8))
    assert sum(one.logprob for one in beam) > sum(one.logprob for one in greedy)


def test_a_prompt_that_cannot_be_read_costs_only_itself() -> None:
    completer = tiny_completer("characters")
    requests = [Request(max_tokens=4), Request(max_tokens=9), Request(max_tokens=6)]
    one, _, two = completer.answer(["one", "ONE", "two"], requests)
    assert [len(getattr(answer, "ids", [])) for answer in (one, two)] == [4, 6]


BUNDLED = {
    "en-es": {"good morning": Request(beam=1), "the cat sleeps": Request(best=3), "a house": Request(prefix="Una")},
    "pronouncer": {"knight": Request(best=3), "phone box": Request(beam=1), "saccade": Request()},
    "speller": {"I recieve teh letter.": Request(), "a smal hous": Request(best=2), "Wensday": Request(beam=2)},
    "bert-mini": {"the [MASK] sat on the mat": Request(best=4), "a [MASK] of [MASK]": Request(best=2)},
}


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_models_take_a_request_for_each_text(name: str) -> None:
    if not (Path(saccade.__file__).parent / "zoo" / name / "config.json").exists():
        pytest.skip(f"{name} is not here")
    together = assert_each_alone(saccade.load(name), BUNDLED[name])
    assert [len(answer.best) for answer in together][:1] == [BUNDLED[name][next(iter(BUNDLED[name]))].best]

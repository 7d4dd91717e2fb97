"""Completing a text: stop strings, streams, batches and seeds, contexts that slide, scores, looks."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from saccade.errors import UserError, WrongUse
from saccade.models.answering import TorchDecoder, language_runtime
from saccade.models.gpt import LanguageModel
from saccade.pipelines.completer import Completer, Completion
from saccade.pipelines.pipeline import Request
from saccade.runtime.contract import ArrayMemory, Floats, Ids
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from tiny import CONTEXT, tiny_completer, tiny_gpt, tiny_vocabulary

BEGIN, END = Marks().begin, Marks().end

HALF = CONTEXT // 2


class ScriptedState:
    def __init__(self, rows: int) -> None:
        self.rows = rows

    def reorder(self, rows: Ids) -> "ScriptedState":
        return self


class Scripted:
    """A decoder that writes what it was told to, whatever it reads."""

    def __init__(self, script: Sequence[int], vocabulary: int) -> None:
        self.script, self.vocabulary = iter(script), vocabulary

    def start(self, memory: ArrayMemory | None, rows: int = 1) -> ScriptedState:
        return ScriptedState(rows)

    def extend(
        self, tokens_BT: Ids, lengths_B: Ids, state: ScriptedState, *, every: bool = False
    ) -> tuple[Floats, ScriptedState]:
        return self.next_BV(), state

    def step(self, tokens_B: Ids, state: ScriptedState) -> tuple[Floats, ScriptedState]:
        return self.next_BV(), state

    def next_BV(self) -> Floats:
        logits_BV = np.zeros((1, self.vocabulary), dtype=np.float32)
        logits_BV[:, next(self.script)] = 30.0
        return logits_BV


def written_by(completer: Completer, decoder: Any) -> Completer:
    """The same with another decoder."""
    completer.model = SimpleNamespace(decoder=decoder)  # type: ignore[assignment]
    return completer


def scripted(text: str | list[int], kind: str = "bytes") -> Completer:
    """A completer that goes on with this text, and then ends."""
    completer = tiny_completer(kind)
    ids = completer.vocabulary.encode([text])[0] if isinstance(text, str) else text
    return written_by(completer, Scripted([*ids, END], len(completer.vocabulary)))


def in_pytorch(completer: Completer) -> LanguageModel:
    """The model whose weights a tiny completer has, to compare with."""
    return tiny_gpt(vocabulary=len(completer.vocabulary))


def endless(kind: str = "bpe") -> tuple[Completer, LanguageModel]:
    """A completer that has no reason to end, and its model."""
    vocabulary = tiny_vocabulary(kind)
    model = tiny_gpt(vocabulary=len(vocabulary), tie=False)
    with torch.no_grad():
        model.decoder.head.weight[END] = 0
    return Completer(language_runtime(model, "exact"), vocabulary, marked=True), model


def shown(completer: Completer, prompt: str = "one", **options: Any) -> list[str]:
    return list(completer.stream(prompt, Request(**options)))


# Stop strings


@pytest.mark.parametrize("kind", ["bytes", "bpe", "characters"])
@pytest.mark.parametrize(
    ("stops", "expected"),
    [
        (("##",), "one two # three "),
        (("two",), "one "),
        (("cats", "three"), "one two # "),
        (("three ##", "#"), "one two "),
        (("o",), ""),
        (("nowhere", "# # #"), "one two # three ## four"),
        (("ee ## fo",), "one two # thr"),
        (("four",), "one two # three ## "),
    ],
    ids=str,
)
def test_a_stop_string_ends_the_text_and_is_no_part_of_it(kind: str, stops: tuple[str, ...], expected: str) -> None:
    text = "one two # three ## four"
    if kind == "characters":
        text, stops = (value.replace("#", "€") if isinstance(value, str) else value for value in (text, stops))
        stops, expected = tuple(stop.replace("#", "€") for stop in stops), expected.replace("#", "€")
    found = scripted(text, kind)("", stop=stops)
    assert found.text == expected
    assert found.ended == ("end" if expected == text else "stop")
    pieces = shown(scripted(text, kind), stop=stops)
    assert "".join(pieces) == expected
    assert "" not in pieces


@pytest.mark.parametrize("stop", ["\n\n", "\nQ:", "☃!", "aab"])
def test_a_stream_never_shows_part_of_a_stop_string(stop: str) -> None:
    text = f"one\n two \nQ ☃? aaaa{stop}three"
    pieces = shown(scripted(text), stop=(stop,))
    assert "".join(pieces) == text[: text.index(stop)]
    so_far = ""
    for piece in pieces:
        so_far += piece
        assert text.startswith(so_far)
        assert len(so_far) <= text.index(stop)


def test_what_only_looked_like_a_stop_string_is_shown_after_all() -> None:
    assert "".join(shown(scripted("one #"), stop=("##",))) == "one #"
    assert "".join(shown(scripted("one #two"), stop=("##",))) == "one #two"
    assert shown(scripted("a#b"), stop=("##",)) == ["a", "#b"]


@pytest.mark.parametrize("kind", ["bpe", "bytes"])
def test_any_part_of_a_text_may_be_its_stop(kind: str) -> None:
    """A model that writes anything, half characters too: what stands before the first such string is the text."""
    completer = tiny_completer(kind)
    options = {"temperature": 1.0, "seed": 5, "max_tokens": 30}
    free = completer("one", **options).text
    for start in range(0, len(free), 7):
        for length in (1, 2, 5):
            stop = free[start : start + length]
            if not stop or "\ufffd" in stop:
                continue
            found = completer("one", stop=(stop,), **options)
            assert found.text == free[: free.index(stop)]
            assert found.ended == "stop"
            assert "".join(shown(completer, stop=(stop,), **options)) == found.text


def test_a_single_string_is_one_stop() -> None:
    assert scripted("one two three")("", stop="two").text == "one "
    assert scripted("one two three")("", stop=["two"]).text == "one "


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(WrongUse, match="must not be empty"):
        tiny_completer()("one", stop=("two", ""))


# Streams


@pytest.mark.parametrize("kind", ["bpe", "bytes", "characters"])
@pytest.mark.parametrize("seed", range(6))
def test_the_pieces_of_a_stream_are_the_whole_text(kind: str, seed: int) -> None:
    completer = tiny_completer(kind)
    options = {"temperature": 1.2, "seed": seed, "max_tokens": 60}
    pieces = shown(completer, **options)
    assert "".join(pieces) == completer("one", **options).text
    assert "" not in pieces


def test_half_a_character_waits_for_its_other_half() -> None:
    text = "é€☃👍 a"
    assert shown(scripted(text)) == list(text)


def test_a_character_that_never_gets_whole_is_shown_in_the_end() -> None:
    (snow,) = tiny_vocabulary("bytes").encode(["☃"])
    completer = scripted(snow[:2])
    assert shown(completer) == ["\ufffd"]
    assert scripted(snow[:2])("one").text == "\ufffd"
    (letter,) = tiny_vocabulary("bytes").encode(["a"])
    assert shown(scripted([*snow[:2], *letter])) == ["\ufffda"]


def test_between_two_pieces_the_reader_of_a_stream_is_left_alone() -> None:
    """It may train, or read another stream: nothing of how this one is computed holds for it."""
    model = in_pytorch(completer := tiny_completer())
    written_by(completer, TorchDecoder(model.decoder))
    request = Request(temperature=1.0, max_tokens=10)
    modes: set[bool] = set()
    model.decoder.blocks[0].register_forward_hook(lambda *_: modes.add(torch.is_inference_mode_enabled()))
    one, other = completer.stream("one", request), completer.stream("two", request)
    for _ in zip(one, other, strict=False):
        assert not torch.is_inference_mode_enabled()
        assert torch.is_grad_enabled()
    unfinished = completer.stream("three", request)
    next(unfinished)
    del unfinished
    assert not torch.is_inference_mode_enabled()
    assert modes == {True}, "while a token is written, nothing is kept for gradients"


# Batches and seeds


PROMPTS = ["one", "", "two cats see", "four dogs see three cats " * 4, "für 5 €", "three"]


@pytest.mark.parametrize("kind", ["bpe", "bytes"])
@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("temperature", [None, 0.9])
def test_prompts_together_are_each_alone(kind: str, marked: bool, temperature: float | None) -> None:
    completer = tiny_completer(kind, marked=marked)
    request = Request(temperature=temperature, seed=3, max_tokens=CONTEXT + 9)
    together = completer.answer(PROMPTS, request)
    for number, (prompt, found) in enumerate(zip(PROMPTS, together, strict=True)):
        (alone,) = completer.answer([prompt], request, numbers=[number])
        assert isinstance(found, Completion)
        assert isinstance(alone, Completion)
        assert (found.prompt, found.ids, found.text, found.ended) == (prompt, alone.ids, alone.text, alone.ended)
        assert found.logprob == pytest.approx(alone.logprob, abs=1e-3)
        assert found.text == "".join(completer.stream(prompt, request, number))


@pytest.mark.parametrize("rows", [1, 5])
def test_a_text_does_not_depend_on_how_many_are_written_at_once(rows: int) -> None:
    completer, request = tiny_completer(), Request(temperature=1.0, seed=7, max_tokens=15)
    expected = [answer.text for answer in completer.answer(PROMPTS * 2, request)]  # type: ignore[union-attr]
    completer.rows_at_once = rows
    assert [answer.text for answer in completer.answer(PROMPTS * 2, request)] == expected  # type: ignore[union-attr]


def test_seeds_and_places_decide_the_draws() -> None:
    completer = tiny_completer()

    def drawn(seed: int) -> list[str]:
        return [found.text for found in completer(["one", "one", "one"], temperature=1.0, seed=seed, max_tokens=20)]

    assert drawn(1) == drawn(1)
    assert len({*drawn(1), *drawn(2)}) == 6


def test_a_list_in_a_list_out() -> None:
    completer = tiny_completer()
    one, many = completer("one", max_tokens=5), completer(["one", "two"], max_tokens=5)
    assert isinstance(many, list)
    assert [found.prompt for found in many] == ["one", "two"]
    assert many[0].text == one.text
    assert completer([]) == []
    assert len(one.ids) <= 5
    assert one.score == one.logprob < 0
    assert one.best == [one]


def test_a_prompt_that_cannot_be_read_costs_only_itself() -> None:
    completer = tiny_completer("characters")
    one, bad, two = completer.answer(["one", "ONE", "two"], Request(max_tokens=5))
    assert isinstance(one, Completion)
    assert isinstance(two, Completion)
    assert isinstance(bad, UserError)
    assert "'ENO'" in str(bad)
    with pytest.raises(UserError, match="ENO"):
        completer(["one", "ONE"])


# What is written


@pytest.mark.parametrize("marked", [True, False])
def test_the_log_probability_is_that_of_what_was_written(marked: bool) -> None:
    model = in_pytorch(completer := tiny_completer("bytes", marked=marked))
    for seed in range(5):
        found = completer("one", temperature=1.5, top_k=50, repetition=1.2, seed=seed, max_tokens=CONTEXT - 5)
        written = found.ids + ([END] if found.ended == "end" else [])
        row = [*found.prompt_ids, *written]
        logits_TV = model(torch.tensor([row[:-1]]))[0, len(found.prompt_ids) - 1 :]
        logits_TV[:, [0, BEGIN]] = -math.inf
        logprobs = logits_TV.log_softmax(-1).gather(1, torch.tensor(written)[:, None])
        assert found.logprob == pytest.approx(logprobs.sum().item(), abs=1e-3)


def test_a_text_ends_by_its_end_its_stop_or_its_length() -> None:
    assert scripted("one")("").ended == "end"
    assert scripted("one")("", max_tokens=3).ended == "length"
    assert scripted("one")("", stop=("e",), max_tokens=3).ended == "stop"
    assert len(scripted("one two")("", max_tokens=5).ids) == 5


def test_a_model_that_is_told_nothing_begins_anew() -> None:
    marked, plain = tiny_completer(), tiny_completer(marked=False)
    assert marked.begin("") == [BEGIN]
    assert plain.begin("") == plain.vocabulary.encode(["\n"])[0]
    for completer in (marked, plain):
        found = completer("", max_tokens=5)
        assert len(found.ids) == 5 or found.ended == "end"


def test_a_model_without_documents_and_lines_has_to_be_told_something() -> None:
    vocabulary = train_vocabulary(TokensConfig(kind="characters"), ["abc"])
    completer = Completer(language_runtime(tiny_gpt(vocabulary=6), "exact"), vocabulary, marked=False)
    with pytest.raises(UserError, match="give it something to go on from"):
        completer("")
    assert len(completer("a", max_tokens=5).ids) == 5 or completer("a").ended == "end"


def test_a_model_that_never_saw_a_capital_reads_prompts_without() -> None:
    plain = tiny_completer("characters")
    small = Completer(plain.model, plain.vocabulary, marked=True, lowercase=True)
    found = small("One TWO", max_tokens=8)
    assert found.ids == plain("one two", max_tokens=8).ids
    assert found.prompt == "One TWO"
    assert small.surprises("One TWO") == plain.surprises("one two")


@pytest.mark.parametrize("text", ["</s>", "<s>", "<pad>", "one</s> two"])
def test_what_looks_like_a_mark_is_text(text: str) -> None:
    completer = tiny_completer()
    ids = completer.begin(text)
    assert ids[0] == BEGIN
    assert all(i > END for i in ids[1:])
    assert completer.vocabulary.decode(ids) == text
    pieces, logprobs = completer.surprises(text)
    assert "".join(pieces) == text
    assert len(logprobs) == len(ids) - 1


# A context that slides


def test_a_text_goes_on_past_the_context() -> None:
    completer, _ = endless()
    found = completer("one", temperature=0.7, max_tokens=4 * CONTEXT)
    assert len(found.ids) == 4 * CONTEXT


def test_when_a_context_slides_follows_from_the_texts_own_length() -> None:
    """Each token from what its text remembers at that length, whoever writes beside it."""
    completer, model = endless("bytes")
    found = completer(["one", "one two three four fi", "o" * (CONTEXT + 5)], temperature=0, max_tokens=2 * CONTEXT)
    slid = 0
    for completion in found:
        row = [*completion.prompt_ids, *completion.ids]
        kept = len(completion.prompt_ids) if len(completion.prompt_ids) <= CONTEXT else HALF
        for place in range(len(completion.prompt_ids), len(row)):
            if kept > CONTEXT:
                kept, slid = HALF, slid + 1
            window = row[place - kept : place]
            logits_V = model(torch.tensor([window]))[0, -1]
            logits_V[[0, BEGIN]] = -math.inf
            assert row[place] == int(logits_V.argmax())
            kept += 1
    assert slid >= 6


def test_a_prompt_longer_than_the_context_is_its_last_half_context() -> None:
    completer = tiny_completer("bytes")
    long = "one two three four five six seven"
    end = completer("one", max_tokens=9)
    assert len(completer.begin(long)) > CONTEXT
    whole = completer(long, max_tokens=9)
    plain = Completer(completer.model, completer.vocabulary, marked=False)
    assert whole.ids == plain(long[-HALF:], max_tokens=9).ids
    assert whole.prompt == long
    assert end.ids != whole.ids


def test_whoever_writes_past_the_context_is_told() -> None:
    completer = tiny_completer("bytes")
    assert completer.slides("one", Request(max_tokens=CONTEXT - 4)) is None
    told = completer.slides("one", Request(max_tokens=CONTEXT - 3))
    assert told is not None
    for number in (4, CONTEXT - 3, CONTEXT, HALF):
        assert f"{number}" in told
    assert completer.slides("one", Request()) is not None, "the default length is longer than this context"
    told = completer.slides("x" * 1500, Request(max_tokens=1))
    assert told is not None
    assert "1,501 tokens" in told
    assert f"last {HALF}" in told


# Scores of a text


@pytest.mark.parametrize("kind", ["bpe", "bytes", "characters"])
@pytest.mark.parametrize("marked", [True, False])
def test_surprises_are_the_log_probability_of_the_text(kind: str, marked: bool) -> None:
    completer, text = tiny_completer(kind, marked=marked), "für 5 € ☃"
    model = in_pytorch(completer)
    pieces, logprobs = completer.surprises(text)
    ids = completer.vocabulary.encode([text])[0]
    assert "".join(pieces) == text
    assert len(pieces) == len(logprobs) == len(ids)
    row = [BEGIN, *ids] if marked else ids
    found_TV = model(torch.tensor([row[:-1]]))[0].log_softmax(-1)
    expected = found_TV.gather(1, torch.tensor(row[1:])[:, None])[:, 0].tolist()
    assert logprobs[0] is None or marked
    assert logprobs[0 if marked else 1 :] == pytest.approx(expected, abs=1e-4)


def test_a_character_stands_at_the_last_of_its_bytes() -> None:
    pieces, _ = tiny_completer("bytes").surprises("a☃é\ufffdb")
    assert pieces == ["a", "", "", "☃", "", "é", "", "", "", "\ufffdb"]
    assert tiny_completer("bytes").surprises("\ufffd")[0] == ["", "", "\ufffd"]


@pytest.mark.parametrize("length", [CONTEXT - 1, CONTEXT, CONTEXT + 1, 2 * CONTEXT, 5 * CONTEXT + 7])
@pytest.mark.parametrize("marked", [True, False])
def test_a_long_text_is_read_in_windows_that_overlap(length: int, marked: bool) -> None:
    model = in_pytorch(completer := tiny_completer("bytes", marked=marked))
    text = ("one two three four " * 10)[:length]
    _, logprobs = completer.surprises(text)
    row = completer.begin(text)
    known = [logprob for logprob in logprobs if logprob is not None]
    assert len(logprobs) == length
    assert len(known) == len(row) - 1
    for place, logprob in enumerate(known, 1):
        first = 0 if place <= CONTEXT else HALF * math.ceil((place - CONTEXT) / HALF)
        assert place - first > HALF or first == 0, "each has at least half a context before it"
        found_V = model(torch.tensor([row[first:place]]))[0, -1].log_softmax(-1)
        assert logprob == pytest.approx(found_V[row[place]].item(), abs=1e-4)


def test_nothing_has_no_pieces() -> None:
    assert tiny_completer().surprises("") == ([], [])
    assert tiny_completer(marked=False).surprises("") == ([], [])
    pieces, logprobs = tiny_completer("bytes", marked=False).surprises("a")
    assert (pieces, logprobs) == (["a"], [None])


# Looking


@pytest.mark.parametrize("marked", [True, False])
def test_looks_are_of_the_prompt_and_what_was_written(marked: bool) -> None:
    completer = tiny_completer("bytes", marked=marked)
    found = completer("one", max_tokens=6)
    looks = found.looks
    length = len(found.prompt_ids) + len(found.ids)
    assert looks.decoder.shape == (3, 4, length, length)
    assert len(looks.source) == len(looks.target) == length
    assert (looks.source[0] == "(begin)") == marked
    alignment = looks.alignment()
    assert alignment.weights_TS.sum(axis=1) == pytest.approx(1, abs=1e-5)
    long = completer("one", max_tokens=3 * CONTEXT).looks
    assert long.decoder.shape[-1] <= CONTEXT

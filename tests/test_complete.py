"""Completing a text: stop strings, streams, contexts that slide, scores; the commands; from a text to a model."""

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import saccade
from saccade.data.stream import Stream, encode_documents
from saccade.errors import UserError, WrongUse
from saccade.evaluate.language import surprise
from saccade.folder import ModelFolder
from saccade.models.contract import Decoder, Memory
from saccade.tasks.completer import Completer, Completion
from saccade.tasks.contract import Request
from saccade.tasks.language import FilesConfig, LanguageRecipe, LanguageTask, _split
from saccade.tasks.table import TASKS
from saccade.tokens.marks import BEGIN, END
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from tiny import CONTEXT, SENTENCES, Said, ask, tiny_gpt, tiny_vocabulary, write_tiny_language_model, write_tiny_model

LONGEST = TASKS["language"].longest_text
HALF = CONTEXT // 2


def tiny_completer(kind: str = "bpe", *, marked: bool = True, name: str = "gpt-2", **options: Any) -> Completer:
    vocabulary = tiny_vocabulary(kind)
    model = tiny_gpt(name, vocabulary=len(vocabulary), **options)
    return Completer(model, vocabulary, marked=marked, how="exact")


class ScriptedState:
    def __init__(self, rows: int) -> None:
        self.rows, self.device = rows, torch.device("cpu")


class Scripted(Decoder):
    """Writes what it was told to, whatever it reads."""

    def __init__(self, script: Sequence[int], vocabulary: int) -> None:
        super().__init__()
        self.script, self.vocabulary = iter(script), vocabulary

    def start(self, memory: Memory | None, rows: int = 1) -> Any:
        return ScriptedState(rows)

    def extend(self, tokens_BT: Tensor, lengths_B: Tensor, state: Any) -> Any:
        return self.next_B1V().expand(-1, tokens_BT.shape[1], -1).clone(), state

    def step(self, tokens_B: Tensor, state: Any) -> Any:
        return self.next_B1V()[:, 0], state

    def next_B1V(self) -> Tensor:
        logits_B1V = torch.zeros(1, 1, self.vocabulary)
        logits_B1V[..., next(self.script)] = 30.0
        return logits_B1V


def scripted(text: str | list[int], kind: str = "bytes") -> Completer:
    """A completer that goes on with this text, and then ends."""
    completer = tiny_completer(kind)
    ids = completer.vocabulary.encode([text])[0] if isinstance(text, str) else text
    completer.decoder = Scripted([*ids, END], len(completer.vocabulary))
    return completer


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
    options = {"temperature": 1.0, "seed": 5, "max_tokens": 40}
    free = completer("one", **options).text
    for start in range(0, len(free), 3):
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
    completer = tiny_completer()
    request = Request(temperature=1.0, max_tokens=10)
    one, other = completer.stream("one", request), completer.stream("two", request)
    for _ in zip(one, other, strict=False):
        assert not torch.is_inference_mode_enabled()
        assert torch.is_grad_enabled()
    unfinished = completer.stream("three", request)
    next(unfinished)
    del unfinished
    assert not torch.is_inference_mode_enabled()


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


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_a_text_does_not_depend_on_how_many_are_written_at_once(rows: int) -> None:
    completer, request = tiny_completer(), Request(temperature=1.0, seed=7, max_tokens=30)
    expected = [answer.text for answer in completer.answer(PROMPTS * 3, request)]  # type: ignore[union-attr]
    completer.rows_at_once = rows
    assert [answer.text for answer in completer.answer(PROMPTS * 3, request)] == expected  # type: ignore[union-attr]


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
    completer = tiny_completer("bytes", marked=marked)
    for seed in range(5):
        found = completer("one", temperature=1.5, top_k=50, repetition=1.2, seed=seed, max_tokens=CONTEXT - 5)
        written = found.ids + ([END] if found.ended == "end" else [])
        row = [*found.prompt_ids, *written]
        logits_TV = completer.model(torch.tensor([row[:-1]]))[0, len(found.prompt_ids) - 1 :]
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
    completer = Completer(tiny_gpt(vocabulary=6), vocabulary, marked=False, how="exact")
    with pytest.raises(UserError, match="give it something to go on from"):
        completer("")
    assert len(completer("a", max_tokens=5).ids) == 5 or completer("a").ended == "end"


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
    completer = tiny_completer(tie=False)
    with torch.no_grad():
        completer.model.decoder.head.weight[END] = 0
    found = completer("one", temperature=0.7, max_tokens=4 * CONTEXT)
    assert len(found.ids) == 4 * CONTEXT


def test_when_a_context_slides_follows_from_the_texts_own_length() -> None:
    """Each token from what its text remembers at that length, whoever writes beside it."""
    completer = tiny_completer("bytes", tie=False)
    with torch.no_grad():
        completer.model.decoder.head.weight[END] = 0
    found = completer(["one", "one two three four fi", "o" * (CONTEXT + 5)], max_tokens=2 * CONTEXT)
    slid = 0
    for completion in found:
        row = [*completion.prompt_ids, *completion.ids]
        kept = len(completion.prompt_ids) if len(completion.prompt_ids) <= CONTEXT else HALF
        for place in range(len(completion.prompt_ids), len(row)):
            if kept > CONTEXT:
                kept, slid = HALF, slid + 1
            window = row[place - kept : place]
            logits_V = completer.model(torch.tensor([window]))[0, -1]
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
    plain = Completer(completer.model, completer.vocabulary, marked=False, how="exact")
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
    pieces, logprobs = completer.surprises(text)
    ids = completer.vocabulary.encode([text])[0]
    assert "".join(pieces) == text
    assert len(pieces) == len(logprobs) == len(ids)
    row = [BEGIN, *ids] if marked else ids
    found_TV = completer.model(torch.tensor([row[:-1]]))[0].log_softmax(-1)
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
    completer = tiny_completer("bytes", marked=marked)
    text = ("one two three four " * 10)[:length]
    _, logprobs = completer.surprises(text)
    row = completer.begin(text)
    known = [logprob for logprob in logprobs if logprob is not None]
    assert len(logprobs) == length
    assert len(known) == len(row) - 1
    for place, logprob in enumerate(known, 1):
        first = 0 if place <= CONTEXT else HALF * math.ceil((place - CONTEXT) / HALF)
        assert place - first > HALF or first == 0, "each has at least half a context before it"
        found_V = completer.model(torch.tensor([row[first:place]]))[0, -1].log_softmax(-1)
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


# Commands


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_language_model(tmp_path_factory.mktemp("complete") / "tiny", kind="bytes")


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_language_model(tmp_path_factory.mktemp("complete") / "letters", kind="characters", marked=False)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("complete") / "translator")


def answered(said: Said) -> str:
    assert said.code == 0, said
    assert said.err == "", said
    return said.out


SHORT = ["--max-tokens", "10", "--seed", "4"]


def test_the_command_says_what_the_library_says(model: Path) -> None:
    completer = saccade.load(model)
    for words, options in (
        (["--temperature", "0"], {}),
        ([], {"temperature": 0.8}),
        (
            ["--temperature", "1.5", "--top-k", "40", "--top-p", "0.9", "--repetition", "1.3"],
            {"temperature": 1.5, "top_k": 40, "top_p": 0.9, "repetition": 1.3},
        ),
    ):
        expected = completer("one", seed=4, max_tokens=10, **options).text
        assert answered(ask("complete", "one", "--model", model, *SHORT, *words)) == f"one{expected}\n"


def test_streamed_or_not_the_same_is_printed(model: Path) -> None:
    for prompts in (["one"], ["one", "", "two cats"]):
        streamed = answered(ask("complete", *prompts, "--model", model, *SHORT))
        assert answered(ask("complete", *prompts, "--model", model, "--no-stream", *SHORT)) == streamed
    bare = answered(ask("complete", "one", "--model", model, "--no-echo", *SHORT))
    assert answered(ask("complete", "one", "--model", model, *SHORT)) == f"one{bare}"
    assert answered(ask("complete", "one", "--model", model, "--no-echo", "--no-stream", *SHORT)) == bare


def test_standard_input_is_one_prompt(model: Path) -> None:
    expected = answered(ask("complete", "one\n\ntwo", "--model", model, *SHORT))
    for content in ("one\n\ntwo\n", "one\n\ntwo", "\ufeffone\n\ntwo\r\n"):
        assert answered(ask("complete", "--model", model, *SHORT, stdin=content.encode())) == expected


def test_an_empty_prompt_is_a_beginning(model: Path, letters: Path) -> None:
    for path in (model, letters):
        by_argument = answered(ask("complete", "", "--model", path, *SHORT))
        assert len(by_argument) > 1
        assert answered(ask("complete", "--model", path, *SHORT, stdin=b"")) == by_argument


def test_json_tells_all(model: Path) -> None:
    said = ask("complete", "one", "für", "--model", model, "--format", "json", *SHORT)
    rows = [json.loads(line) for line in answered(said).splitlines()]
    assert [row["prompt"] for row in rows] == ["one", "für"]
    completer = saccade.load(model)
    for row, found in zip(rows, completer(["one", "für"], temperature=0.8, seed=4, max_tokens=10), strict=True):
        assert row == {
            "prompt": found.prompt,
            "text": found.text,
            "logprob": pytest.approx(found.logprob, abs=1e-4),
            "tokens": len(found.ids),
            "ended": found.ended,
            "seed": 4,
        }


def test_the_kth_completion_does_not_depend_on_the_others(model: Path) -> None:
    def texts(*words: str) -> list[str]:
        out = answered(ask("complete", *words, "--model", model, "--format", "json", *SHORT))
        return [json.loads(line)["text"] for line in out.splitlines()]

    five = texts("one", "--n", "5")
    assert len(set(five)) == 5
    assert texts("one", "--n", "3") == five[:3]
    assert texts("one") == five[:1]
    both = texts("one", "two", "--n", "3")
    assert both[:3] == five[:3]
    assert texts("zero", "two", "--n", "2")[2:] == both[3:5]
    plain = answered(ask("complete", "one", "--model", model, "--n", "3", *SHORT))
    assert plain == "\n\n".join(f"one{text}" for text in five[:3]) + "\n"


def test_seeds_decide_and_without_one_every_run_differs(model: Path) -> None:
    def drawn(*words: str) -> str:
        return answered(ask("complete", "one", "--model", model, "--max-tokens", "15", *words))

    assert drawn("--seed", "3") == drawn("--seed", "3") != drawn("--seed", "4")
    assert drawn() != drawn()
    assert drawn("--temperature", "0") == drawn("--temperature", "0")
    (row,) = [json.loads(line) for line in drawn("--format", "json").splitlines()]
    again = drawn("--format", "json", "--seed", str(row["seed"]))
    assert json.loads(again) == row, "the seed that was drawn is told, and draws the same again"


def test_stop_strings_may_be_repeated(model: Path) -> None:
    words = ["--model", model, "--no-echo", "--seed", "4", "--max-tokens", "15"]
    free = answered(ask("complete", "one", *words)).removesuffix("\n")
    first, second = free[3], free[6]
    expected = free[: min(free.index(first), free.index(second))]
    assert answered(ask("complete", "one", "--stop", first, "--stop", second, *words)) == f"{expected}\n"


def test_a_notice_is_said_when_the_context_slides(model: Path) -> None:
    said = ask("complete", "one", "--model", model, "--max-tokens", "60", "--seed", "1")
    assert said.code == 0
    assert said.err.startswith("saccade: 4 + 60 tokens are more than the model's context of 24")
    assert said.err.count("\n") == 1
    said = ask("complete", "one " * 20, "--model", model, "--max-tokens", "5")
    assert "the prompt has 81 tokens; the model reads the last 12" in said.err


def test_a_look_is_drawn(model: Path, tmp_path: Path) -> None:
    said = ask("complete", "one", "--model", model, *SHORT, "--look", tmp_path / "look.png")
    assert said.code == 0, said
    assert (tmp_path / "look.png").stat().st_size > 1000
    assert said.out == answered(ask("complete", "one", "--model", model, *SHORT))
    drawn = ask("complete", "one", "--model", model, *SHORT, "--look", "--layer", "2", "--head", "3")
    assert "self-attention, layer 2 of 3, head 3 of 4" in drawn.out


def test_score_prints_the_text_and_its_log_probability(model: Path, letters: Path) -> None:
    text = "für 5 € ☃"
    for path, count in ((model, len(text.encode())), (letters, len(text) - 1)):
        line, total = answered(ask("score", text, "--model", path)).splitlines()
        assert line == text
        _, logprobs = saccade.load(path, "exact").surprises(text)
        known = [logprob for logprob in logprobs if logprob is not None]
        mean = sum(known) / count
        assert total == f"log-probability {sum(known):.2f} over {count} tokens, {mean:.3f} each"
    assert answered(ask("score", "--model", model, stdin=f"{text}\n".encode())).splitlines()[0] == text


def test_score_in_json_has_every_piece(model: Path, letters: Path) -> None:
    for path in (model, letters):
        said = ask("score", "one", "für", "--model", path, "--format", "json")
        rows = [json.loads(line) for line in answered(said).splitlines()]
        assert [row["text"] for row in rows] == ["one", "für"]
        for row in rows:
            assert "".join(token["text"] for token in row["tokens"]) == row["text"]
            known = [token["logprob"] for token in row["tokens"] if token["logprob"] is not None]
            assert row["logprob"] == pytest.approx(sum(known), abs=1e-3)
            assert len(known) == len(row["tokens"]) - (path == letters)


# Each: what is typed, the exit code, and what the line must name.
WRONG: dict[str, tuple[str, int, list[str]]] = {
    "top-k 0": ("complete one --model {model} --top-k 0", 2, ["top-k", "0"]),
    "top-p 2": ("complete one --model {model} --top-p 2", 2, ["top-p", "2"]),
    "top-p 0": ("complete one --model {model} --top-p 0", 2, ["top-p", "0"]),
    "top-p without number": ("complete one --model {model} --top-p nan", 2, ["top-p", "nan"]),
    "temperature below 0": ("complete one --model {model} --temperature -1", 2, ["--temperature", "-1"]),
    "temperature without number": ("complete one --model {model} --temperature nan", 2, ["--temperature", "nan"]),
    "an endless temperature": ("complete one --model {model} --temperature inf", 2, ["--temperature", "inf"]),
    "a word for a number": ("complete one --model {model} --top-k many", 2, ["top-k", "many"]),
    "repetition 0": ("complete one --model {model} --repetition 0", 2, ["repetition", "0"]),
    "n 0": ("complete one --model {model} --n 0", 2, ["--n", "0"]),
    "n beyond reason": ("complete one --model {model} --n 100000", 2, ["--n", "100000"]),
    "an empty stop": ("complete one --model {model} --stop EMPTY", 2, ["--stop"]),
    "no tokens": ("complete one --model {model} --max-tokens 0", 2, ["--max-tokens", "0"]),
    "tokens beyond reason": ("complete one --model {model} --max-tokens 1000000", 2, ["--max-tokens", "1000000"]),
    "seed below 0": ("complete one --model {model} --seed -1", 2, ["--seed", "-1"]),
    "seed beyond 64 bits": ("complete one --model {model} --seed 99999999999999999999", 2, ["--seed", "9999999"]),
    "an unknown model": ("complete one --model nosuch", 2, ["nosuch"]),
    "an unknown model to score": ("score one --model nosuch", 2, ["nosuch"]),
    "a translation model": ("complete one --model {translator}", 2, ["translator", "no language model"]),
    "a translation model to score": ("score one --model {translator}", 2, ["translator", "no language model"]),
    "exact and int8": ("complete one --model {model} --exact --int8", 2, ["--exact", "--int8"]),
    "an unknown option": ("complete one --model {model} --topk 3", 2, ["--topk"]),
    "an unknown format": ("score one --model {model} --format xml", 2, ["xml"]),
    "two pictures": ("complete one two --model {model} --look x.png", 2, ["--look", "one prompt"]),
    "pictures of three": ("complete one --model {model} --n 3 --look x.png", 2, ["--look", "--n"]),
    "a picture of another kind": ("complete one --model {model} --look x.jpg", 2, ["x.jpg", ".png"]),
    "a layer of no picture": ("complete one --model {model} --layer 1", 2, ["--layer", "--look"]),
    "a head of no picture": ("complete one --model {model} --head 1", 2, ["--head", "--look"]),
    "a letter never met": ("complete QUEEN --model {letters}", 1, ["'ENQU'", "characters"]),
    "a letter never met to score": ("score QUEEN --model {letters}", 1, ["'ENQU'", "characters"]),
    "nothing to score": ("score EMPTY --model {model}", 1, ["empty"]),
    "a text too long": (f"score {'x' * (LONGEST + 1)} --model {{model}}", 1, [f"{LONGEST + 1:,}", f"{LONGEST:,}"]),
}


def insist_one_line(said: Said, code: int, fragments: Sequence[str]) -> None:
    assert said.code == code, said
    assert said.out == "", said.out
    assert said.err.startswith("saccade: "), said.err
    assert said.err.count("\n") == 1, said.err
    for fragment in fragments:
        assert fragment in said.err, said.err


@pytest.mark.parametrize(("typed", "code", "fragments"), WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_one_clear_line(
    model: Path, letters: Path, translator: Path, typed: str, code: int, fragments: list[str]
) -> None:
    words = [word.format(model=model, letters=letters, translator=translator) for word in typed.split()]
    insist_one_line(ask(*("" if word == "EMPTY" else word for word in words)), code, fragments)


@pytest.mark.parametrize("command", ["complete", "score"])
def test_input_that_is_no_text_is_refused_with_its_place(model: Path, command: str) -> None:
    said = ask(command, "--model", model, stdin=b"one\ncaf\xe9\n")
    insist_one_line(said, 1, ["not UTF-8", "0xe9", "byte 8"])


@pytest.mark.parametrize("letter", ["a", "é", "€", "👍"])
def test_input_that_is_too_long_is_refused_as_that(model: Path, letter: str) -> None:
    said = ask("score", "--model", model, stdin=letter.encode() * (4 * LONGEST // len(letter.encode()) + 1))
    insist_one_line(said, 1, [f"{LONGEST:,} characters"])


def test_an_argument_in_another_encoding_is_refused(model: Path) -> None:
    insist_one_line(ask("complete", "caf\udce9", "--model", model), 1, ["not Unicode"])


# From a text to a model


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "my.txt"
    lines = [f"{a} {b} {SENTENCES[(a + b) % 4]}, für {a * b} €.\n" for a in range(12) for b in range(12)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


TINY = ["layers=1", "width=16", "heads=2", "hidden=32", "context=32"]
QUICK = ["steps=6", "validate_every=2", "batch_tokens=256", "warmup=2"]
SETTINGS = [
    word
    for setting in (*(f"model.{key}" for key in TINY), *(f"train.{key}" for key in QUICK))
    for word in ("--set", setting)
]


@pytest.fixture(scope="module")
def own(text_file: Path) -> tuple[Path, Said]:
    """A model trained on a file of somebody's own, as small as can be; and what the command said."""
    out = text_file.parent / "my-model"
    return out, ask("train", "language", text_file, "--out", out, *SETTINGS)


def test_a_text_becomes_a_model(own: tuple[Path, Said], text_file: Path) -> None:
    out, said = own
    assert said.code == 0, said.err
    assert [line.rpartition("   ")[0].rpartition(" ")[0] for line in said.lines] == [
        "loss",
        "perplexity",
        "bits per byte",
    ]
    characters = len(text_file.read_text("utf-8"))
    assert f"{characters:,} characters; the last tenth is held out" in said.err
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= {path.name for path in out.iterdir()}


def test_its_scores_are_their_definitions(own: tuple[Path, Said], text_file: Path) -> None:
    _, said = own
    loss, perplexity, bits = (float(line.rpartition("   ")[0].rpartition(" ")[2]) for line in said.lines)
    text = text_file.read_text("utf-8")
    held = len(text[int(0.9 * len(text)) :].encode())
    assert perplexity == pytest.approx(math.exp(loss), abs=0.1)
    # A byte a token, and the first is not predicted.
    assert bits == pytest.approx(loss / math.log(2) * (held - 1) / held, abs=1e-3)
    assert f"tokens:{held - 1}|bytes:{held}|context:32|stride:32" in said.lines[0]
    assert loss < math.log(259), "it has learnt something"


def test_the_trained_model_goes_on_and_shows_itself(own: tuple[Path, Said]) -> None:
    out, _ = own
    found = answered(ask("complete", "one", "--model", out, "--max-tokens", "20", "--seed", "1"))
    assert found.startswith("one")
    assert found == answered(ask("complete", "one", "--model", out, "--max-tokens", "20", "--seed", "1"))
    assert answered(ask("score", "one two", "--model", out)).splitlines()[0] == "one two"
    assert answered(ask("show", out)).splitlines()[0] == "# my-model"


def test_evaluating_gives_what_training_gave(own: tuple[Path, Said], text_file: Path, tmp_path: Path) -> None:
    out, trained = own
    assert answered(ask("evaluate", out)) == trained.out
    text = text_file.read_text("utf-8")
    (tmp_path / "held.txt").write_text(text[int(0.9 * len(text)) :], encoding="utf-8")
    assert answered(ask("evaluate", out, tmp_path / "held.txt")) == trained.out
    rows = [json.loads(line) for line in answered(ask("evaluate", out, "--format", "json")).splitlines()]
    assert [row["name"] for row in rows] == ["loss", "perplexity", "bits per byte"]


def test_a_finished_training_can_be_resumed_without_change(own: tuple[Path, Said]) -> None:
    out, trained = own
    before = (out / "model.safetensors").read_bytes()
    said = ask("resume", out, "--quiet")
    assert said.code == 0, said
    assert said.out == trained.out
    assert (out / "model.safetensors").read_bytes() == before


def test_a_training_cut_short_ends_as_one_that_was_not(own: tuple[Path, Said], text_file: Path) -> None:
    """The last checkpoint and the model are taken away, as if the power had failed just before."""
    out, trained = own
    again = text_file.parent / "again" / "my-model"
    said = ask("train", "language", text_file, "--out", again, *SETTINGS, "--quiet")
    assert (again / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes(), (
        "same seed, same model"
    )
    steps = sorted((again / "checkpoints").iterdir())
    assert len(steps) > 1
    shutil.rmtree(steps[-1])
    for name in ("config.json", "model.safetensors"):
        (again / name).unlink()
    said = ask("resume", again, "--quiet")
    assert said.code == 0, said
    assert said.out == trained.out
    assert (again / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()


@pytest.mark.parametrize("apart", [True, False])
def test_documents_are_scored_as_they_were_trained(tmp_path: Path, apart: bool) -> None:
    """Each alone, or each with a look at what happened to stand before it."""
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in SENTENCES * 3 + ["the end", "one"]))
    data = {"kind": "files", "train": [{"file": "lines.txt", "documents": "lines"}], "hold": 0.5, "apart": apart}
    completer = tiny_completer("bytes", name="rotary")
    folder = ModelFolder(tmp_path, {"data": data}, "", {})
    loss, _, bits = LanguageTask().evaluate(completer, folder, [], [tmp_path], Request())
    held = [*SENTENCES, "the end", "one"][3:]
    tokens = encode_documents(completer.vocabulary, held, marked=True)
    expected = surprise(completer.model, Stream(tokens, apart))
    assert loss.value == expected.loss
    assert bits.value == pytest.approx(expected.nats / math.log(2) / sum(len(text) for text in held))
    assert expected.nats != surprise(completer.model, Stream(tokens, not apart)).nats


@pytest.mark.parametrize("documents", ["whole", "lines"])
def test_only_a_single_text_has_no_marks(text_file: Path, tmp_path: Path, documents: str) -> None:
    recipe = LanguageRecipe.read(
        {
            "name": "toy",
            "data": {"kind": "files", "train": [{"file": str(text_file), "documents": documents}], "hold": 0.1},
            "tokens": {"kind": "bytes"},
            "model": {"layers": 1, "width": 16, "heads": 2, "hidden": 32, "context": 32},
            "train": {"steps": 2, "batch_tokens": 128},
        },
        where="test",
    )
    work, told = LanguageTask().prepare(recipe, [], tmp_path, resume=False)
    again, _ = LanguageTask().prepare(recipe, [], tmp_path, resume=True)
    marked = documents == "lines"
    batches = [work.batch(next(work.sampler)) for _ in range(5)]
    for batch in batches:
        assert batch.tokens_BT.shape == (4, 32)
        assert bool((batch.tokens_BT == BEGIN).any()) == marked == (batch.documents_BT is not None)
        assert torch.equal(again.batch(next(again.sampler)).tokens_BT, batch.tokens_BT), "kept as it was prepared"
    text = text_file.read_text("utf-8")
    training = text[: int(0.9 * len(text))] if not marked else "".join(text.splitlines()[: int(0.9 * 144)])
    marks = int(0.9 * 144) if marked else -1
    assert f"{len(training.encode()) + marks:,} training tokens" in told[0]


def split(folder: Path, texts: list[str], hold: float, documents: str = "whole") -> tuple[list[str], list[str]]:
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
    files = [{"file": f"{number}.txt", "documents": documents} for number in range(len(texts))]
    return _split(FilesConfig.model_validate({"train": files, "hold": hold}), [folder], lowercase=False)


def test_the_end_of_the_text_is_held_out(tmp_path: Path) -> None:
    lines = [f"{number:04}" for number in range(100)]
    text = "".join(f"{line}\n" for line in lines)
    assert split(tmp_path, [text], 0.1) == ([text[:450]], [text[450:]])
    assert split(tmp_path, [text], 0.1, "lines") == (lines[:90], lines[90:])
    # A tenth of two texts is the end of the second, not all of it; what is short goes whole.
    other, short = text.replace("0", "x"), "end\n"
    assert split(tmp_path, [text, other], 0.1) == ([text, other[:400]], [other[400:]])
    assert split(tmp_path, [text, other, short], 0.1) == ([text, other[:403]], [other[403:], short])


@pytest.mark.parametrize("hold", [0.1, 0.5, 0.9])
def test_nothing_is_both_trained_on_and_held_out(tmp_path: Path, hold: float) -> None:
    texts = [chr(ord("a") + number) * (5 + 3 * number) + "\n" for number in range(9)]
    training, held = split(tmp_path, texts, hold)
    assert "".join(training + held) == "".join(texts)
    assert all(training)
    assert all(held)
    if hold == 0.5:
        assert (training, held) == (texts[:4], texts[4:]), "enough of them: none is cut"
    else:
        assert sum(map(len, held)) == pytest.approx(hold * sum(map(len, texts)), abs=1)


def test_a_text_too_short_to_hold_some_of_it_out_is_refused(tmp_path: Path) -> None:
    for hold in (0.1, 0.9):
        with pytest.raises(UserError, match="too short to hold"):
            split(tmp_path, ["a"], hold)


@pytest.mark.parametrize(
    ("contents", "fragments"),
    [([""], ["0.txt", "no text"]), ([" \n"], ["0.txt", "no text"]), (["one", "one"], ["1.txt", "already there"])],
    ids=str,
)
def test_texts_that_hold_nothing_are_refused(tmp_path: Path, contents: list[str], fragments: list[str]) -> None:
    files = [tmp_path / f"{number}.txt" for number in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_text(content)
    insist_one_line(ask("train", "language", *files, "--out", tmp_path / "out"), 1, fragments)
    assert not (tmp_path / "out").exists()


def test_a_text_that_is_not_there_is_named(tmp_path: Path) -> None:
    insist_one_line(
        ask("train", "language", tmp_path / "no.txt", "--out", tmp_path / "out"), 1, ["no.txt: no such file"]
    )

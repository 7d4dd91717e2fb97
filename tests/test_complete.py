"""The commands that ask a language model: complete, score."""

import json
from pathlib import Path

import pytest

import saccade
from saccade.pipelines.table import TASKS
from tiny import answered, ask, insist_one_line, write_tiny_language_model, write_tiny_model

LONGEST = TASKS["language"].source.longest


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_language_model(tmp_path_factory.mktemp("complete") / "tiny", kind="bytes")


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_language_model(tmp_path_factory.mktemp("complete") / "letters", kind="characters", marked=False)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("complete") / "translator")


SHORT = ["--max-tokens", "10", "--seed", "4"]


def test_the_command_says_what_the_library_says(model: Path) -> None:
    completer = saccade.load(model)
    for words, options in (
        (["--temperature", "0"], {"temperature": 0}),
        (["--temperature", "0"], {"beam": 1}),
        ([], {}),
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


def test_command_and_python_have_the_same_defaults(model: Path) -> None:
    prompts = ["one", "two cats"]
    expected = [f"{prompt}{answer.text}" for prompt, answer in zip(prompts, saccade.load(model)(prompts), strict=True)]
    assert answered(ask("complete", *prompts, "--model", model, "--quiet")) == "\n\n".join(expected) + "\n"


def test_seeds_decide_and_the_first_is_0(model: Path) -> None:
    def drawn(*words: str) -> str:
        return answered(ask("complete", "one", "--model", model, "--max-tokens", "15", *words))

    assert drawn("--seed", "3") == drawn("--seed", "3") != drawn("--seed", "4")
    assert drawn() == drawn("--seed", "0", "--temperature", "0.8")
    assert drawn("--temperature", "0") == drawn("--temperature", "0")
    assert json.loads(drawn("--format", "json", "--seed", "5"))["seed"] == 5


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


def test_a_look_is_drawn(letters: Path, tmp_path: Path) -> None:
    said = ask("complete", "one", "--model", letters, *SHORT, "--look", tmp_path / "look.png")
    assert said.code == 0, said
    assert (tmp_path / "look.png").stat().st_size > 1000
    assert said.out == answered(ask("complete", "one", "--model", letters, *SHORT))
    drawn = ask("complete", "one", "--model", letters, *SHORT, "--look", "--layer", "2", "--head", "3")
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

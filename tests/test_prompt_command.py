"""Programming by a prompt: the page is as the template says, examples are drawn fairly, what goes wrong is said."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from made_up_words import made_up_data
from saccade.arch.gpt import GptConfig
from saccade.config import read_toml
from saccade.errors import UserError, WrongUse
from saccade.evaluate.curve import Point, pooled, wilson
from saccade.folder import read_folder, write_card
from saccade.models.gpt import build_gpt
from saccade.pipelines.completer import Completer, Completion
from saccade.pipelines.pipeline import Report, Request
from saccade.pipelines.program import Answered, Program
from saccade.pipelines.template import (
    BUILT_IN,
    PromptTemplate,
    draw_examples,
    fitted,
    most_examples,
    read_template,
)
from saccade.study.prompts import draw_curves
from saccade.tasks.language import LanguageRecipe
from saccade.tasks.recipes import RECIPES
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from saccade.weights import write_folder
from tiny import SENTENCES, Said, ask, tiny_gpt, write_tiny_model

PNG = b"\x89PNG\r\n\x1a\n"
CONTEXT = 200
PAIRS = [("cat", "cats"), ("dog", "dogs"), ("bird", "birds"), ("cow", "cows"), ("hen", "hens")]
TEMPLATE = 'instruction = "Give the plural."\ninput = ""\noutput = "->"\nbetween = " "\n'


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an untrained model of bytes, pairs, templates, and bad files of each kind."""
    room = tmp_path_factory.mktemp("room")
    vocabulary = train_vocabulary(TokensConfig(kind="bytes"), SENTENCES, spaced=False)
    sizes = {"layers": 2, "width": 16, "heads": 2, "feedforward": 24, "context": CONTEXT}
    model = tiny_gpt(vocabulary=len(vocabulary), **sizes)
    table = {
        "task": "language",
        "name": "tiny",
        "model": GptConfig.read(sizes, where="tiny").table(),
        "data": {"kind": "prompts", "questions": 3},
        "marked": True,
    }
    write_folder(room / "model", table, model, vocabulary.tokenizer.to_str(), storage="float32")
    write_card(room / "model", "# tiny\n")
    write_tiny_model(room / "translator")
    for name, text in {
        "pairs.tsv": "".join(f"{text}\t{output}\n" for text, output in PAIRS),
        "test.tsv": "fox\tfoxes\ncat\tcats\n",
        "tabless.tsv": "cat\tcats\ndog dogs\n",
        "empty.tsv": "",
        "arrow.toml": TEMPLATE,
        "misspelt.toml": 'instructoin = "Give the plural."\n',
        "endless.toml": 'after = ""\n',
        "joined.toml": 'between = ""\noutput = ""\n',
        "broken.toml": "input: 5\n",
        "blank.toml": 'examples = [["cat", " "]]\n',
    }.items():
        (room / name).write_text(text)
    (room / "latin.tsv").write_bytes(b"caf\xe9\tcaf\xe9s\n")
    return room


@pytest.fixture(scope="module")
def completer(room: Path) -> Completer:
    return Completer.open(read_folder(room / "model"), "exact")


# The template


def test_a_page_is_as_the_template_says(room: Path) -> None:
    assert (
        PromptTemplate().prompt(PAIRS[:2], "fox")
        == "Input: cat\nOutput: cats\nInput: dog\nOutput: dogs\nInput: fox\nOutput:"
    )
    arrow = read_template(str(room / "arrow.toml"))
    assert arrow.prompt(PAIRS[:2], "fox") == "Give the plural.\ncat -> cats\ndog -> dogs\nfox ->"
    assert arrow.prompt([], "fox") == "Give the plural.\nfox ->"
    bare = PromptTemplate(input="", output="", between=" = ", after="; ")
    assert bare.prompt(PAIRS[:1], "fox") == "cat = cats; fox ="
    english = BUILT_IN["poor-english"]
    assert english.prompt([("I eated.", "I ate.")], "He go.").splitlines() == [
        "Poor English input: I eated.",
        "Good English output: I ate.",
        "Poor English input: He go.",
        "Good English output:",
    ]


def test_an_example_goes_on_as_its_own_prompt_asks() -> None:
    """What the model should write after a prompt is what examples have at that place."""
    for template in (PromptTemplate(), *BUILT_IN.values(), PromptTemplate(input="", output="", between="\t")):
        page = template.prompt(PAIRS[:1], "dog")
        whole = template.example(PAIRS[0]) + template.example(PAIRS[1])
        assert whole.startswith(page)
        answer = whole[len(page) :].partition(template.ends)[0]
        assert answer.strip() == "dogs"


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({}, "\n"),
        ({"after": "\n\n"}, "\n"),
        ({"after": "###\n"}, "###\n"),
        ({"after": "\n\n", "stop": "\n\n"}, "\n\n"),
    ],
)
def test_what_ends_an_answer(options: dict[str, str], ends: str) -> None:
    assert PromptTemplate(**cast("dict[str, Any]", options)).ends == ends


def test_as_many_examples_are_kept_as_fit_the_last_ones() -> None:
    template = PromptTemplate()
    for longest in range(len(template.prompt([], "fox")), len(template.prompt(PAIRS, "fox")) + 1):
        page, left_out = fitted(template, PAIRS, "fox", lambda text, longest=longest: len(text) <= longest)  # type: ignore[misc]
        assert page == template.prompt(PAIRS[left_out:], "fox")
        assert len(page) <= longest
        assert not left_out or len(template.prompt(PAIRS[left_out - 1 :], "fox")) > longest
    with pytest.raises(UserError, match="even without examples"):
        fitted(template, PAIRS, "fox", lambda text: len(text) < 5)


def test_examples_are_drawn_without_the_query() -> None:
    for number in range(20):
        drawn = draw_examples(PAIRS, "dog", 4, seed=1, number=number)
        assert len(set(drawn)) == 4
        assert "dog" not in dict(drawn)
        assert drawn[:2] == draw_examples(PAIRS, "dog", 2, seed=1, number=number), "more examples are some others too"
    draws = {tuple(draw_examples(PAIRS, "fox", 3, seed=seed, number=number)) for seed in (1, 2) for number in range(9)}
    assert len(draws) > 9, "seed and query both decide"
    assert most_examples(PAIRS, [("fox", "foxes")]) == 5
    assert most_examples([*PAIRS, PAIRS[0]], [("fox", "foxes"), ("cat", "cats")]) == 4


# Shares


def test_wilsons_interval() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((1 - 0.2775, 1.0), abs=1e-4)
    narrow, wide = wilson(800, 1000), wilson(8, 10)
    assert wide[0] < narrow[0] < 0.8 < narrow[1] < wide[1]


def test_questions_are_pooled() -> None:
    assert pooled([Point(8, 3, 10, 8.0), Point(8, 9, 10, 6.0)]) == Point(8, 12, 20, 7.0)


# Programs


class Reader:
    """A completer that reverses the query, if two examples or more have shown it how; it sees characters."""

    context = 60

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.vocabulary = SimpleNamespace(encode=lambda texts: [list(text) for text in texts])

    def begin(self, prompt: str) -> list[str]:
        return ["", *prompt]

    def answer(
        self, texts: Sequence[str], requests: Sequence[Request], *, numbers: Sequence[int] | None, report: Report
    ) -> list[Any]:
        self.asked += texts
        answers = []
        for text, request in zip(texts, requests, strict=True):
            assert request.stop == ("\n",)
            assert request.max_tokens
            *shown, query = text.split("\n")
            answer = query.removesuffix(" =")[::-1] if len(shown) >= 2 else "?"
            answers.append(Completion(text, f" {answer}"[: request.max_tokens], 0.0, "stop", [], []))
        report(len(texts), len(texts))
        return answers


def reversing() -> tuple[Program, Reader]:
    reader = Reader()
    return Program(cast(Completer, reader), PromptTemplate(input="", output="=", between=" ")), reader


def test_accuracy_is_counted_for_each_number_of_examples() -> None:
    program, reader = reversing()
    examples = [(word, word[::-1]) for word in ("abc", "bcd", "cde", "def")]
    tests = [("efg", "gfe"), ("abc", "cba"), ("xyz", "not reversed")]
    done: list[tuple[int, int]] = []
    points = program.test(examples, tests, [0, 1, 2, 3], lambda *args: done.append(args))
    assert [(point.k, point.right, point.asked, point.examples) for point in points] == [
        (0, 0, 3, 0.0),
        (1, 0, 3, 1.0),
        (2, 2, 3, 2.0),
        (3, 2, 3, 3.0),
    ]
    assert done[-1] == (12, 12)
    assert not [page for page in reader.asked if page.endswith("abc =") and "abc = cba" in page]


def test_examples_that_do_not_fit_are_left_out_and_counted() -> None:
    program, _ = reversing()
    examples = [(word, word[::-1]) for word in ("abcdefgh", "bcdefghi", "cdefghij", "defghijk")]
    page = program.page("efghijkl", examples)
    assert (page.examples, page.left_out) == (1, 3)
    assert page.prompt == "defghijk = kjihgfed\nefghijkl ="
    assert 1 + len(page.prompt) + page.room <= Reader.context
    (point,) = program.test(examples, [("efghijkl", "lkjihgfe")], [4])
    assert (point.examples, point.right) == (1.0, 0)


def test_there_is_room_for_answers_as_long_as_the_query() -> None:
    program, _ = reversing()
    program.completer.context = 1000
    long = "abcdefghijklmnopqrstuvwxyz" * 3
    (answer,) = program.run([long], [("abc", "cba"), ("bcd", "dcb")])
    assert isinstance(answer, Answered)
    assert answer.text == long[::-1]


@pytest.mark.parametrize("temperature", [None, 1.0])
def test_an_answer_does_not_depend_on_other_queries(completer: Completer, temperature: float | None) -> None:
    queries = ["fox", "a much longer query, for whose answer there is more room", "", "owl"]
    program = Program(completer, PromptTemplate(), temperature=temperature, seed=5)
    together = program.run(queries, PAIRS[:2], first=7)
    assert together[2] is None
    for place in (0, 1, 3):
        alone, among = program.run([queries[place]], PAIRS[:2], first=7 + place)[0], together[place]
        assert isinstance(alone, Answered)
        assert isinstance(among, Answered)
        assert alone.record() == {**among.record(), "logprob": pytest.approx(among.completion.logprob, abs=1e-3)}
        assert "\n" not in among.text


def test_a_query_too_long_for_the_model_is_an_error_of_its_own(completer: Completer) -> None:
    answers = Program(completer, PromptTemplate()).run(["fox", "x" * CONTEXT, "owl"], PAIRS)
    assert [type(answer) for answer in answers] == [Answered, UserError, Answered]


# The command


def answered(said: Said) -> list[str]:
    assert said.code == 0, said
    assert said.err == "", said
    return said.lines


def base(room: Path) -> list[str | Path]:
    return ["prompt", "--model", room / "model", "--examples", room / "pairs.tsv"]


def test_queries_are_answered_a_line_each(room: Path) -> None:
    lines = answered(ask(*base(room), "--input", "fox", "owl"))
    assert len(lines) == 2
    assert answered(ask(*base(room), stdin=b"fox\n\nowl\n")) == [lines[0], "", lines[1]]
    assert answered(ask(*base(room), "--input", "fox", "--input", "owl")) == lines


def test_machines_get_the_page_and_what_became_of_it(room: Path) -> None:
    (line,) = answered(ask(*base(room), "--k", "2", "--input", "fox", "--format", "json"))
    record = json.loads(line)
    assert record["input"] == "fox"
    assert record["prompt"] == PromptTemplate().prompt(PAIRS[:2], "fox")
    assert (record["examples"], record["left_out"]) == (2, 0)
    assert answered(ask(*base(room), "--k", "2", "--input", "fox")) == [record["text"].replace("\r", " ")]


def test_the_prompt_can_be_seen_without_a_model(room: Path) -> None:
    said = ask("prompt", room / "arrow.toml", "--examples", room / "pairs.tsv", "--show", "--input", "fox", "--k", "1")
    assert said == Said(0, "Give the plural.\ncat -> cats\nfox ->\n", "")
    shown = ask("prompt", "poor-english", "--show", stdin=b"I eated the purple berries.\n")
    assert shown.lines[-2:] == ["Poor English input: I eated the purple berries.", "Good English output:"]
    assert len(shown.lines) == 2 * len(BUILT_IN["poor-english"].examples) + 2


def test_an_instruction_is_enough_of_a_program(room: Path) -> None:
    said = ask("prompt", room / "arrow.toml", "--input", "fox", "--format", "json", "--model", room / "model")
    assert json.loads(answered(said)[0])["prompt"] == "Give the plural.\nfox ->"


def test_examples_left_out_are_told(room: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.tsv"
    many.write_text("".join(f"word{number}\tanswer{number}\n" for number in range(30)))
    said = ask("prompt", "--model", room / "model", "--examples", many, "--input", "fox", "--format", "json")
    record = json.loads(said.out)
    assert said.code == 0
    assert record["examples"] + record["left_out"] == 30
    assert "answer29" in record["prompt"]
    assert f"context of {CONTEXT} tokens" in said.err
    assert f"the first {record['left_out']} of 30 examples left out" in said.err


def test_a_query_that_fails_leaves_its_line_empty(room: Path) -> None:
    said = ask(*base(room), stdin=b"fox\n" + b"x" * CONTEXT + b"\nowl\n\xff\n")
    assert said.code == 1
    assert len(said.lines) == 4
    assert said.lines[1] == said.lines[3] == ""
    assert "query 2: too long for the model's context" in said.err
    assert "line 4: not UTF-8" in said.err


def test_accuracy_is_printed_and_drawn(room: Path, tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    said = ask(*base(room), "--test", room / "test.tsv", "-o", picture)
    assert said.code == 0, said
    assert [line.split()[0] for line in said.lines] == ["k", "0", "1", "2", "4"], "8 examples are not there"
    assert "4 examples beside the query" in said.err
    assert said.lines[1].split() == ["0", "0", "of", "2", "0.0", "%", "0.0", "to", "65.8", "%"]
    assert picture.read_bytes().startswith(PNG)
    records = [
        json.loads(line)
        for line in answered(ask(*base(room), "--test", room / "test.tsv", "--k", "3", "0", "--format", "json"))
    ]
    assert [(record["k"], record["asked"], record["examples"]) for record in records] == [(0, 2, 0), (3, 2, 3)]
    assert records[0]["high"] == pytest.approx(65.76, abs=0.01)


def test_the_families_are_measured(room: Path, tmp_path: Path) -> None:
    data = made_up_data(tmp_path / "data")
    asked = ["prompt", "--families", "--model", room / "model", "--data", data, "--k", "0", "1"]
    said = ask(*asked, "-o", tmp_path / "curve.svg")
    assert said.code == 0, said
    assert said.lines[0].split() == ["k", "=", "0", "k", "=", "1"]
    names = [line.split()[0] for line in said.lines[1:-1]]
    assert {"reverse", "plural", "past", "spelling", "case", "lookup"} <= set(names)
    assert names[-1] == "mean"
    assert "<svg" in (tmp_path / "curve.svg").read_text()
    records = [json.loads(line) for line in ask(*asked, "--format", "json").lines]
    mean = [record for record in records if record["family"] == "mean"]
    assert [(record["k"], record["asked"]) for record in mean] == [(0, 27), (1, 27)], "without the look-up family"


def test_curves_are_drawn_thick_thin_and_dashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    curves = {name: [Point(k, k, 8, k) for k in (0, 1, 8)] for name in ("reverse", "lookup", "mean")}
    draw_curves(curves, tmp_path / "curve.png", title="", mean="mean", apart="lookup")
    lines = {str(line.get_label()): line for line in drawn[0].axes[0].lines}
    assert lines["mean"].get_linewidth() > 2 * lines["reverse"].get_linewidth()
    assert (lines["reverse"].get_linestyle(), lines["lookup"].get_linestyle()) == ("-", "--")
    assert list(cast(Any, lines["mean"].get_ydata())) == [0.0, 12.5, 100.0]
    assert [label.get_text() for label in drawn[0].axes[0].get_xticklabels()] == ["0", "1", "8"]


# Wrong use. Each: what is typed after `saccade prompt`, the exit code, and what the one line must name.

WRONG: dict[str, tuple[str, int, list[str]]] = {
    "a missing file": ("--examples {room}/nosuch.tsv --input a", 1, ["nosuch.tsv", "no such file"]),
    "a line without a tab": ("--examples {room}/tabless.tsv --input a", 1, ["tabless.tsv", "line 2", "no tab"]),
    "a test without a tab": ("--examples {room}/pairs.tsv --test {room}/tabless.tsv", 1, ["line 2", "no tab"]),
    "an empty file": ("--examples {room}/empty.tsv --input a", 1, ["empty.tsv", "no "]),
    "another encoding": ("--examples {room}/latin.tsv --input a", 1, ["latin.tsv", "line 1", "UTF-8"]),
    "more than there are": ("--examples {room}/pairs.tsv --k 6 --input a", 2, ["6", "5"]),
    "more than beside the query": ("--examples {room}/pairs.tsv --test {room}/pairs.tsv --k 5", 2, ["5", "4"]),
    "fewer than none": ("--examples {room}/pairs.tsv --k=-1 --input a", 2, ["-1"]),
    "several k for answers": ("--examples {room}/pairs.tsv --k 1 2 --input a", 2, ["1 2", "--test"]),
    "an unknown key": (
        "{room}/misspelt.toml --input a",
        2,
        ["misspelt.toml", "instructoin", "did you mean instruction"],
    ),
    "nothing after an example": ("{room}/endless.toml --input a", 2, ["endless.toml", "after"]),
    "no place for an answer": ("{room}/joined.toml --input a", 2, ["joined.toml", "between"]),
    "an example without output": ("{room}/blank.toml --input a", 2, ["blank.toml", "cat"]),
    "no TOML": ("{room}/broken.toml --input a", 2, ["broken.toml", "TOML"]),
    "a missing template": ("{room}/nosuch.toml --input a", 1, ["nosuch.toml"]),
    "an unknown template": ("poor-englsh --input a", 2, ["poor-englsh", "did you mean poor-english"]),
    "nothing to go by": ("--input a", 2, ["--examples"]),
    "two jobs": ("--examples {room}/pairs.tsv --test {room}/test.tsv --input a", 2, ["--input", "--test"]),
    "a curve of answers": ("--examples {room}/pairs.tsv --input a -o curve.png", 2, ["curve.png", "--test"]),
    "another kind of picture": ("--examples {room}/pairs.tsv --test {room}/test.tsv -o curve.gif", 2, ["curve.gif"]),
    "no folder": ("--examples {room}/pairs.tsv --test {room}/test.tsv -o {room}/no/c.png", 1, ["no folder"]),
    "families with examples": ("--families --examples {room}/pairs.tsv", 2, ["--families", "--examples"]),
    "a temperature below 0": ("--examples {room}/pairs.tsv --input a --temperature=-1", 2, ["-1"]),
    "no model": ("--examples {room}/pairs.tsv --input a --model nosuch", 2, ["nosuch"]),
    "another kind of model": ("--examples {room}/pairs.tsv --input a --model {room}/translator", 2, ["language model"]),
    "two packings": ("--examples {room}/pairs.tsv --input a --exact --int8", 2, ["--exact", "--int8"]),
}


@pytest.mark.parametrize("typed", WRONG)
def test_wrong_use_is_one_clear_line(room: Path, typed: str) -> None:
    arguments, code, fragments = WRONG[typed]
    said = ask("prompt", *arguments.format(room=room).split())
    assert (said.code, said.out) == (code, ""), said
    assert said.err.startswith("saccade: ")
    assert said.err.count("\n") == 1, said.err
    assert not [fragment for fragment in fragments if fragment not in said.err], said.err


def test_wrong_use_and_prompts_are_known_before_torch_is_loaded(room: Path) -> None:
    program = (
        "import sys\nfrom saccade.cli.main import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: print('torch' in sys.modules)"
    )
    for arguments in (
        ["prompt", str(room / "misspelt.toml"), "--input", "a"],
        ["prompt", "--examples", str(room / "pairs.tsv"), "--show", "--input", "a"],
    ):
        ended = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, check=True
        )
        assert ended.stdout.splitlines()[-1] == "False", ended


def test_a_template_file_takes_no_other_keys(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="seperator"):
        PromptTemplate.read({"seperator": "\n"}, where="template")


# The recipe


def test_the_recipe_makes_a_model_of_three_megabytes_that_reads_a_page() -> None:
    recipe = LanguageRecipe.read(read_toml(RECIPES / "prompts.toml"), where="prompts.toml")
    model = build_gpt(recipe.model, 99)
    assert 2_500_000 < sum(weight.numel() for weight in model.parameters()) < 3_300_000
    assert recipe.model.context == 384
    assert recipe.storage == "int8"

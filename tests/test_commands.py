"""What people type works as promised: help without torch, every command, every output format, training on own files."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.status import Status

import saccade
import saccade.cli.asking
import saccade.pipelines.load
from saccade.cli.main import app
from saccade.config import read_toml
from saccade.data.catalog import CATALOG
from saccade.pipelines.table import TASKS
from saccade.tasks.recipes import RECIPES, task_named
from saccade.train.progress import status_report
from tiny import SENTENCES, Said, ask, write_tiny_model
from toy_trainings import DIGITS

COMMANDS = [
    *(
        "translate",
        "complete",
        "score",
        "prompt",
        "correct",
        "pronounce",
        "fill",
        "classify",
        "tag",
        "see",
        "read",
        "transcribe",
        "caption",
        "answer",
        "walk",
        "act",
        "run",
        "look",
        "explain",
        "heads",
        "align",
        "view",
    ),
    *(
        "train",
        "resume",
        "clean",
        "evaluate",
        "compare",
        "transfer",
        "plan",
        "import",
        "models",
        "show",
        "data",
        "doctor",
    ),
    *("cache", "completion"),
]
PNG = b"\x89PNG\r\n\x1a\n"
SENTENCE = "one cat sees three dogs"

ASK_FOR_HELP = """
import contextlib, io, json, sys
import saccade
torch_of_package = "torch" in sys.modules
from saccade.cli.main import main
said = {}
for command in sys.argv[1:]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            main([*command.split(), "--help"])
        except SystemExit as ended:
            said[command] = [ended.code, out.getvalue()]
print(json.dumps({"said": said, "torch of package": torch_of_package, "torch of help": "torch" in sys.modules}))
"""


@pytest.fixture(scope="module")
def helped() -> dict[str, Any]:
    """The help of every command, asked in one fresh process, and whether torch was imported meanwhile."""
    ended = subprocess.run(
        [sys.executable, "-c", ASK_FOR_HELP, "", *COMMANDS],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("commands") / "tiny")


@pytest.fixture
def bundled(model: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The tiny model as if it came with Saccade; its name."""
    monkeypatch.setattr(saccade.pipelines.load, "ZOO", model.parent)
    return model.name


def answered(said: Said) -> list[str]:
    """Lines of an answer nothing went wrong with. A model of random weights often writes up to its limit."""
    assert said.code == 0, said
    assert all("was cut off after" in line for line in said.err.splitlines()), said
    return said.lines


# Help


def test_these_are_all_commands() -> None:
    assert {name for name in app if not name.startswith("-")} == set(COMMANDS)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_an_example(helped: dict[str, Any], command: str) -> None:
    code, text = helped["said"][command]
    assert code == 0
    assert "xample" in text
    assert text.count(f"saccade {command}".strip()) >= 2, "the usage line and an example"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains_every_argument(helped: dict[str, Any], command: str) -> None:
    rows = [line for line in helped["said"][command][1].splitlines() if re.match(r"│ (\*| ) *[A-Z]|│ +\*? *--", line)]
    assert rows
    for row in rows:
        told = [word for word in re.sub(r"\[[^]]*\]", "", row).strip("│* ").split() if re.search(r"^[^-].*[a-z]", word)]
        assert told, f"not explained: {row}"


@pytest.mark.parametrize("task", TASKS)
def test_help_for_training_tells_the_files_of_every_task(helped: dict[str, Any], task: str) -> None:
    (row,) = re.findall(rf"(?m)^ {task}  +(.*)", helped["said"]["train"][1])
    assert row.startswith("none") == TASKS[task].files.startswith("nothing")


def test_neither_the_package_nor_its_help_imports_torch(helped: dict[str, Any]) -> None:
    assert not helped["torch of package"]
    assert not helped["torch of help"]


def test_no_command_at_all_is_a_request_for_help() -> None:
    said = ask()
    assert said.code == 0
    assert "saccade translate" in said.out


def test_version() -> None:
    assert answered(ask("--version")) == [f"saccade {saccade.__version__}"]


# What is here


def test_models_are_listed(bundled: str) -> None:
    (line,) = answered(ask("models"))
    assert line.split()[:2] == [bundled, "translation"]
    assert "A tiny model for tests." in line
    (row,) = [json.loads(line) for line in answered(ask("models", "--format", "json"))]
    assert row["name"] == bundled
    assert row["task"] == "translation"
    assert row["summary"] == "A tiny model for tests."


def test_a_model_goes_by_name_and_by_folder(bundled: str, model: Path) -> None:
    by_name = answered(ask("run", bundled, SENTENCE))
    assert by_name == answered(ask("run", model, SENTENCE))
    assert by_name == answered(ask("translate", SENTENCE, "--model", bundled))


def test_a_near_miss_is_suggested(bundled: str) -> None:
    said = ask("show", bundled + "y")
    assert said.code == 2
    assert f"did you mean {bundled}?" in said.err


def test_show_prints_the_card(bundled: str, model: Path) -> None:
    assert answered(ask("show", bundled)) == (model / "README.md").read_text("utf-8").splitlines()


def test_data_tells_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SACCADE_DATA", raising=False)
    first = CATALOG[0]
    (tmp_path / "mine" / first.folder).mkdir(parents=True)
    for name in first.files:
        (tmp_path / "mine" / first.folder / name).touch()

    text = ask("data", "--data", "mine")
    rows = [json.loads(line) for line in answered(ask("data", "--data", "mine", "--format", "json"))]
    assert [row["name"] for row in rows] == [known.folder for known in CATALOG]
    assert [row["here"] for row in rows] == [str(Path("mine") / first.folder)] + [None] * (len(CATALOG) - 1)
    for known in CATALOG:
        assert known.licence in text.out
        assert known.source in text.out

    (tmp_path / "mine" / first.folder / first.files[0]).unlink()
    rows = [json.loads(line) for line in answered(ask("data", "--data", "mine", "--format", "json"))]
    assert rows[0]["here"] is None, "a set that is not whole is not here"


def test_data_is_found_through_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CATALOG[0].files:
        (tmp_path / CATALOG[0].folder).mkdir(exist_ok=True)
        (tmp_path / CATALOG[0].folder / name).touch()
    monkeypatch.setenv("SACCADE_DATA", str(tmp_path))
    row = json.loads(answered(ask("data", "--format", "json"))[0])
    assert row["here"] == str(tmp_path / CATALOG[0].folder)


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_recipes_are_read_by_their_task(path: Path) -> None:
    table = read_toml(path)
    recipe = task_named(table["task"]).recipe.read(table, where=str(path))
    assert recipe.name == path.stem


def test_recipes_come_with_the_package() -> None:
    assert {"en-es", "multi30k-en-de"} <= {path.stem for path in RECIPES.glob("*.toml")}


# Answers


def test_the_command_says_what_the_library_says(model: Path) -> None:
    translator = saccade.load(model)
    expected = [translation.text for translation in translator(SENTENCES)]
    assert answered(ask("run", model, *SENTENCES)) == expected
    assert answered(ask("run", model, stdin="\n".join(SENTENCES).encode())) == expected


def test_a_list_in_a_list_out(model: Path) -> None:
    translator = saccade.load(model)
    one, many = translator(SENTENCE), translator([SENTENCE, "two"])
    assert isinstance(many, list)
    assert len(many) == 2
    assert (many[0].text, many[0].source) == (one.text, SENTENCE)
    assert translator((SENTENCE,))[0].text == one.text
    assert translator([]) == []
    assert one.looks.cross.shape[:2] == (2, 2), "layers and heads"
    assert one.looks.cross.shape[2:] == (len(one.looks.target), len(one.looks.source))


def test_json_lines_can_be_read(model: Path) -> None:
    said = ask("run", model, "--format", "json", stdin=f'{SENTENCE}\n\n"quoted" and ☃\n'.encode())
    rows = [json.loads(line) for line in answered(said)]
    assert [row["source"] for row in rows] == [SENTENCE, "", '"quoted" and ☃']
    translation = saccade.load(model)(SENTENCE)
    assert rows[0]["text"] == translation.text
    assert rows[0]["score"] == pytest.approx(translation.score, abs=1e-5)
    assert rows[1]["text"] == ""


def test_the_best_three_come_sorted(model: Path) -> None:
    lines = answered(ask("run", model, SENTENCE, "--best", "3"))
    assert len(lines) == 3
    scores, texts = zip(*(line.split("\t") for line in lines), strict=True)
    assert [float(score) for score in scores] == sorted((float(score) for score in scores), reverse=True)
    assert len(set(texts)) > 1
    (row,) = [json.loads(line) for line in answered(ask("run", model, SENTENCE, "--best", "3", "--format", "json"))]
    assert [best["text"] for best in row["best"]] == list(texts)


@pytest.mark.parametrize("beam", ["1", "3"])
@pytest.mark.parametrize("prefix", ["two", "two dogs", "two ", "Zebra"])
def test_a_prefix_is_kept(model: Path, prefix: str, beam: str) -> None:
    free, forced = (
        answered(ask("run", model, SENTENCE, "--beam", beam, *words)) for words in ([], ["--prefix", prefix])
    )
    assert forced[0].startswith(prefix.rstrip())
    assert not free[0].startswith(prefix.rstrip()), "it would have begun so anyway"


def test_draws_follow_their_seed(model: Path) -> None:
    def draw(seed: str) -> list[str]:
        return answered(ask("run", model, *SENTENCES, "--temperature", "1.5", "--seed", seed))

    assert draw("3") == draw("3")
    assert draw("3") != draw("4")


def test_draws_do_not_follow_how_the_input_came(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are taken as they come; how many at once depends on the hour, and may not decide what is drawn."""
    lines = ["", *SENTENCES[:2], "", "", *SENTENCES[2:], SENTENCE]

    def draw(chunk: int) -> list[str]:
        monkeypatch.setattr(saccade.cli.asking, "FIRST_CHUNK", chunk)
        monkeypatch.setattr(saccade.cli.asking, "LARGEST_CHUNK", chunk)
        return answered(ask("run", model, "--temperature", "1.5", stdin="\n".join(lines).encode()))

    assert draw(1) == draw(3) == draw(100)


# Looking


def test_a_bare_look_draws_in_the_terminal(model: Path) -> None:
    plain = answered(ask("run", model, SENTENCE))
    lines = answered(ask("run", model, SENTENCE, "--look"))
    assert lines[0] == plain[0]
    assert [line.strip(" │").removeprefix("╭ ") for line in lines[1:7]] == [*SENTENCE.split(), "(end)"]
    assert "layer 1 of 2, mean of 2 heads" in lines[-1]
    assert answered(ask("run", model, "--look", SENTENCE)) == lines, "the text was taken for a file"


def test_layer_and_head_can_be_chosen(model: Path) -> None:
    lines = answered(ask("run", model, SENTENCE, "--look", "--layer", "2", "--head", "1"))
    assert "layer 2 of 2, head 1 of 2" in lines[-1]
    assert lines[7:-1] != answered(ask("run", model, SENTENCE, "--look"))[7:-1]


@pytest.mark.parametrize("command", ["run", "look"])
@pytest.mark.parametrize("name", ["attention.png", "attention.svg"])
def test_a_look_can_be_a_file(model: Path, tmp_path: Path, command: str, name: str) -> None:
    file = tmp_path / name
    said = ask(command, model, SENTENCE, "--look" if command == "run" else "-o", file)
    assert said.code == 0, said
    assert str(file) in said.err
    assert said.lines == answered(ask("run", model, SENTENCE)), "only the answer goes to stdout"
    content = file.read_bytes()
    assert content.startswith(PNG) if name.endswith("png") else b"<svg" in content
    assert len(content) > 1000


def test_look_draws_in_the_terminal(model: Path) -> None:
    assert answered(ask("look", model, SENTENCE)) == answered(ask("run", model, SENTENCE, "--look"))


# From own files to a model


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Said]:
    """A model trained on two files of somebody's own, as small as can be; and what the command said."""
    folder = tmp_path_factory.mktemp("own")
    lines = [f"{a} {b}" for a in DIGITS for b in DIGITS[:6]]
    (folder / "my.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "my.es").write_text("".join(f"{line.upper()}\n" for line in lines), encoding="utf-8")
    sizes = {"layers": 1, "width": 16, "heads": 2, "feedforward": 32}
    settings = [f"model.{stack}.{key}={value}" for stack in ("encoder", "decoder") for key, value in sizes.items()]
    settings += ["train.steps=4", "train.validate_every=2", "tokens.vocabulary=300", "search.beam=2"]
    words = [word for setting in settings for word in ("--set", setting)]
    out = folder / "my-model"
    return out, ask("train", "translation", folder / "my.en", folder / "my.es", "--out", out, *words)


def test_two_files_become_a_model(own: tuple[Path, Said]) -> None:
    out, said = own
    assert said.code == 0, said.err
    assert [line.split()[0] for line in said.lines] == ["BLEU", "chrF2", "confidence"]
    assert "60 sentence pairs: 50 to train on, 5 to choose by, 5 to test with" in said.err
    assert "4 steps" in said.err
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= {path.name for path in out.iterdir()}


def test_the_trained_model_answers_and_shows_itself(own: tuple[Path, Said]) -> None:
    out, _ = own
    assert len(answered(ask("run", out, "one two", "three four"))) == 2
    assert len(answered(ask("translate", "one two", "--model", out))) == 1
    card = answered(ask("show", out))
    assert card[0] == "# my-model"
    assert any("4 of 4 steps" in line for line in card)


def test_evaluating_gives_what_training_gave(own: tuple[Path, Said]) -> None:
    out, trained = own
    by_recipe = ask("evaluate", out).lines
    assert by_recipe == trained.lines
    assert answered(ask("evaluate", out, out / "test.tsv")) == by_recipe
    rows = [json.loads(line) for line in answered(ask("evaluate", out, out / "test.tsv", "--format", "json"))]
    assert [row["name"] for row in rows] == ["BLEU", "chrF2", "confidence and chrF"]
    assert all(0 <= row["value"] <= 100 for row in rows)


def test_no_sentence_is_in_two_parts(own: tuple[Path, Said]) -> None:
    out, _ = own
    parts = [set((out / f"{part}.tsv").read_text("utf-8").splitlines()) for part in ("train", "valid", "test")]
    assert [len(part) for part in parts] == [50, 5, 5]
    assert len(set().union(*parts)) == 60


def test_a_finished_training_can_be_resumed_without_change(own: tuple[Path, Said]) -> None:
    out, trained = own
    before = (out / "model.safetensors").read_bytes()
    said = ask("resume", out, "--quiet")
    assert said.code == 0, said
    assert said.lines == trained.lines
    assert (out / "model.safetensors").read_bytes() == before


# Progress of a preparation


@pytest.mark.parametrize("terminal", [False, True])
def test_a_preparation_is_told_when_it_takes_more_than_two_seconds(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    now = 100.0
    monkeypatch.setattr("saccade.train.progress.time.perf_counter", lambda: now)
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal)
    status = Status("reading", console=console)
    report = status_report(console, status, "encoding")
    for now, done in ((100.0, 1), (101.9, 2), (102.5, 3), (105.0, 4), (120.0, 5)):  # noqa: B007
        report(done, 10)
    if terminal:
        assert status.status == "encoding: 50% …"
        assert written.getvalue() == ""
    else:
        assert written.getvalue().splitlines() == ["encoding: 30%", "encoding: 50%"]

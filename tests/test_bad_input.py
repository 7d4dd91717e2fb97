"""Wrong input: one clear line on stderr that names what was wrong, exit code 1 or 2, and nothing left in the way."""

import contextlib
import gzip
import resource
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from crash import command, environment
from saccade.pipelines.table import TASKS
from tiny import CUT_OFF, Said, ask, write_tiny_model
from toy_trainings import write_toy

PAIRS = [f"one two {number}" for number in range(30)]
LONGEST = TASKS["translation"].source.longest
PATIENCE = 240.0


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model, good files and bad ones. Tests write into `tmp_path`, not here."""
    room = tmp_path_factory.mktemp("room")
    write_tiny_model(room / "model")
    good = "".join(f"{line}\n" for line in PAIRS)
    (room / "good.en").write_text(good)
    (room / "good.es").write_text(good)
    (room / "short.es").write_text("".join(f"{line}\n" for line in PAIRS[:-1]))
    (room / "empty.en").write_text("")
    (room / "blank.en").write_text("\n" * len(PAIRS))
    (room / "few.tsv").write_text("one\tuno\ntwo\tdos\n")
    (room / "tabless.tsv").write_text("one\tuno\ntwo dos\n")
    (room / "latin.en").write_bytes(good.encode().replace(b"one two 6\n", b"caf\xe9\n"))
    (room / "cut.en.gz").write_bytes(gzip.compress(good.encode() * 100)[:-30])
    (room / "not.en.gz").write_text(good)
    (room / "full").mkdir()
    (room / "full" / "thesis.txt").write_text("years of work")
    (room / "unfinished").mkdir()
    (room / "unfinished" / "recipe.toml").write_text('task = "translation"\n')
    recipe = write_toy(room).read_text()
    (room / "misspelt.toml").write_text(recipe.replace("warmup = 5", "warmpu = 5"))
    (room / "wrong-value.toml").write_text(recipe.replace("warmup = 5", 'warmup = "long"'))
    (room / "wrong-heads.toml").write_text(recipe.replace("heads = 2", "heads = 3"))
    (room / "no-data.toml").write_text(recipe.replace("train.tsv", "elsewhere.tsv"))
    (room / "no-task.toml").write_text(recipe.replace('task = "translation"', ""))
    (room / "other-task.toml").write_text(recipe.replace('"translation"', '"telepathy"'))
    (room / "not-toml.toml").write_text("steps: 5\n- a list\n")
    (room / "not-text.toml").write_bytes(b"\xff\xfe\x00")
    return room


def insist_one_line(said: Said, code: int, fragments: Sequence[str]) -> None:
    assert said.code == code, said
    assert said.err.endswith("\n"), said.err
    assert said.err.count("\n") == 1, said.err
    assert said.err.startswith("saccade: "), said.err
    for fragment in fragments:
        assert fragment in said.err, said.err


# Each: what is typed, the exit code, and what the line must name. {room} and {tmp} are folders.
WRONG: dict[str, tuple[str, int, list[str]]] = {
    "a missing file": ("train translation {room}/nosuch.en {room}/good.es --out {tmp}/out", 1, ["nosuch.en"]),
    "a folder as file": ("train translation {room}/full {room}/good.es --out {tmp}/out", 1, ["full", "folder"]),
    "empty files": (
        "train translation {room}/empty.en {room}/empty.en --out {tmp}/out",
        1,
        ["empty.en", "no sentence"],
    ),
    "one empty file": ("train translation {room}/empty.en {room}/good.es --out {tmp}/out", 1, [" 0 ", " 30"]),
    "blank lines only": ("train translation {room}/blank.en {room}/good.es --out {tmp}/out", 1, ["no sentence pairs"]),
    "different line counts": ("train translation {room}/good.en {room}/short.es --out {tmp}/out", 1, ["30", "29"]),
    "not UTF-8": (
        "train translation {room}/latin.en {room}/good.es --out {tmp}/out",
        1,
        ["latin.en", "line 7", "0xe9"],
    ),
    "half a gzip": ("train translation {room}/cut.en.gz {room}/good.es --out {tmp}/out", 1, ["cut.en.gz", "gzip"]),
    "no gzip": ("train translation {room}/not.en.gz {room}/good.es --out {tmp}/out", 1, ["not.en.gz", "gzip"]),
    "no tab": ("train translation {room}/tabless.tsv --out {tmp}/out", 1, ["tabless.tsv", "line 2", "tab"]),
    "too few pairs": ("train translation {room}/few.tsv --out {tmp}/out", 1, ["2 ", "20"]),
    "no files": ("train translation --out {tmp}/out", 2, ["files"]),
    "three files": ("train translation {room}/few.tsv {room}/few.tsv {room}/few.tsv --out {tmp}/out", 2, ["3 files"]),
    "files with a recipe": ("train {room}/toy.toml {room}/few.tsv --out {tmp}/out", 2, ["few.tsv"]),
    "an unknown recipe": ("train en-eo --out {tmp}/out", 2, ["en-eo", "did you mean en-es"]),
    "a missing recipe file": ("train {room}/nosuch.toml --out {tmp}/out", 1, ["nosuch.toml"]),
    "a misspelt key": ("train {room}/misspelt.toml --out {tmp}/out", 2, ["train.warmpu", "did you mean train.warmup?"]),
    "a misspelt setting": (
        "train {room}/toy.toml --set train.stesp=5 --out {tmp}/out",
        2,
        ["train.stesp", "did you mean train.steps?"],
    ),
    "a setting without value": (
        "train {room}/toy.toml --set train.steps --out {tmp}/out",
        2,
        ["train.steps", "key=value"],
    ),
    "a setting inside a value": ("train {room}/toy.toml --set name.first=a --out {tmp}/out", 2, ["name"]),
    "a wrong value": ("train {room}/wrong-value.toml --out {tmp}/out", 2, ["train.warmup", "long"]),
    "a wrong set value": ("train {room}/toy.toml --set train.steps=0 --out {tmp}/out", 2, ["train.steps", "0"]),
    "heads that do not divide": ("train {room}/wrong-heads.toml --out {tmp}/out", 2, ["16", "3 heads"]),
    "data that is not there": ("train {room}/no-data.toml --out {tmp}/out", 1, ["elsewhere.tsv", "--data"]),
    "no task": ("train {room}/no-task.toml --out {tmp}/out", 1, ["task"]),
    "an unknown task": ("train {room}/other-task.toml --out {tmp}/out", 1, ["telepathy", "translation"]),
    "no TOML": ("train {room}/not-toml.toml --out {tmp}/out", 2, ["not-toml.toml", "TOML", "line 1"]),
    "no text": ("train {room}/not-text.toml --out {tmp}/out", 2, ["not-text.toml", "TOML"]),
    "an output that is not empty": ("train {room}/toy.toml --out {room}/full", 2, ["full", "not empty"]),
    "an output that holds a training": ("train {room}/toy.toml --out {room}/unfinished", 2, ["saccade resume"]),
    "an output below a file": ("train {room}/toy.toml --out {room}/good.en/out", 1, ["good.en/out"]),
    "an output that is a file": ("train {room}/toy.toml --out {room}/good.en", 1, ["good.en"]),
    "nothing to resume": ("resume {room}/full", 2, ["full", "resume"]),
    "nowhere to resume": ("resume {room}/nosuch", 2, ["nosuch"]),
    "a recipe of a run that lost its keys": ("resume {room}/unfinished", 2, ["recipe.toml"]),
    "an unknown model": ("translate hello --model nosuch", 2, ["nosuch"]),
    "a folder that is no model": ("translate hello --model {room}/full", 1, ["full", "config.json"]),
    "a training that is not finished": ("run {room}/unfinished hello", 1, ["unfinished", "saccade resume"]),
    "a file as model": ("run {room}/good.en hello", 1, ["good.en"]),
    "the card of no model": ("show nosuch", 2, ["nosuch"]),
    "beam 0": ("translate hello --model {room}/model --beam 0", 2, ["--beam", "0"]),
    "beam beyond reason": ("translate hello --model {room}/model --beam 1000000", 2, ["beam", "1000000"]),
    "best 0": ("translate hello --model {room}/model --best 0", 2, ["--best", "0"]),
    "best beyond reason": ("translate hello --model {room}/model --best 1001", 2, ["1001"]),
    "temperature 0": ("translate hello --model {room}/model --temperature 0", 2, ["--temperature", "0"]),
    "temperature below 0": ("translate hello --model {room}/model --temperature -1", 2, ["--temperature", "-1"]),
    "temperature without number": ("translate hello --model {room}/model --temperature nan", 2, ["temperature", "nan"]),
    "an endless temperature": ("translate hello --model {room}/model --temperature inf", 2, ["temperature", "inf"]),
    "alpha without number": ("translate hello --model {room}/model --alpha nan", 2, ["alpha", "nan"]),
    "alpha below 0": ("translate hello --model {room}/model --alpha -1", 2, ["alpha", "-1"]),
    "seed below 0": ("translate hello --model {room}/model --temperature 1 --seed -1", 2, ["seed", "-1"]),
    "seed beyond 64 bits": (
        "translate hello --model {room}/model --temperature 1 --seed 99999999999999999999",
        2,
        ["seed", "99999999999999999999"],
    ),
    "best with temperature": ("translate hello --model {room}/model --best 2 --temperature 1", 2, ["--best"]),
    "a word for a number": ("translate hello --model {room}/model --beam many", 2, ["beam", "many"]),
    "an unknown option": ("translate hello --model {room}/model --bem 3", 2, ["--bem"]),
    "an unknown format": ("translate hello --model {room}/model --format xml", 2, ["xml"]),
    "an unknown command": ("transalte hello", 2, ["transalte"]),
    "no model": ("run", 2, ["MODEL"]),
    "a picture of another kind": ("translate hello --model {room}/model --look x.jpg", 2, ["x.jpg", ".png", ".svg"]),
    "a picture nowhere": ("translate hello --model {room}/model --look {tmp}/no/x.png", 1, ["x.png", "/no"]),
    "one picture of two texts": ("translate one two --model {room}/model --look {tmp}/x.png", 2, ["x.png", "2"]),
    "a layer of no picture": ("translate hello --model {room}/model --layer 1", 2, ["--layer", "--look"]),
    "a head of no picture": ("translate hello --model {room}/model --head 1", 2, ["--head", "--look"]),
    "a layer too high": ("translate hello --model {room}/model --look --layer 3", 2, ["layer 3", "2"]),
    "layer 0": ("translate hello --model {room}/model --look {tmp}/x.png --layer 0", 2, ["layer 0", "2"]),
    "a head too high": ("look {room}/model hello --head 3", 2, ["head 3", "2"]),
    "a score of no file": ("evaluate {room}/model {room}/nosuch.tsv", 1, ["nosuch.tsv"]),
    "a score with no test part": ("evaluate {room}/model", 2, ["test"]),
    "a score with beam 0": ("evaluate {room}/model {room}/few.tsv --beam 0", 2, ["--beam", "0"]),
    "a text too long": (
        f"translate {'x' * (LONGEST + 1)} --model {{room}}/model",
        1,
        [f"{LONGEST + 1:,}", f"{LONGEST:,}"],
    ),
}


@pytest.mark.parametrize(("typed", "code", "fragments"), WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_one_clear_line(room: Path, tmp_path: Path, typed: str, code: int, fragments: list[str]) -> None:
    words = [word.format(room=room, tmp=tmp_path) for word in typed.split()]
    insist_one_line(ask(*words), code, fragments)
    assert list(tmp_path.iterdir()) == [], "what failed left something in the way of the next try"


def test_what_was_in_the_output_folder_stays(room: Path) -> None:
    ask("train", room / "toy.toml", "--out", room / "full")
    assert [path.name for path in (room / "full").iterdir()] == ["thesis.txt"]


def test_debug_shows_where(room: Path) -> None:
    said = ask("show", "nosuch", "--debug")
    assert said.code == 2
    assert "Traceback" in said.err
    assert "model_path" in said.err


# Streams: line n of the output answers line n of the input, whatever is in between.


def answers(room: Path, *texts: str) -> list[str]:
    return [ask("run", room / "model", text).lines[0] for text in texts]


def test_a_line_too_long_costs_only_itself(room: Path) -> None:
    said = ask("run", room / "model", stdin=b"one cat\n" + b"x" * 1_000_000 + b"\ntwo dogs\n")
    first, last = answers(room, "one cat", "two dogs")
    assert said.lines == [first, "", last]
    insist_one_line(said, 1, ["line 2", "1,000,000", f"{LONGEST:,}"])


def test_a_line_of_too_many_tokens_costs_only_itself(room: Path) -> None:
    # Every snowman is three bytes, and none of them was ever seen: three tokens each.
    said = ask("run", room / "model", stdin=f"one cat\n{'☃' * 400}\ntwo dogs\n".encode())
    first, last = answers(room, "one cat", "two dogs")
    assert said.lines == [first, "", last]
    insist_one_line(said, 1, ["line 2", "1000"])


def test_a_translation_that_reaches_the_limit_is_told_of(room: Path) -> None:
    said = ask("run", room / "model", stdin=b"one cat\n\ntwo dogs\n", cut_off=True)
    assert len(said.lines) == 3
    told = CUT_OFF.findall(said.err)
    assert told
    assert "".join(told) == said.err
    assert ask("run", room / "model", "--quiet", stdin=b"one cat\n\ntwo dogs\n", cut_off=True) == Said(0, said.out, "")


def test_a_line_that_is_not_utf8_costs_only_itself(room: Path) -> None:
    said = ask("run", room / "model", stdin=b"one cat\ncaf\xe9\ntwo dogs\n")
    first, last = answers(room, "one cat", "two dogs")
    assert said.lines == [first, "", last]
    insist_one_line(said, 1, ["line 2", "0xe9"])


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_empty_lines_and_line_ends_keep_the_count(room: Path, ending: str, last: bool) -> None:
    lines = ["", "one cat", "", "", "   ", "two dogs"]
    stdin = ending.join(lines) + (ending if last else "")
    said = ask("run", room / "model", stdin=stdin.encode())
    cat, dogs = answers(room, "one cat", "two dogs")
    assert said == Said(0, "\n".join(["", cat, "", "", "", dogs]) + "\n", "")


def test_only_a_line_feed_ends_a_line(room: Path) -> None:
    strange = "one\u2028cat\u0085two\x0bdogs\x0cand\rmore"
    said = ask("run", room / "model", stdin=f"{strange}\none cat\n".encode())
    assert len(said.lines) == 2
    assert said.lines[1] == answers(room, "one cat")[0]


def test_nothing_in_nothing_out(room: Path) -> None:
    assert ask("run", room / "model", stdin=b"") == Said(0, "", "")


def test_a_hot_text_still_is_one_line(room: Path) -> None:
    """Drawn at random, any byte may come, a line break too; the count must hold all the same."""
    lines = [f"one cat sees three dogs {number}" for number in range(200)]
    said = ask("run", room / "model", "--temperature", "50", stdin="\n".join(lines).encode())
    assert said.code == 0
    assert len(said.lines) == len(lines)


# Where the process boundary is the point


def run_limited(words: list[str], largest_file: int) -> subprocess.CompletedProcess[str]:
    """Run with a limit on file sizes: for a program it is as if the disk were full."""
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file)),
    )


@contextlib.contextmanager
def started(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes], IO[bytes]]]:
    """A command under way, with its three streams; gone at the end in any case."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(*arguments), stdin=pipe, stdout=pipe, stderr=pipe, env=environment()) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            yield process, process.stdin, process.stdout, process.stderr
        finally:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                process.communicate()


def test_a_full_disk_stops_a_training_that_can_be_resumed(tmp_path: Path) -> None:
    recipe, out, limit = write_toy(tmp_path, steps=4), tmp_path / "out", 200_000
    # The optimiser's state is twice as large as the weights: with these sizes it alone passes the limit.
    larger = ["--set", "model.encoder.feedforward=512", "--set", "model.decoder.feedforward=512"]
    train = command("train", recipe, "--data", tmp_path, "--out", out, "--quiet", *larger)
    ended = run_limited(train, largest_file=limit)
    insist_one_line(Said(ended.returncode, ended.stdout, ended.stderr), 1, ["step 2", str(out), "saccade resume"])
    assert list((out / "checkpoints").iterdir()) == [], "half a checkpoint was left"

    said = ask("resume", out, "--quiet")
    assert said.code == 0, said
    states = list((out / "checkpoints").glob("*/training.safetensors"))
    assert states, "nothing was saved"
    assert all(state.stat().st_size > limit for state in states), "the limit was not what stopped it"
    assert ask("run", out, "one two").code == 0


def test_a_disk_full_from_the_start_is_one_clear_line(tmp_path: Path) -> None:
    recipe, out = write_toy(tmp_path, steps=4), tmp_path / "out"
    ended = run_limited(command("train", recipe, "--data", tmp_path, "--out", out, "--quiet"), largest_file=1000)
    insist_one_line(Said(ended.returncode, ended.stdout, ended.stderr), 1, ["File too large", str(out)])
    assert not out.exists(), "a training that never began left something in the way of the next try"


def test_a_closed_pipe_is_the_end_and_no_error(room: Path) -> None:
    """As `… | saccade run MODEL | head -1`, with whoever writes the input still there."""
    with started("run", room / "model", "--beam", "1") as (process, stdin, stdout, stderr):
        stdin.write(b"one cat\n" * 100)
        stdin.flush()
        assert stdout.readline().strip()
        stdout.close()
        with contextlib.suppress(BrokenPipeError):
            # More to answer, so that it must notice.
            while process.poll() is None:
                stdin.write(b"one cat\n")
                stdin.flush()
                time.sleep(0.05)
        assert process.wait(timeout=PATIENCE) in (0, 1)
        assert CUT_OFF.sub("", stderr.read().decode()) == ""


def test_an_error_ends_a_command_whose_input_stays_open(room: Path) -> None:
    with started("run", room / "full") as (process, _, stdout, stderr):
        code = process.wait(timeout=PATIENCE)
        said = Said(code, stdout.read().decode(), stderr.read().decode())
    insist_one_line(said, 1, ["full", "config.json"])


def no_torch_memory() -> None:
    raise RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 4000000000000 bytes. Error code 12 (Cannot allocate memory)"
    )


@pytest.mark.parametrize(
    ("fail", "asked"),
    [
        (lambda: bytearray(2**62), ""),
        (lambda: np.empty(2**58, np.uint8), " (256. PiB were asked for at once)"),
        (no_torch_memory, " (4000000000000 bytes were asked for at once)"),
    ],
    ids=["Python", "NumPy", "PyTorch"],
)
def test_too_little_memory_is_one_line_that_says_what_to_do(
    fail: Callable[[], object], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.cli.answer.answer_all", lambda *_: fail())
    said = ask("translate", "one")
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert said.err.startswith(f"saccade: not enough memory{asked}: try fewer or shorter inputs")


def test_an_error_that_is_not_about_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.cli.answer.answer_all", lambda *_: {}["missing"])
    assert ask("translate", "one").err == "saccade: KeyError('missing'); --debug shows where\n"


def test_classify_without_a_model_says_that_none_is_bundled() -> None:
    said = ask("classify", "a film to remember")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "no classifier is bundled" in said.err
    assert "saccade train classification" in said.err
    assert "--model" in said.err

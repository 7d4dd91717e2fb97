"""One way to train, for commands and Python: stopped and resumed, on the same data only, alone in its folder."""

import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import saccade
from saccade.config import read_toml, to_toml
from saccade.errors import UserError, WrongUse
from saccade.folder import read_config
from saccade.pipelines.pipeline import unreported
from saccade.tasks.recipes import task_named
from saccade.tasks.store import store
from saccade.train.lock import alone_in
from saccade.train.log import Log
from saccade.train.loop import Outcome
from tiny import ask, insist_one_line
from toy_trainings import write_toy

ANIMALS, ACTS = ("cat", "dog", "fox", "owl", "hen"), ("sleeps", "runs", "sings")
ROWS = [
    (f"the {animal} {act} {n}", "quiet" if act == "sleeps" else "loud")
    for n in range(20)
    for animal in ANIMALS
    for act in ACTS
]
TINY = {
    "train": {"steps": 12, "validate_every": 4, "warmup": 2, "batch_tokens": 512},
    "model": {"layers": 1, "width": 16, "heads": 2, "feedforward": 32, "context": 32},
    "tokens.vocabulary": 300,
}


@pytest.fixture(autouse=True, scope="module")
def _no_pictures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
        yield


def write_rows(path: Path, quiet: str = "quiet") -> Path:
    lines = [f"{text}\t{quiet if label == 'quiet' else label}" for text, label in ROWS]
    path.write_text("text\tlabel\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def train(rows: Path, out: Path, **options: Any) -> Any:
    return saccade.train("classification", rows, out=out, settings=TINY, quiet=True, **options)


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int, number: signal.Signals = signal.SIGINT) -> None:
    """A signal comes in the middle of that step."""
    logged = Log.step

    def signalled(self: Log, at: int, *values: Any, **more: Any) -> None:
        if at == step:
            signal.raise_signal(number)
        logged(self, at, *values, **more)

    monkeypatch.setattr(Log, "step", signalled)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.tsv")


@pytest.fixture(scope="module")
def whole(rows: Path) -> Path:
    """A training that nothing disturbed."""
    train(rows, rows.parent / "whole")
    return rows.parent / "whole"


@pytest.fixture
def stopped(rows: Path, tmp_path: Path) -> Path:
    """A training that was stopped after step 6."""
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 6)
        with pytest.raises(KeyboardInterrupt, match="stopped after step 6 and saved"):
            train(rows, tmp_path / "run")
    return tmp_path / "run"


# From Python


def test_saccade_train_gives_a_pipeline(whole: Path, rows: Path, tmp_path: Path) -> None:
    classifier = train([str(rows)], tmp_path / "again")
    assert classifier("the cat sleeps 3").text in ("quiet", "loud")
    assert (tmp_path / "again/model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert saccade.train.loop.TrainConfig, "the package of that name is still there"
    assert {"recipe", "files", "out", "settings", "resume"} <= inspect.signature(saccade.train).parameters.keys()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_training_goes_on_bit_for_bit(
    whole: Path, rows: Path, tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, 6, number)
        with pytest.raises(KeyboardInterrupt, match="stopped after step 6 and saved"):
            train(rows, tmp_path / "run")
    assert not (tmp_path / "run/config.json").exists()
    classifier = train(rows, tmp_path / "run", resume=True)
    assert classifier("the cat sleeps 3").text
    for name in ("model.safetensors", "checkpoints/step-00000012/training.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (whole / name).read_bytes()


def test_resume_starts_where_there_is_nothing_to_resume(rows: Path, whole: Path, tmp_path: Path) -> None:
    train(rows, tmp_path / "run", resume=True)
    assert (tmp_path / "run/model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_settings_are_dotted_or_tables(rows: Path, tmp_path: Path) -> None:
    saccade.train("classification", rows, out=tmp_path / "run", quiet=True, settings=TINY | {"train.steps": 4})
    recipe = read_toml(tmp_path / "run/recipe.toml")
    assert (recipe["train"]["steps"], recipe["train"]["warmup"], recipe["model"]["width"]) == (4, 2, 16)
    with pytest.raises(WrongUse, match=r"train\.steps"):
        saccade.train("classification", rows, out=tmp_path / "other", settings={"train.stesp": 4})
    assert not (tmp_path / "other").exists()


def test_other_settings_than_the_trainings_own_are_refused(stopped: Path, rows: Path) -> None:
    with pytest.raises(WrongUse, match=r"model\.width = 16"):
        saccade.train("classification", rows, out=stopped, resume=True, settings={"model.width": 32})
    with pytest.raises(WrongUse, match="for classification, not for tagging"):
        saccade.train("tagging", rows, out=stopped, resume=True)


# The same data


def test_resume_refuses_data_whose_classes_were_renamed(stopped: Path, rows: Path) -> None:
    before = rows.read_bytes()
    try:
        write_rows(rows, quiet="silent")
        insist_one_line(ask("resume", stopped, "--quiet"), 1, [str(rows), "has changed since the training"])
    finally:
        rows.write_bytes(before)
    assert ask("resume", stopped, "--quiet").code == 0
    assert read_config(stopped).settings["classes"] == ["loud", "quiet"]


def test_resume_refuses_other_classes_wherever_they_come_from(stopped: Path) -> None:
    run = json.loads((stopped / "run.json").read_text())
    run["settings"]["classes"] = "0" * 64
    (stopped / "run.json").write_text(json.dumps(run))
    insist_one_line(ask("resume", stopped, "--quiet"), 1, ["other classes than when the training began"])


def test_resume_refuses_another_recipe_but_takes_another_number_of_steps(stopped: Path) -> None:
    recipe = read_toml(stopped / "recipe.toml")
    changed = recipe | {"train": recipe["train"] | {"seed": 2}}
    (stopped / "recipe.toml").write_text(to_toml(changed))
    insist_one_line(ask("resume", stopped, "--quiet"), 1, ["train.seed was 1", "is 2 now"])
    (stopped / "recipe.toml").write_text(to_toml(recipe | {"train": recipe["train"] | {"steps": 8}}))
    assert ask("resume", stopped, "--quiet").code == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"files": 3}', b'{"data": {"a": 1}}', b"[" * 100_000])
def test_a_damaged_record_of_the_beginning_is_one_clear_line(stopped: Path, content: bytes) -> None:
    (stopped / "run.json").write_bytes(content)
    insist_one_line(ask("resume", stopped, "--quiet"), 1, ["run.json", "damaged"])


# Alone


def test_two_trainings_do_not_share_a_folder(stopped: Path, tmp_path: Path, rows: Path) -> None:
    (tmp_path / "new").mkdir()
    with alone_in(stopped), alone_in(tmp_path / "new"):
        insist_one_line(ask("resume", stopped, "--quiet"), 1, ["another training is at work there"])
        said = ask("train", "classification", rows, "--out", tmp_path / "new", "--quiet")
        insist_one_line(said, 1, ["another training is at work there"])
    assert ask("resume", stopped, "--quiet").code == 0


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom saccade.train.lock import alone_in\n"
        f"with alone_in(Path({str(tmp_path)!r})):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"held\n"
            with pytest.raises(UserError, match="another training"), alone_in(tmp_path):
                pass
        finally:
            child.kill()
    with alone_in(tmp_path):
        pass


# The end of a training needs no training data


def untrained(task: Any, recipe: Any, folders: Sequence[Path], out: Path) -> Any:
    out.mkdir()
    prepared = task.prepare(recipe, folders, out, resume=False)
    return prepared, Outcome(finished=True, step=0, scores={}, chosen="untrained", seconds=0.0)


@pytest.mark.parametrize("name", ["classification", "translation", "language", "masked"])
def test_nothing_is_read_again_once_a_task_has_prepared(name: str, tmp_path: Path) -> None:
    task, data, out = task_named(name), tmp_path / "data", tmp_path / "run"
    data.mkdir()
    if name == "translation":
        table = read_toml(write_toy(data, steps=2))
        table["data"]["test"] = ["valid.tsv"]
    else:
        write_rows(data / "rows.tsv")
        (data / "text.txt").write_text("\n".join(text for text, _ in ROWS), encoding="utf-8")
        texts = {"kind": "files", "train": [{"file": "text.txt", "documents": "lines"}], "held_out_share": 0.2}
        tables = {"train": ["rows.tsv"], "held_out_share": 0.1}
        table = {"name": "x", "data": tables if name == "classification" else texts, "tokens": {"vocabulary": 300}}
        table |= {"train": TINY["train"], "model": TINY["model"]}
    prepared, outcome = untrained(task, task.recipe.read(table, where="test"), [data], out)
    assert all((data / file).exists() for file in prepared.files)
    shutil.rmtree(data)
    scores = store(task.recipe.read(table, where="test"), prepared, outcome, out, unreported).scores
    assert scores
    assert (out / "README.md").read_text().count("- test: ") == len(scores)


# Where a training starts, and what it leaves


def test_from_starts_from_another_models_encoder(whole: Path, rows: Path, tmp_path: Path) -> None:
    quick = ["--set", "train.steps=2", "--set", "train.validate_every=2"]
    said = ask("train", "classification", rows, "--from", whole, "--out", tmp_path / "run", *quick)
    assert said.code == 0, said.err
    assert "from scratch" not in said.err
    assert f"from {whole}" in said.err
    recipe = read_toml(tmp_path / "run/recipe.toml")
    assert recipe["init"] == str(whole)
    assert read_config(tmp_path / "run").model["width"] == 16
    (tmp_path / "x.txt").write_text("a b\n")
    said = ask("train", "language", tmp_path / "x.txt", "--from", whole, "--out", tmp_path / "other")
    insist_one_line(said, 2, ["language", "classification", "tagging", "translation"])


def test_clean_leaves_the_model_and_refuses_what_could_be_resumed(whole: Path, stopped: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole, tmp_path / "finished")
    kept = ("config.json", "model.safetensors", "tokenizer.json", "README.md", "recipe.toml", "metrics.jsonl")
    before = {name: (run / name).read_bytes() for name in kept}
    left = sum(file.stat().st_size for file in (run / "checkpoints").rglob("*") if file.is_file())
    said = ask("clean", run)
    assert said.code == 0, said.err
    assert said.out == f"{left / 1e6:.1f} MB freed in {run}\n"
    assert not (run / "checkpoints").exists()
    assert {name: (run / name).read_bytes() for name in kept} == before
    assert saccade.load(run)("the cat sleeps 3").text
    insist_one_line(ask("resume", run), 1, ["finished", "nothing to resume"])
    insist_one_line(ask("clean", stopped), 1, ["not finished", "--force"])
    assert (stopped / "checkpoints").exists()
    assert ask("clean", stopped, "--force").code == 0
    assert not (stopped / "checkpoints").exists()
    insist_one_line(ask("clean", tmp_path), 2, ["no training"])


def test_the_end_of_a_training_says_what_could_be_freed(stopped: Path) -> None:
    said = ask("resume", stopped)
    assert said.code == 0, said.err
    assert f"saccade clean {stopped} frees " in said.err

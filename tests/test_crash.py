"""Interrupted = uninterrupted: a training that was killed or stopped ends bit for bit like one that was not."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import saccade.train.checkpoint
from crash import Kill, batter, being_written, digests, finished, start, undisturbed
from saccade.config import override, read_toml, to_toml
from saccade.errors import UserError
from saccade.train.checkpoint import Checkpoint, checkpoints, read_checkpoint, write_checkpoint
from toy_trainings import write_toy


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy(tmp_path_factory.mktemp("crash"), steps=30)


@pytest.fixture(scope="module")
def expected(recipe: Path) -> dict[str, str]:
    return undisturbed(recipe, recipe.parent / "undisturbed")


def insist_on_the_same_end(recipe: Path, expected: dict[str, str], kills: int) -> None:
    """Batter, and compare each end."""
    killed = []
    for told in batter(recipe, recipe.parent / "battered", kills=kills, seed=1):
        if isinstance(told, Kill):
            killed.append(str(told))
        else:
            assert digests(told) == expected, killed
            assert being_written(told) == {}, "half-written checkpoints were left behind"
    assert len(killed) == kills


def test_a_killed_training_ends_the_same(recipe: Path, expected: dict[str, str]) -> None:
    insist_on_the_same_end(recipe, expected, kills=3)


@pytest.mark.parametrize("task", ["correction", "masked"])
def test_a_killed_training_of_another_task_ends_the_same(task: str, tmp_path: Path) -> None:
    recipe = write_toy(tmp_path, task=task, steps=8)
    insist_on_the_same_end(recipe, undisturbed(recipe, tmp_path / "undisturbed"), kills=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_says_how_to_go_on(recipe: Path, expected: dict[str, str], number: signal.Signals) -> None:
    run = recipe.parent / f"stopped-{number}"
    with start(recipe, run) as life:
        life.wait_for(lambda: bool(finished(run)))
        life.process.send_signal(number)
        assert life.end() == 130, life.said()
    step = int(finished(run)[-1].name.removeprefix("step-"))
    assert f"stopped after step {step} and saved; go on with: saccade resume {run}" in life.said()
    assert step < 30, "it had ended before it was stopped"
    assert not (run / "model.safetensors").exists()
    with start(recipe, run) as life:
        life.insist_on_success()
    assert digests(run) == expected


def test_a_killed_training_on_augmented_copies_ends_the_same(tmp_path: Path) -> None:
    recipe = write_toy(tmp_path, steps=30)
    table = override(
        read_toml(recipe),
        [
            'data.train=[{file="train.tsv", repeat=0.8}]',
            "data.copies=3",
            "data.augment={upper=0.3, typos=0.3, bpe_dropout=0.1}",
        ],
    )
    recipe.write_text(to_toml(table), encoding="utf-8")
    insist_on_the_same_end(recipe, undisturbed(recipe, tmp_path / "undisturbed"), kills=2)


# A crash at every single step of a save. Killing a process hits some of these moments; here all are hit.


class Killed(BaseException):
    """Stands for SIGKILL: no handler of ours catches it, so nothing is cleaned up."""


CALLS = [
    (shutil, "rmtree"),
    (Path, "mkdir"),
    (saccade.train.checkpoint, "save_file"),
    (Path, "write_text"),
    (saccade.train.checkpoint, "sync"),
    (Path, "rename"),
    (Path, "unlink"),
]


def checkpoint(step: int) -> Checkpoint:
    weights = {"weight": torch.full((3,), float(step))}
    return Checkpoint(step, weights, {"random": torch.arange(step)}, {"progress": {"step": step}})


def die_at(monkeypatch: pytest.MonkeyPatch, moment: int) -> Callable[[], int]:
    """Die just before the call of that number, counted over everything that touches the disk; how many there were."""
    count = 0

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count > moment:
                raise Killed
            return call(*arguments, **options)

        return wrapped

    for home, name in CALLS:
        monkeypatch.setattr(home, name, dying(getattr(home, name)))
    return lambda: count


def save_and_thin(folder: Path, step: int) -> None:
    write_checkpoint(folder, checkpoint(step))
    saccade.train.checkpoint.thin(folder, whole=2, weights={"step-00000002"})


def damage(path: Path) -> None:
    (path / "weights.safetensors").write_bytes(b"damaged")


@pytest.mark.parametrize("again", [False, True], ids=["a new step", "a step whose old checkpoint is damaged"])
def test_a_crash_at_any_step_of_a_save_leaves_whole_checkpoints(tmp_path: Path, again: bool) -> None:
    moment, survived = 0, False
    while not survived:
        folder = tmp_path / str(moment)
        for step in (1, 2, 3, 4, 5) if again else (1, 2, 3, 4):
            save_and_thin(folder, step)
        if again:
            damage(folder / "step-00000005")
        with pytest.MonkeyPatch.context() as patch:
            die_at(patch, moment)
            try:
                save_and_thin(folder, 5)
                survived = True
            except Killed:
                pass
        assert restored(folder) == 5 if survived else restored(folder) in (4, 5)
        # And the next save is not disturbed by what was left behind.
        save_and_thin(folder, 6)
        assert restored(folder) == 6
        moment += 1
    assert moment > 8, "the calls that touch the disk were not met: the test has lost its object"


def restored(folder: Path) -> int:
    """The step that a resumed training would go on from: the newest that can be read."""
    for path in reversed(checkpoints(folder)):
        try:
            read = read_checkpoint(path)
        except UserError:
            continue
        assert path.name == f"step-{read.step:08d}"
        assert torch.equal(read.weights["weight"], checkpoint(read.step).weights["weight"])
        assert torch.equal(read.training["random"], checkpoint(read.step).training["random"])
        return read.step
    return 0

"""Damaged and hostile checkpoints: one clear line each, and a training goes on from the one before."""

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from hostile import HEADERS, NESTED, Accident, delete, empty, flip_a_bit, insist_one_line, make_a_folder, truncate
from saccade.config import read_toml
from saccade.data.prepared import file_digest
from saccade.errors import UserError
from saccade.tasks.translation import TranslationRecipe, TranslationTask
from saccade.train.checkpoint import checkpoints, read_checkpoint
from saccade.train.log import Log
from saccade.train.loop import Outcome, train
from toy_trainings import write_toy

Json = Any
CHECKPOINT_FILES = ["checkpoint.json", "training.safetensors", "weights.safetensors"]


@dataclass(frozen=True)
class Trained:
    """A short training that ended, to be copied, damaged and resumed."""

    recipe: TranslationRecipe
    data: Path
    path: Path
    outcome: Outcome

    def resume(self, run: Path) -> Outcome:
        """Go on in a damaged copy."""
        work = TranslationTask().prepare(self.recipe, [self.data], run, resume=True).work
        return train(work, self.recipe.train, run, Log(run), resume=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    data, run = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("run")
    recipe = TranslationRecipe.read(read_toml(write_toy(data, steps=6)), where="toy")
    work = TranslationTask().prepare(recipe, [data], run, resume=False).work
    return Trained(recipe, data, run, train(work, recipe.train, run, Log(run, quiet=True)))


@pytest.fixture
def run(trained: Trained, tmp_path: Path) -> Path:
    return shutil.copytree(trained.path, tmp_path / "run")


@pytest.fixture
def newest(run: Path) -> Path:
    return checkpoints(run / "checkpoints")[-1]


def checkpoint_refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_checkpoint(path)
    insist_one_line(caught.value)
    return str(caught.value)


def reseal(path: Path, change: Callable[[Json], Any] = lambda manifest: None) -> None:
    """Write checkpoint.json anew, with digests that fit."""
    manifest = json.loads((path / "checkpoint.json").read_bytes())
    del manifest["sha256"]
    manifest["files"] = {name: file_digest(path / name) for name in manifest["files"] if (path / name).exists()}
    change(manifest)
    seen = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (path / "checkpoint.json").write_text(json.dumps({"sha256": seen, **manifest}), "utf-8")


def contents(run: Path) -> dict[str, str]:
    """Digests of the last checkpoint's tensors."""
    last = checkpoints(run / "checkpoints")[-1]
    return {f"{last.name}/{name}": file_digest(last / name) for name in ("weights.safetensors", "training.safetensors")}


def refused_or_resumed(trained: Trained, run: Path) -> None:
    """One clear line, or an older checkpoint was taken and the training ended as it should."""
    try:
        trained.resume(run)
    except UserError as error:
        insist_one_line(error)
    else:
        assert contents(run) == contents(trained.path)


@pytest.mark.parametrize("name", CHECKPOINT_FILES)
@pytest.mark.parametrize("seed", range(8))
def test_a_truncated_checkpoint_is_refused(newest: Path, name: str, seed: int) -> None:
    truncate(newest / name, random.Random(f"{name} {seed}"))
    assert str(newest) in checkpoint_refused(newest)


@pytest.mark.parametrize("name", CHECKPOINT_FILES)
@pytest.mark.parametrize("seed", range(12))
def test_a_flipped_bit_in_a_checkpoint_is_found(newest: Path, name: str, seed: int) -> None:
    before = read_checkpoint(newest)
    whole = (before.step, before.state, {name: tensor.clone() for name, tensor in before.weights.items()})
    flip_a_bit(newest / name, random.Random(f"{name} {seed}"))
    try:
        after = read_checkpoint(newest)
    except UserError as error:
        insist_one_line(error)
        return
    # A space or line break of checkpoint.json that became another means nothing.
    assert name == "checkpoint.json"
    assert (after.step, after.state) == whole[:2]
    assert all(torch.equal(tensor, whole[2][name]) for name, tensor in after.weights.items())


@pytest.mark.parametrize("name", CHECKPOINT_FILES)
@pytest.mark.parametrize("accident", [empty, delete, make_a_folder])
def test_a_lost_file_of_a_checkpoint_is_named(newest: Path, name: str, accident: Accident) -> None:
    accident(newest / name, random.Random(1))
    assert name in checkpoint_refused(newest)


@pytest.mark.parametrize("content", HEADERS.values(), ids=HEADERS.keys())
def test_a_hostile_checkpoint_file_is_refused(newest: Path, trained: Trained, content: bytes) -> None:
    (newest / "training.safetensors").write_bytes(content)
    reseal(newest)
    try:
        read_checkpoint(newest)
    except UserError as error:
        insist_one_line(error)
    else:
        # It is a safetensors file, but no state of this optimiser.
        refused_or_resumed(trained, newest.parent.parent)


MANIFESTS: dict[str, Callable[[Json], Any]] = {
    "no files": lambda manifest: manifest.pop("files"),
    "no step": lambda manifest: manifest.pop("step"),
    "no state": lambda manifest: manifest.pop("state"),
    "files are a list": lambda manifest: manifest.update({"files": ["weights.safetensors"]}),
    "files are none": lambda manifest: manifest.update({"files": {}}),
    "a digest is a number": lambda manifest: manifest["files"].update({"weights.safetensors": 5}),
    "step is a text": lambda manifest: manifest.update({"step": "six"}),
    "state is a list": lambda manifest: manifest.update({"state": []}),
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_a_checkpoint_of_another_form_is_refused(newest: Path, change: Callable[[Json], Any]) -> None:
    reseal(newest, change)
    checkpoint_refused(newest)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"5", b"\xff", NESTED.encode(), b'{"sha256": 1}'])
def test_a_manifest_that_is_none_is_refused(newest: Path, content: bytes) -> None:
    (newest / "checkpoint.json").write_bytes(content)
    assert "checkpoint.json" in checkpoint_refused(newest)


# Resuming from what is left


@pytest.mark.parametrize("name", CHECKPOINT_FILES)
@pytest.mark.parametrize("accident", [flip_a_bit, delete])
def test_resuming_falls_back_to_the_checkpoint_before(
    trained: Trained, run: Path, newest: Path, capsys: pytest.CaptureFixture[str], name: str, accident: Accident
) -> None:
    # A seed whose bit matters in every file: in checkpoint.json some are only spaces.
    accident(newest / name, random.Random(3))
    checkpoint_refused(newest)
    outcome = trained.resume(run)
    told = [line for line in capsys.readouterr().err.splitlines() if "trying the one before" in line]
    assert len(told) == 1
    assert str(newest) in told[0]
    assert outcome.finished
    assert outcome.chosen == trained.outcome.chosen
    assert outcome.scores == trained.outcome.scores
    assert contents(run) == contents(trained.path)


def test_resuming_without_a_whole_checkpoint_is_refused(trained: Trained, run: Path) -> None:
    for path in checkpoints(run / "checkpoints"):
        flip_a_bit(path / "weights.safetensors", random.Random(1))
    with pytest.raises(UserError, match=r"no checkpoint in .* is whole") as caught:
        trained.resume(run)
    insist_one_line(caught.value)


def _other_weights(path: Path) -> None:
    weights = {name: tensor.clone() for name, tensor in load_file(path / "weights.safetensors").items()}
    weights[sorted(weights)[0]] = torch.ones(7, 5)
    save_file(weights, path / "weights.safetensors")
    reseal(path)


def _training(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def applied(path: Path) -> None:
        tensors = {name: tensor.clone() for name, tensor in load_file(path / "training.safetensors").items()}
        change(tensors)
        save_file(tensors, path / "training.safetensors")
        reseal(path)

    return applied


def _a_moment(tensors: dict[str, torch.Tensor]) -> str:
    return next(name for name in sorted(tensors) if name.startswith("exp_avg."))


OTHER_CHECKPOINTS: dict[str, Callable[[Path], None]] = {
    "weights of other shapes": _other_weights,
    "no random numbers": _training(lambda tensors: tensors.pop("random")),
    "random numbers of another generator": _training(lambda tensors: tensors.update(random=torch.ones(3))),
    "moments of other shapes": _training(lambda tensors: tensors.update({_a_moment(tensors): torch.ones(7, 5)})),
    "moments of another weight": _training(lambda tensors: tensors.update({"exp_avg.no.such.weight": torch.ones(3)})),
    "no moments": _training(lambda tensors: [tensors.pop(name) for name in list(tensors) if name != "random"]),
    "a name without weight": _training(lambda tensors: tensors.update(strange=torch.ones(1))),
    "no sampler": lambda path: reseal(path, lambda manifest: manifest["state"].pop("sampler")),
    "no progress": lambda path: reseal(path, lambda manifest: manifest["state"].pop("progress")),
}


@pytest.mark.parametrize("change", OTHER_CHECKPOINTS.values(), ids=OTHER_CHECKPOINTS.keys())
def test_a_checkpoint_of_another_training_is_not_resumed(
    trained: Trained, run: Path, change: Callable[[Path], None]
) -> None:
    for path in checkpoints(run / "checkpoints")[-2:]:
        change(path)
    refused_or_resumed(trained, run)


def test_a_checkpoint_of_an_earlier_version_is_one_clear_line(trained: Trained, run: Path) -> None:
    for path in checkpoints(run / "checkpoints"):
        reseal(path, lambda manifest: manifest.pop("format"))
    with pytest.raises(UserError, match="made by an earlier version of Saccade; start the training again") as caught:
        trained.resume(run)
    insist_one_line(caught.value)
    assert "whole" not in str(caught.value)


def test_moments_have_the_names_of_their_weights(newest: Path) -> None:
    weights, training = load_file(newest / "weights.safetensors"), load_file(newest / "training.safetensors")
    for moment in ("exp_avg", "exp_avg_sq"):
        shapes = {name.partition(".")[2]: one.shape for name, one in training.items() if name.startswith(f"{moment}.")}
        assert shapes == {name: one.shape for name, one in weights.items()}

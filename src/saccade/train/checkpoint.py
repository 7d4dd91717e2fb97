"""Checkpoints that survive a crash at any moment: written aside, fsynced, renamed, digested."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from saccade.data.prepared import file_digest
from saccade.errors import UserError

Tensors = dict[str, Tensor]
WEIGHTS, TRAINING = "weights.safetensors", "training.safetensors"
PARTS = {WEIGHTS: "weights", TRAINING: "training"}
"""Folders instead of files, where several processes wrote their parts (`sharded.py`)."""
FORMAT = 2
"""Format 1 had the optimiser's state by the numbers of the weights, and stated no format."""


class EarlierCheckpoint(UserError):
    """Of a version whose trainings cannot be continued."""


@dataclass(frozen=True)
class Checkpoint:
    """The complete state of a training at one step."""

    step: int
    weights: Tensors
    training: Tensors
    """Optimiser state and random generators."""
    state: dict[str, Any]
    """Plain values: sampler position, best score, …"""


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write `folder/step-N` atomically: a reader sees all of it or nothing."""
    with saving(folder, checkpoint.step):
        aside = begin_checkpoint(folder, checkpoint.step)
        save_file({name: t.contiguous() for name, t in checkpoint.weights.items()}, aside / WEIGHTS)
        save_file(checkpoint.training, aside / TRAINING)
        return finish_checkpoint(folder, checkpoint.step, checkpoint.state)


def begin_checkpoint(folder: Path, step: int) -> Path:
    """An empty folder aside, for the files of a checkpoint."""
    aside = _aside(folder, step)
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    return aside


def finish_checkpoint(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Digest what was written aside, and put it in its place."""
    final, aside = checkpoint_path(folder, step), _aside(folder, step)
    written = sorted(path for path in aside.rglob("*") if path.is_file())
    files = {path.relative_to(aside).as_posix(): file_digest(path) for path in written}
    manifest = {"format": FORMAT, "step": step, "files": files, "state": state}
    (aside / "checkpoint.json").write_text(json.dumps({"sha256": _digest_of(manifest), **manifest}, indent=1))
    for path in (*written, aside / "checkpoint.json", *{path.parent for path in written} - {aside}, aside):
        sync(path)
    if final.exists():  # the same step again: the old checkpoint may be damaged
        shutil.rmtree(folder / f".deleting-{final.name}", ignore_errors=True)
        final.rename(folder / f".deleting-{final.name}")
    aside.rename(final)
    sync(folder)
    return final


@contextmanager
def saving(folder: Path, step: int) -> Iterator[None]:
    """One clear line if a checkpoint cannot be written."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        shutil.rmtree(_aside(folder, step), ignore_errors=True)
        raise UserError(
            f"could not save step {step} in {folder}: {error}; "
            "the last good checkpoint is kept: free some space and run saccade resume"
        ) from None


def _aside(folder: Path, step: int) -> Path:
    return folder / f".writing-{checkpoint_path(folder, step).name}"


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint and verify its digests; a damaged one is an error."""
    manifest = _manifest(path)
    weights, training = (_tensors(path, name, manifest["files"]) for name in (WEIGHTS, TRAINING))
    return Checkpoint(manifest["step"], weights, training, manifest["state"])


def verified(path: Path) -> dict[str, Any]:
    """The plain values of a checkpoint whose files are whole."""
    manifest = _manifest(path)
    for name in (WEIGHTS, TRAINING):
        for file in _files(path, name, manifest["files"]):
            _insist_on_digest(file, manifest["files"].get(file.relative_to(path).as_posix()))
    state: dict[str, Any] = manifest["state"]
    return state


def read_weights(path: Path) -> Tensors:
    """Only the weights of a checkpoint, for averaging."""
    return _tensors(path, WEIGHTS, _manifest(path)["files"])


def is_in_parts(path: Path) -> bool:
    """Whether several processes wrote it."""
    return (path / PARTS[WEIGHTS]).is_dir()


def _files(path: Path, name: str, recorded: dict[str, Any]) -> list[Path]:
    """A file, or those of its parts; what is recorded must be there."""
    parts = [path / file for file in recorded if file.startswith(f"{PARTS[name]}/")]
    return parts or [path / name]


def _tensors(path: Path, name: str, recorded: dict[str, Any]) -> Tensors:
    files = _files(path, name, recorded)
    try:
        for file in files:
            _insist_on_digest(file, recorded.get(file.relative_to(path).as_posix()))
        if files != [path / name]:
            from saccade.train.sharded import read_whole

            return read_whole(path / PARTS[name])
        return load_file(files[0])
    except OSError as error:
        raise UserError(f"{path / name}: {error.strerror}") from None
    # A damaged header can name shapes and types that torch does not have; each raises a different error.
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError, AttributeError) as error:
        raise UserError(f"{path / name}: cannot be read: {str(error)[:200]}") from None


def _insist_on_digest(file: Path, expected: Any) -> None:
    try:
        found = file_digest(file)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    if found != expected:
        raise UserError(f"{file}: damaged: its SHA-256 is not the one recorded when it was saved")


def checkpoint_path(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is, or will be."""
    return folder / f"step-{step:08d}"


def checkpoints(folder: Path) -> list[Path]:
    """The finished checkpoints, oldest first."""
    return sorted(path for path in folder.glob("step-*") if path.is_dir())


def thin(folder: Path, *, whole: int, weights: set[str]) -> None:
    """Keep the last `whole` checkpoints to resume from, and of older ones only the named weights."""
    for path in checkpoints(folder)[:-whole]:
        if path.name in weights:
            (path / TRAINING).unlink(missing_ok=True)
            shutil.rmtree(path / PARTS[TRAINING], ignore_errors=True)
        else:
            # Renamed first, so that a crash half-way through deleting leaves no half checkpoint.
            gone = path.rename(folder / f".deleting-{path.name}")
            shutil.rmtree(gone, ignore_errors=True)
    for path in folder.glob(".deleting-*"):
        shutil.rmtree(path, ignore_errors=True)


def average(paths: list[Path]) -> Tensors:
    """The mean of several checkpoints' weights."""
    total = read_weights(paths[0])
    for path in paths[1:]:
        for name, tensor in read_weights(path).items():
            total[name] += tensor
    return {name: tensor / len(paths) for name, tensor in total.items()}


def sync(path: Path) -> None:
    """Wait until a file's or folder's content is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _manifest(path: Path) -> dict[str, Any]:
    file = path / "checkpoint.json"
    try:
        manifest: dict[str, Any] = json.loads(file.read_bytes())
        recorded = manifest.pop("sha256")
        if recorded != _digest_of(manifest):
            raise ValueError("its SHA-256 is not the one recorded when it was saved")
        if manifest.get("format") != FORMAT:
            raise EarlierCheckpoint(f"{path}: made by an earlier version of Saccade; start the training again")
        for key, kind in (("step", int), ("files", dict), ("state", dict)):
            if not isinstance(manifest.get(key), kind):
                raise ValueError(f"{key} is missing or not a {kind.__name__}")
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}") from None
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise UserError(f"{file}: damaged: {error}") from None
    return manifest


def _digest_of(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()

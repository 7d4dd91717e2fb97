"""What a finished training no longer needs: checkpoints, encoded data, half-written files."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from saccade.errors import UserError, WrongUse
from saccade.train.lock import LOCK, alone_in


def is_finished(run: Path) -> bool:
    """The card is written last."""
    return (run / "config.json").exists() and (run / "README.md").exists()


def leftover_bytes(run: Path) -> int:
    """How much `clean` would free."""
    files = (file for path in _leftovers(run) for file in (path.rglob("*") if path.is_dir() else [path]))
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def clean(run: Path, *, force: bool = False) -> int:
    """Delete them; the number of bytes freed. With `force`, also of a training that could be resumed."""
    if not (run / "recipe.toml").exists():
        raise WrongUse(f"{run}: no training to clean up there: it has no recipe.toml")
    if not force and not is_finished(run):
        raise UserError(
            f"{run}: its training is not finished: saccade resume {run}, or --force to delete its checkpoints"
        )
    with alone_in(run):
        freed = leftover_bytes(run)
        for path in _leftovers(run):
            try:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            except OSError as error:
                raise UserError(f"could not delete {path}: {error.strerror or error}") from None
        (run / LOCK).unlink(missing_ok=True)
    return freed


def _leftovers(run: Path) -> Iterator[Path]:
    yield from (path for path in (run / "checkpoints", run / "prepared", run / "trials") if path.exists())
    yield from run.glob(".writing-*")

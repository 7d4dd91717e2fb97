"""Output folders of commands."""

from pathlib import Path

from saccade.errors import UserError


def make_folder(path: Path) -> None:
    """Make the folder and its parents; it may exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {path}: {error.strerror}") from None

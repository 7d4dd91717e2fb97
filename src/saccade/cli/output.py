"""Where commands write."""

from pathlib import Path

from saccade.errors import UserError


def make_folder(path: Path) -> None:
    """With the folders above it; one that is there already is as good."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {path}: {error.strerror}") from None

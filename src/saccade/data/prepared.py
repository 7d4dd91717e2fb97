"""Arrays made from the data once, kept in the run's folder and mapped into memory from then on."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np

from saccade.errors import UserError

MANIFEST = "manifest.json"


def keep(folder: Path, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Write the arrays, aside first, and give them back mapped."""
    aside = folder.with_name(f".writing-{folder.name}")
    try:
        for old in (aside, folder):
            shutil.rmtree(old, ignore_errors=True)
        aside.mkdir(parents=True)
        for name, array in arrays.items():
            np.save(aside / f"{name}.npy", array)
        (aside / MANIFEST).write_text(json.dumps({name: file_digest(aside / f"{name}.npy") for name in arrays}))
        aside.rename(folder)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise UserError(f"could not write {folder}: {error.strerror or error}") from None
    return _mapped(folder, list(arrays))


def kept(folder: Path) -> dict[str, np.ndarray] | None:
    """The arrays that were kept, mapped; None if they are not there or not what was written."""
    try:
        digests = json.loads((folder / MANIFEST).read_text())
        if any(file_digest(folder / f"{name}.npy") != digest for name, digest in digests.items()):
            return None
        return _mapped(folder, list(digests))
    except (OSError, ValueError, AttributeError):
        return None


def _mapped(folder: Path, names: list[str]) -> dict[str, np.ndarray]:
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

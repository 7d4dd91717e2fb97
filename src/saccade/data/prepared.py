"""Arrays made from the data once, kept in the run's folder and mapped into memory from then on."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np

from saccade.errors import UserError

MANIFEST = "manifest.json"
_verified: ContextVar[bool] = ContextVar("verified", default=False)
HEADER = 128
"""Bytes before the numbers of an .npy file, a multiple of 64."""


Parts = Iterator[np.ndarray]
"""A long row, part by part."""


def keep(folder: Path, arrays: Mapping[str, np.ndarray | Parts]) -> dict[str, np.ndarray]:
    """Write the arrays, aside first, and give them back mapped. One that comes in parts is never whole in memory."""
    aside = folder.with_name(f".writing-{folder.name}")
    try:
        for old in (aside, folder):
            shutil.rmtree(old, ignore_errors=True)
        aside.mkdir(parents=True)
        for name, array in arrays.items():
            file = aside / f"{name}.npy"
            np.save(file, array) if isinstance(array, np.ndarray) else _save_parts(file, array)
        (aside / MANIFEST).write_text(json.dumps({name: file_digest(aside / f"{name}.npy") for name in arrays}))
        aside.rename(folder)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise UserError(f"could not write {folder}: {error.strerror or error}") from None
    return _mapped(folder, list(arrays))


def _save_parts(path: Path, parts: Parts) -> None:
    """As `np.save`, but how long the row is, which stands at the beginning of the file, is known at the end."""
    count, kind = 0, np.dtype(np.uint16)
    with path.open("wb") as file:
        file.write(bytes(HEADER))
        for part in parts:
            part.tofile(file)
            count, kind = count + len(part), part.dtype
        file.seek(0)
        table = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (count,)}
        magic, text = np.lib.format.magic(1, 0), f"{table!r}"
        text = text.ljust(HEADER - len(magic) - 3) + "\n"
        file.write(magic + len(text).to_bytes(2, "little") + text.encode())


@contextmanager
def just_verified() -> Iterator[None]:
    """Inside, `kept` maps what another process of the same training has just verified, and reads none of it."""
    token = _verified.set(True)
    try:
        yield
    finally:
        _verified.reset(token)


def kept(folder: Path) -> dict[str, np.ndarray] | None:
    """The arrays that were kept, mapped; None if they are not there or not what was written."""
    try:
        digests = json.loads((folder / MANIFEST).read_text())
        if not _verified.get() and any(
            file_digest(folder / f"{name}.npy") != digest for name, digest in digests.items()
        ):
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

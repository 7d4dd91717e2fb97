"""One training at a time in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from saccade.errors import UserError

LOCK = ".lock"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; one clear line if another process has it.

    The system releases the lock when the process ends, however it ends. The file itself stays: a process that deletes
    it could take away a lock that another one is about to take.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        file = (folder / LOCK).open("a")
    except OSError as error:
        raise UserError(f"could not write in {folder}: {error.strerror or error}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: another training is at work there; wait for it, or choose another --out"
            ) from None
        yield

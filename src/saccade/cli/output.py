"""Where the results of commands go: folders, and files of answers."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from saccade.errors import UserError, WrongUse

STREAM = "\0-"
"""`-` on its way through the parser of arguments, which would take it for an option. No argument holds a NUL."""


class WritesAnswers(Protocol):
    """What the options of a command that answers have."""

    @property
    def output(self) -> Path | None: ...

    @property
    def quiet(self) -> bool: ...


def make_folder(path: Path) -> None:
    """Make the folder and its parents; it may exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {path}: {error.strerror}") from None


@contextlib.contextmanager
def answers_to(file: Path | None) -> Iterator[None]:
    """What is printed inside goes to the file, or where none is given to standard output.

    The file is written aside and moved at the end, also after an error or Ctrl-C: the input may be the same file.
    """
    if file is None or str(file) == STREAM:
        yield
        return
    if file.is_dir():
        raise WrongUse(f"-o {file}: a folder; give a file")
    aside = file.with_name(f".writing-{file.name}") if file.is_file() or not file.exists() else file
    try:
        opened = aside.open("w", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from None
    try:
        with opened, contextlib.redirect_stdout(opened):
            yield
    finally:
        if aside != file:
            aside.replace(file)


def tell(message: str, *, quiet: bool) -> None:
    """A notice on stderr that nothing depends on; errors are not told this way."""
    if not quiet:
        print(f"saccade: {message}", file=sys.stderr)

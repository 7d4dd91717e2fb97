"""Files of others: only regular ones are read, of at most a given size, and JSON only as deep as ours is."""

import json
import os
import stat
from io import FileIO
from pathlib import Path
from typing import Any

from saccade.errors import UserError

DEEPEST = 32
"""Tables within tables in the JSON of a model folder; our own have at most eight."""
_PIECE = 2**20


def open_regular(file: Path) -> FileIO:
    """A regular file, open for reading. Links are followed, but not to devices or pipes."""
    try:
        # A pipe without a writer would be waited for; what the descriptor is, no one can change any more.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}") from None
    except ValueError as error:  # a name with a null character
        raise UserError(f"{str(file)!r}: {error}") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise UserError(f"{file}: {_kind(mode)}, not a file")
    return os.fdopen(descriptor, "rb", buffering=0)


def read_file(file: Path, limit: int) -> bytes:
    """The whole content of a regular file of at most `limit` bytes."""
    with open_regular(file) as opened:
        try:
            size = os.fstat(opened.fileno()).st_size
            if size > limit:
                raise UserError(f"{file}: {size:,} bytes; at most {limit:,} are read")
            # Mostly all comes at once. The size may be untrue, as in /proc, or grow.
            pieces, left = [opened.read(size + 1)], limit + 1
            while pieces[-1] and (left := left - len(pieces[-1])) > 0:
                pieces.append(opened.read(min(_PIECE, left)))
        except OSError as error:
            raise UserError(f"{file}: {error.strerror or error}") from None
    if left <= 0:
        raise UserError(f"{file}: more than {limit:,} bytes, the most that are read")
    return b"".join(pieces)


def parse_json(content: str | bytes, file: Path) -> Any:
    """JSON of at most `DEEPEST` tables and lists within each other: what comes later may take one call for each."""
    try:
        found = json.loads(content, object_pairs_hook=_table)
    except RecursionError:
        raise UserError(f"{file}: not valid JSON: nested more than {DEEPEST} deep") from None
    except ValueError as error:
        raise UserError(f"{file}: not valid JSON ({str(error)[:100]})") from None
    level, depth = [found], 0
    while level:
        if depth > DEEPEST:
            raise UserError(f"{file}: not valid JSON: nested more than {DEEPEST} deep")
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
        ]
        depth += 1
    return found


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values for one key some readers take the first, some the last: what is checked must be what is read."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one table")
    return found


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for matches, name in kinds if matches(mode)), "a device")

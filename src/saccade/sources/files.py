"""The bytes of an input file, read within limits. No address on the net is ever fetched."""

import os
import re
import stat
from pathlib import Path

from saccade.errors import UserError, WrongUse

NET = re.compile(r"^(https?|ftp|s3|gs)://", re.IGNORECASE)


def file_content(path: str | Path, largest: int) -> bytes:
    """The content of a regular file of at most `largest` bytes: a pipe could wait, a device could go on, for ever."""
    if NET.match(str(path)):
        raise WrongUse(f"{str(path)[:80]}: nothing is fetched from the net; download it, and give the file")
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would wait.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            mode = os.fstat(number).st_mode
            if not stat.S_ISREG(mode):
                raise UserError(f"{path}: {'a folder' if stat.S_ISDIR(mode) else 'not a regular file'}")
            with open(number, "rb", closefd=False) as opened:
                content = opened.read(largest + 1)
        finally:
            os.close(number)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise UserError(f"{path!r}: {error}") from None
    return within(content, largest, str(path))


def within(content: bytes, largest: int, name: str) -> bytes:
    """The content itself, if it is not too large."""
    if len(content) > largest:
        raise UserError(f"{name}: more than {largest:,} bytes, which is the most that is read of one file")
    return content

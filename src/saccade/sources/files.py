"""The bytes of an input file. No address on the net is ever fetched."""

import re
from pathlib import Path

from saccade.errors import UserError, WrongUse
from saccade.files import read_file

NET = re.compile(r"^(https?|ftp|s3|gs)://", re.IGNORECASE)


def file_content(path: str | Path, largest: int) -> bytes:
    """The content of a regular file of at most `largest` bytes."""
    if NET.match(str(path)):
        raise WrongUse(f"{str(path)[:80]}: nothing is fetched from the net; download it, and give the file")
    return read_file(Path(path), largest)


def within(content: bytes, largest: int, name: str) -> bytes:
    """The content itself, if it is not too large."""
    if len(content) > largest:
        raise UserError(f"{name}: more than {largest:,} bytes, which is the most that is read of one file")
    return content

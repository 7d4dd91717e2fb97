"""The test part that a model folder carries, compressed, so that its card can be checked without the recipe's data."""

import hashlib
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from saccade.errors import UserError
from saccade.files import read_file
from saccade.folder import DAMAGED, unpack

TestName = Literal["test.tsv.xz", "test.conllu.xz", "test.txt.xz"]
NAMES: tuple[TestName, ...] = ("test.tsv.xz", "test.conllu.xz", "test.txt.xz")
LARGEST_PACKED = 8 * 2**20
LARGEST_TEST = 64 * 2**20
"""When unpacked."""


@dataclass(frozen=True)
class CarriedTest:
    """A test part as a file that `saccade evaluate MODEL FILE` reads."""

    name: TestName
    text: str

    def packed(self) -> bytes:
        return lzma.compress(self.text.encode(), preset=9 | lzma.PRESET_EXTREME)


def carried_test(path: Path, digests: Mapping[str, str]) -> Path | None:
    """The file with the test part of a model folder: its digest is the one in config.json, and it unpacks into no more
    than it may; None where the folder has none."""
    name = next((name for name in NAMES if name in digests), None)
    if name is None:
        return None
    file = path / name
    content = read_file(file, LARGEST_PACKED)
    if hashlib.sha256(content).hexdigest() != digests[name]:
        raise UserError(f"{file}: {DAMAGED}")
    unpack(file, content, LARGEST_TEST)
    return file

"""Ways to damage a file by accident, and safetensors files made to harm; what all complaints must look like."""

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

from saccade.errors import UserError

DEEP = 100_000
NESTED = "[" * DEEP + "]" * DEEP


def insist_one_line(error: UserError) -> None:
    assert str(error).strip()
    assert len(str(error).splitlines()) == 1, repr(str(error))


# By accident: a bad disk, a broken copy. What is drawn is the same each time.


def truncate(file: Path, chance: random.Random) -> None:
    # Without its last line break a file may still be whole.
    os.truncate(file, chance.randrange(file.stat().st_size - 1))


def flip_a_bit(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def empty(file: Path, chance: random.Random) -> None:
    file.write_bytes(b"")


def delete(file: Path, chance: random.Random) -> None:
    file.unlink()


def make_a_folder(file: Path, chance: random.Random) -> None:
    file.unlink()
    file.mkdir()


Accident = Callable[[Path, random.Random], None]


# The safetensors format: 8 bytes of header length, a JSON header, the numbers


def packed(header: bytes, body: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + body


def entry(name: str, *, dtype: str = "F32", shape: str = "[2]", offsets: str = "[0, 8]") -> str:
    return f'"{name}": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}}}'


def table(*entries: str) -> bytes:
    return ("{" + ", ".join(entries) + "}").encode()


EIGHT = bytes(8)
HEADERS: dict[str, bytes] = {
    "nothing": b"",
    "seven bytes": b"\0" * 7,
    "length 0": packed(b""),
    "length 2^64 - 1": packed(table(entry("a")), EIGHT, 2**64 - 1),
    "length 2^63": packed(table(entry("a")), EIGHT, 2**63),
    "length beyond the file": packed(table(entry("a")), EIGHT, 10_000),
    "length of 100 MB": packed(table(entry("a")), EIGHT, 100_000_001),
    "length too short": packed(table(entry("a")), EIGHT, 10),
    "not JSON": packed(b"hello, world", EIGHT),
    "a list": packed(b"[1, 2]", EIGHT),
    "a number": packed(b"7", EIGHT),
    "not UTF-8": packed(b'{"\xff": 1}', EIGHT),
    "deep": packed(NESTED.encode(), EIGHT),
    "deep in an entry": packed(b'{"a": ' + NESTED.encode() + b"}", EIGHT),
    "negative offsets": packed(table(entry("a", offsets="[-8, 0]")), EIGHT),
    "offsets backwards": packed(table(entry("a", offsets="[8, 0]")), EIGHT),
    "offsets beyond the end": packed(table(entry("a", offsets="[800, 808]")), EIGHT),
    "offsets beyond 64 bits": packed(table(entry("a", offsets=f"[0, {2**64}]")), EIGHT),
    "three offsets": packed(table(entry("a", offsets="[0, 8, 16]")), EIGHT),
    "overlapping tensors": packed(table(entry("a"), entry("b")), EIGHT),
    "half-overlapping tensors": packed(table(entry("a"), entry("b", offsets="[4, 12]")), bytes(12)),
    "a hole": packed(table(entry("a"), entry("b", offsets="[16, 24]")), bytes(24)),
    "bytes left over": packed(table(entry("a")), bytes(80)),
    "fewer bytes than the shape": packed(table(entry("a", shape="[3]")), EIGHT),
    "a shape whose product overflows": packed(table(entry("a", shape=f"[{2**62}, 8]")), EIGHT),
    "a negative shape": packed(table(entry("a", shape="[-2]")), EIGHT),
    "a fractional shape": packed(table(entry("a", shape="[2.0]")), EIGHT),
    "an empty tensor of an absurd shape": packed(table(entry("a", shape=f"[0, {2**63}]", offsets="[0, 0]"))),
    "an empty tensor of a large shape": packed(table(entry("a", shape=f"[0, {2**40}]", offsets="[0, 0]"))),
    "an unknown type": packed(table(entry("a", dtype="X99")), EIGHT),
    "a type torch has no numbers for": packed(table(entry("a", dtype="F8_E8M0", shape="[8]")), EIGHT),
    "a type of four bits": packed(table(entry("a", dtype="F4", shape="[16]")), EIGHT),
    "the same name twice": packed(table(entry("a"), entry("a")), EIGHT),
    "only metadata": packed(b'{"__metadata__": {"format": "pt"}}'),
    "wrong metadata": packed(b'{"__metadata__": 5}'),
    "a pickle": b"\x80\x04\x95\x1b\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "a zip, as torch.save writes": b"PK\x03\x04" + bytes(100),
    "a name with a line break": packed(table(entry("a\\nb")), EIGHT),
}

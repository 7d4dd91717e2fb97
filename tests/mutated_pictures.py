"""Pictures that are damaged at random, and bombs. A short form runs in the tests; the long one, 500 of each format:

    python tests/mutated_pictures.py [COUNT]

Every one must be read or refused by one line that names its file, in bounded memory.
"""

import io
import resource
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from saccade.errors import UserError
from saccade.sources.opener import open_picture

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
MODES = {
    "PNG": ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"),
    "JPEG": ("RGB", "L", "CMYK"),
    "GIF": ("P", "L"),
    "WEBP": ("RGB", "RGBA"),
    "BMP": ("RGB", "L", "1", "P"),
    "TIFF": ("RGB", "RGBA", "L", "CMYK", "F", "I;16", "P", "LAB", "YCbCr"),
}
LARGEST_GROWTH = 800 * 2**20
"""Bytes that the process may grow by: a picture of 25 megapixels and its copies."""


def whole(kind: str, number: int) -> bytes:
    """A small picture of one of the format's modes, some animated, some turned."""
    random = np.random.default_rng([len(kind), number])
    mode = MODES[kind][number % len(MODES[kind])]
    pixels = random.integers(0, 256, (int(random.integers(1, 40)), int(random.integers(1, 40)), 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    if mode == "I;16":
        image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
    elif mode == "LAB":
        image = Image.merge("LAB", image.split())
    elif mode != "RGB":
        image = image.convert("L").convert(mode) if mode in ("LA", "F", "1") else image.convert(mode)
    options: dict[str, object] = {}
    if kind in ("GIF", "WEBP") and number % 3 == 0:
        options = {"save_all": True, "append_images": [image.rotate(90), image.rotate(180)]}
    elif kind in ("PNG", "JPEG", "TIFF") and number % 4 == 0 and mode == "RGB":
        exif = Image.Exif()
        exif[0x0112] = 1 + number % 8
        options = {"exif": exif}
    if kind == "TIFF" and number % 2 and mode in ("RGB", "L"):
        options |= {"compression": ("tiff_lzw", "tiff_adobe_deflate", "packbits")[number % 3]}
    written = io.BytesIO()
    image.save(written, kind, **options)
    return written.getvalue()


def mutated(kind: str, number: int) -> bytes:
    """The same, damaged: bytes changed, cut off, doubled, exchanged, or numbers in its head made large."""
    random = np.random.default_rng([1, len(kind), number])
    content = bytearray(whole(kind, number))
    how = int(random.integers(6))
    if how == 0:
        return bytes(content[: int(random.integers(len(content)))])
    if how == 1:
        start, stop = sorted(random.integers(0, len(content), 2).tolist())
        return bytes(content[:start] + content[start:stop] * 3 + content[stop:])
    reach = min(len(content), 64) if how in (2, 3) else len(content)
    for _ in range(int(random.integers(1, 12))):
        place = int(random.integers(reach))
        if how == 3 and place + 4 <= len(content):
            content[place : place + 4] = struct.pack(">I", int(random.integers(2**32)))
        else:
            content[place] = int(random.integers(256))
    return bytes(content)


def bombs() -> Iterator[tuple[str, bytes]]:
    """Twelve small files that say they are large, or are when unpacked."""

    def png(width: int, height: int, body: bytes = b"") -> bytes:
        def chunk(kind: bytes, data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IDAT", zlib.compress(bytes(10_000))) + chunk(b"IEND", b"")

    text = zlib.compress(bytes(100_000_000))
    much_text = b"".join(
        struct.pack(">I", len(data)) + b"zTXt" + data + struct.pack(">I", zlib.crc32(b"zTXt" + data))
        for data in (b"note%d\0\0" % number + text for number in range(8))
    )
    yield "wide.png", png(13_000, 13_000)
    yield "endless.png", png(2**31 - 1, 2**31 - 1)
    yield "line.png", png(2**31 - 1, 1)
    yield "text.png", png(10, 10, much_text)
    for name, size in (("wide.gif", (60_000, 60_000)), ("square.gif", (6_000, 6_000))):
        yield (
            name,
            b"GIF89a"
            + struct.pack("<HHBBB", *size, 0x80, 0, 0)
            + bytes(6)
            + b",\0\0\0\0"
            + struct.pack("<HHB", *size, 0)
            + b"\x02\x02\x4c\x01\x00;",
        )
    head = struct.pack("<IiiHHIIiiII", 40, 30_000, 30_000, 1, 24, 0, 0, 0, 0, 0, 0)
    yield "wide.bmp", b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + head
    yield (
        "run.bmp",
        b"BM"
        + struct.pack("<IHHI", 1078, 0, 0, 1078)
        + struct.pack("<IiiHHIIiiII", 40, 20_000, 20_000, 1, 8, 1, 0, 0, 0, 256, 0)
        + bytes(1024)
        + b"\xff\x00" * 100,
    )
    for name, kind, options in (
        ("flat.tiff", "TIFF", {"compression": "tiff_deflate"}),
        ("grey.png", "PNG", {}),
        ("flat.webp", "WEBP", {}),
    ):
        written = io.BytesIO()
        Image.new("L", (6_000, 6_000)).save(written, kind, **options)
        yield name, written.getvalue()
    yield "wide.ppm", b"P6 50000 50000 255\n" + bytes(100)


def fault_of(path: Path, content: bytes) -> str:
    """What is wrong with how a file is treated; empty if nothing is."""
    path.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        open_picture(path)
    except UserError as error:
        if "\n" in str(error) or not str(error).startswith(str(path)):
            return f"no clear line: {error}"
    except Exception as error:
        return f"{error!r}"
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return f"{grown / 2**20:.0f} MB" if grown > LARGEST_GROWTH else ""


def main(count: int) -> int:
    faults = 0
    with tempfile.TemporaryDirectory() as room:
        for kind in FORMATS:
            read = 0
            for number in range(count):
                content = mutated(kind, number)
                if fault := fault_of(Path(room) / f"{number}.{kind.lower()}", content):
                    faults += 1
                    print(f"{kind} {number}: {fault}")
                try:
                    open_picture(content)
                    read += 1
                except UserError:
                    pass
            print(f"{kind}: {count} damaged pictures, {read} could still be read")
        for name, content in bombs():
            if fault := fault_of(Path(room) / name, content):
                faults += 1
                print(f"{name}: {fault}")
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))

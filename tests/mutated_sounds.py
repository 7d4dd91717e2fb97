"""Mutated sound files, and files that are no sounds: each is read, or ends in one clear line; the process lives on.

    python tests/mutated_sounds.py                 # 500 of each of WAV, FLAC, Ogg and MP3
    python tests/mutated_sounds.py --count 5000
    python tests/mutated_sounds.py --only FLAC 17  # one again, what was said shown

A file is read as far as `saccade transcribe` reads it before a model is asked: decoded, resampled, cut at pauses, made
log-mel frames. Bytes are changed, taken out, doubled, or put in, half of the time within the first 100, where headers
are; sizes in headers are set to the largest numbers.
"""

import argparse
import io
import os
import random
import resource
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from saccade.errors import UserError
from saccade.pipelines.pauses import cut_at_pauses
from saccade.sources import decoding
from saccade.sources.sound import SoundSource
from saccade.sources.spectrogram import log_mel, normalised

FORMATS = {"WAV": "PCM_16", "WAV float": "FLOAT", "FLAC": "PCM_16", "OGG": "VORBIS", "MP3": "MPEG_LAYER_III"}
SECONDS = 60.0
"""The longest sound that is read here."""
MEMORY = 1_500 * 2**20
"""Bytes that this process and the decoder's may hold, each."""
PATIENCE = 30.0
"""Seconds for one file; the machine may be busy."""


def good(name: str, rate: int = 16_000, seconds: float = 1.0) -> bytes:
    """A sound of this format: a rising tone and noise, two channels."""
    import soundfile

    moments = np.arange(int(rate * seconds)) / rate
    noise = np.random.default_rng(0).standard_normal((len(moments), 2))
    samples = 0.5 * np.sin(2 * np.pi * (300 + 200 * moments) * moments)[:, None] + 0.02 * noise
    written = io.BytesIO()
    soundfile.write(written, samples.astype(np.float32), rate, format=name.split(maxsplit=1)[0], subtype=FORMATS[name])
    return written.getvalue()


def mutate(content: bytes, chance: random.Random) -> bytes:
    """One to four changes."""
    found = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        reach = min(100, len(found)) if chance.random() < 0.5 else len(found)
        at = chance.randrange(max(1, reach))
        size = chance.choice((1, 2, 4, 8, chance.randint(1, 400)))
        change = chance.randrange(6)
        if change == 0:
            found[at : at + size] = chance.randbytes(size)
        elif change == 1:
            del found[at : at + size]
        elif change == 2:
            found[at:at] = found[at : at + size]
        elif change == 3:
            found[at : at + 4] = struct.pack("<I", chance.choice((0, 1, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)))
        elif change == 4:
            del found[at:]
        else:
            found[at : at + 1] = bytes([found[at] ^ (1 << chance.randrange(8))]) if at < len(found) else b"\0"
    return bytes(found)


def heard(raw: bytes | Path) -> str:
    """What becomes of a file: how many frames, or what is said of it."""
    item = SoundSource(seconds=SECONDS).read(raw)
    assert np.isfinite(item.samples).all(), "samples that are no numbers"
    stretches = cut_at_pauses(item.samples, item.rate, 9.0)
    frames = [normalised(log_mel(item.samples[one.start : one.end], item.rate, 40)) for one in stretches]
    assert all(np.isfinite(one).all() for one in frames), "energies that are no numbers"
    return f"{sum(map(len, frames))} frames"


def outcome(raw: bytes | Path) -> tuple[str, str | None]:
    """What was said, and what is wrong with it, if anything."""
    began = time.monotonic()
    try:
        said, wrong = heard(raw), None
    except UserError as error:
        said = str(error)
        wrong = "not one line" if "\n" in said or not said.strip() else None
    except Exception as error:
        said, wrong = repr(error), "an error that nobody expected"
    if wrong is None and time.monotonic() - began > PATIENCE:
        wrong = f"{time.monotonic() - began:.0f} seconds"
    return said, wrong


def riff(*, channels: int = 1, rate: int = 8_000, bits: int = 16, kind: int = 1, size: int = 0, data: bytes) -> bytes:
    """A WAV file whose header may say anything."""
    block = channels * bits // 8
    described = struct.pack("<HHIIHH", kind, channels, rate, rate * block & 0xFFFFFFFF, block & 0xFFFF, bits)
    chunk = struct.pack("<4sI", b"data", size or len(data)) + data
    body = b"WAVE" + struct.pack("<4sI", b"fmt ", len(described)) + described + chunk
    return b"RIFF" + struct.pack("<I", len(body)) + body


def bad_files(folder: Path) -> dict[str, tuple[bytes | Path, str]]:
    """Files that are no sounds, or lie; and words of what is to be said of each."""
    tone = (np.sin(np.arange(8_000) / 5) * 9_000).astype("<i2").tobytes()
    wrong = np.sin(np.arange(8_000) / 5).astype("<f4")
    wrong[[7, 99]] = np.nan, np.inf
    fifo, text, empty = folder / "pipe.wav", folder / "text.wav", folder / "empty.mp3"
    os.mkfifo(fifo)
    text.write_text("this is no sound, whatever its name says\n" * 50)
    empty.write_bytes(b"")
    return {
        "three hours without data": (riff(size=2 * 8_000 * 3 * 3600, data=b""), "10800.0 seconds; at most"),
        "no channels": (riff(channels=0, data=tone), "not a sound that can be read|channels"),
        "a thousand channels": (riff(channels=1_000, data=tone), "1000 channels; 1 to"),
        "no rate": (riff(rate=0, data=tone), "not a sound that can be read|samples a second"),
        "four billion samples a second": (riff(rate=2**32 - 1, data=tone), "samples a second|not a sound"),
        "samples that are no numbers": (
            riff(kind=3, bits=32, data=wrong.tobytes()),
            "2 of 8,000 samples are no numbers",
        ),
        "seven bits": (riff(bits=7, data=tone), "frames"),
        "no samples": (riff(data=b""), "no samples|10800|not a sound"),
        "a text": (text, "not a sound that can be read"),
        "an empty file": (empty, "not a sound that can be read"),
        "a pipe": (fifo, "a pipe, not a file"),
        "a folder": (folder, "a folder, not a file"),
        "a device": (Path("/dev/zero"), "a device, not a file"),
        "not there": (folder / "not-there.wav", "No such file"),
        "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "not a sound that can be read"),
        "an ID3 tag of 256 MB": (b"ID3\x04\0\0\x7f\x7f\x7f\x7f" + bytes(1_000), "not a sound|no samples"),
    }


def _held() -> int:
    """Bytes at most. Not ru_maxrss: that of a new program begins with the memory of who started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def _held_by_children() -> int:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def check(count: int, *, say: Callable[[str], object] = print) -> list[str]:
    """What is wrong, by file; an empty list where nothing is."""
    problems = []
    for name in FORMATS:
        content, found = good(name), Counter[str]()
        said, wrong = outcome(content)
        if wrong or "frames" not in said:
            problems.append(f"{name}, unchanged: {said}")
        for number in range(count):
            said, wrong = outcome(mutate(content, random.Random(f"{name} {number}")))
            found["read" if said.endswith(" frames") else "refused"] += 1
            if wrong:
                problems.append(f"{name} {number}: {wrong}: {said[:200]}")
        say(f"{name}: {count} mutated, {found['read']} read, {found['refused']} refused in one line")
    with tempfile.TemporaryDirectory() as room:
        for name, (raw, words) in bad_files(Path(room)).items():
            said, wrong = outcome(raw)
            known = any(part in said for part in words.split("|"))
            say(f"{name}: {said.replace(room, '.')}")
            if wrong or not known:
                problems.append(f"{name}: {wrong or 'other words'}: {said[:200]}")
    alive = decoding.decode(good("FLAC"), "good", SECONDS).rate == 16_000
    decoding.end_decoder()
    for held, whose in ((_held(), "this process"), (_held_by_children(), "a decoder")):
        say(f"{whose} held {held // 2**20} MB at most")
        problems += [f"{whose} held {held:,} bytes"] if held > MEMORY else []
    return problems if alive else [*problems, "a good file is no longer read"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="mutated files of each format")
    parser.add_argument("--only", nargs=2, metavar=("FORMAT", "NUMBER"), help="one again")
    asked = parser.parse_args()
    if asked.only:
        name, number = asked.only
        print(outcome(mutate(good(name), random.Random(f"{name} {number}"))))
        return
    began = time.monotonic()
    problems = check(asked.count)
    for problem in problems:
        print(f"PROBLEM {problem}")
    print(f"{len(problems)} problems in {time.monotonic() - began:.0f} seconds")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

"""Decodes sound files (WAV, FLAC, Ogg, MP3) in a process of its own: what a crafted file does to a decoder in C, it
does to that process only, whose memory and time are bounded. It stays for the next file.

Run as a module it is that process.
"""

import atexit
import contextlib
import io
import json
import os
import select
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from saccade.errors import UserError

FORMATS = ("WAV", "WAVEX", "W64", "RF64", "FLAC", "OGG", "MP3", "MPEG", "AIFF", "AU")
"""All that is decoded: libsndfile knows more."""
CHANNELS = 16
MEMORY = 4 * 2**30
"""Bytes that the process may use."""
PATIENCE = 60.0
"""Seconds for one file."""
BLOCK = 2**19
"""Numbers that are decoded at a time."""
HEADER = struct.Struct("<Qd")


@dataclass(frozen=True)
class Sound:
    """What a file holds, its channels mixed."""

    samples: np.ndarray
    rate: int


class _Decoder:
    """The process, started when it is first needed."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from saccade.sources.decoding import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
        atexit.register(self.end)

    def ask(self, content: bytes, seconds: float) -> tuple[dict[str, Any], bytes]:
        """The answer and the samples; OSError or ValueError where the process failed."""
        assert self.process.stdin is not None
        until = time.monotonic() + PATIENCE
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(HEADER.pack(len(content), seconds))
            self.process.stdin.write(content)
            self.process.stdin.flush()
        (size,) = struct.unpack("<Q", self._take(8, until))
        told: dict[str, Any] = json.loads(self._take(size, until))
        return told, self._take(4 * int(told.get("count", 0)), until)

    def _take(self, size: int, until: float) -> bytes:
        assert self.process.stdout is not None
        pieces, left = [], size
        while left:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError(f"it takes longer than {PATIENCE:g} seconds")
            piece = os.read(self.process.stdout.fileno(), min(left, 2**20))
            if not piece:
                raise EOFError("the decoder failed on it")
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def end(self) -> None:
        """Kill it: it keeps nothing."""
        if os.getpid() != self.owner:  # a forked process must not end what belongs to another
            return
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        atexit.unregister(self.end)


_lock = threading.Lock()
_decoder: _Decoder | None = None


def decode(content: bytes, name: str, seconds: float) -> Sound:
    """The samples of a file of at most so many seconds; a UserError says what is wrong with it."""
    global _decoder  # noqa: PLW0603
    with _lock:
        if _decoder is None or _decoder.owner != os.getpid() or _decoder.process.poll() is not None:
            _decoder = _Decoder()
        try:
            told, data = _decoder.ask(content, seconds)
        except (OSError, EOFError, ValueError) as error:
            _decoder.end()
            _decoder = None
            raise UserError(f"{name}: not a sound that can be read: {error}") from None
    if "error" in told:
        raise UserError(f"{name}: {told['error']}")
    return Sound(np.frombuffer(data, dtype=np.float32), int(told["rate"]))


def end_decoder() -> None:
    """End the process that decodes; the next file starts another."""
    global _decoder  # noqa: PLW0603
    with _lock:
        if _decoder is not None:
            _decoder.end()
            _decoder = None


def serve() -> None:
    """Answer until standard input ends."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    inward, outward = sys.stdin.buffer, sys.stdout.buffer
    while header := inward.read(HEADER.size):
        size, seconds = HEADER.unpack(header)
        _answer(inward.read(size), seconds, outward)


def _answer(content: bytes, seconds: float, outward: IO[bytes]) -> None:
    data = b""
    try:
        rate, samples = decoded_here(content, seconds)
        told: dict[str, Any] = {"rate": rate, "count": len(samples)}
        data = samples.tobytes()
    except UserError as error:
        told = {"error": str(error)}
    except MemoryError:
        told = {"error": "not enough memory to decode it"}
    line = json.dumps(told).encode()
    outward.write(struct.pack("<Q", len(line)) + line + data)
    outward.flush()


def decoded_here(content: bytes, seconds: float) -> tuple[int, np.ndarray]:
    """Rate and mixed samples, decoded in this very process."""
    try:
        import soundfile
    except (ImportError, OSError):
        raise UserError("only plain WAV files are read without soundfile: pip install soundfile") from None
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as opened:
            if opened.format not in FORMATS:
                raise UserError(f"a {opened.format} file; WAV, FLAC, Ogg and MP3 are read")
            check_header(opened.channels, opened.samplerate, opened.frames, seconds)
            return opened.samplerate, _mixed(opened, int(seconds * opened.samplerate))
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError, OverflowError) as error:
        raise UserError(f"not a sound that can be read: {_plain(error)}") from None


def check_header(channels: int, rate: int, frames: int, seconds: float) -> None:
    """Refuse by its header what is too long or makes no sense."""
    if not 1 <= channels <= CHANNELS:
        raise UserError(f"{channels} channels; 1 to {CHANNELS} can be read")
    if not 1_000 <= rate <= 1_000_000:
        raise UserError(f"{rate:,} samples a second; 1,000 to 1,000,000 can be read")
    if frames > seconds * rate:
        raise UserError(f"{frames / rate:.1f} seconds; at most {seconds:g} are read in one sound")


def _mixed(opened: Any, most: int) -> np.ndarray:
    """Block by block: what the header says of the length need not be true."""
    blocks, count = [], 0
    size = max(1, BLOCK // opened.channels)
    while len(block := opened.read(size, dtype="float32", always_2d=True)):
        count += len(block)
        if count > most:
            raise UserError(f"more than {most / opened.samplerate:g} seconds, the most that are read in one sound")
        blocks.append(block.mean(axis=1, dtype=np.float32))
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.float32)


def _plain(error: Exception) -> str:
    """Without the address of the bytes."""
    text = " ".join(str(error).split())
    return text.rpartition(">: ")[2][:100].rstrip(".") or type(error).__name__

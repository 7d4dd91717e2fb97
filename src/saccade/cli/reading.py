"""Input lines, read ahead in a thread, so that errors are reported at once."""

import os
import queue
import stat
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from saccade.errors import UserError

AHEAD = 8192


BYTE_ORDER_MARK = "\ufeff"
EMPTIED, KEPT = "its output is empty", "it is left as it is"
"""What happens to a line that cannot be answered."""


@dataclass(frozen=True)
class Line:
    """A line as it was read; bytes that are not UTF-8 are escaped by Python's "surrogateescape"."""

    text: str | None
    """None if it cannot be used: `before` then holds all of it, and the reason was printed."""
    before: str = ""
    """A byte order mark."""
    after: str = "\n"
    """The line's end."""

    def around(self, answer: str) -> str:
        """The line with an answer where its text stood."""
        return f"{self.before}{answer}{self.after}"


class Lines:
    """Lines of a stream, in order; `take` gives what is there without waiting for more."""

    def __init__(self, stream: BinaryIO, longest: int, fate: str = EMPTIED) -> None:
        self.stream, self.longest, self.fate = stream, longest, fate
        self.refused = 0
        self.taken = 0
        """Bytes of the lines taken so far."""
        self.queue: queue.Queue[tuple[Line, int] | None] = queue.Queue(AHEAD)
        threading.Thread(target=self._read, daemon=True).start()

    def take(self, most: int) -> list[Line]:
        """Between 1 and `most` lines; none at the end."""
        taken: list[Line] = []
        while len(taken) < most:
            try:
                line = self.queue.get(block=not taken)
            except queue.Empty:
                break
            if line is None:
                self.queue.put(None)
                break
            taken.append(line[0])
            self.taken += line[1]
        return taken

    @property
    def size(self) -> int | None:
        """Bytes in all, where the stream is a file."""
        try:
            found = os.fstat(self.stream.fileno())
        except OSError:
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def _read(self) -> None:
        try:
            for number, line in enumerate(self.stream, 1):
                self.queue.put((self._line(number, line), len(line)))
        except OSError as error:
            self._refuse(0, f"standard input: {error.strerror}")
        self.queue.put(None)

    def _line(self, number: int, line: bytes) -> Line:
        try:
            whole = line.decode("utf-8")
        except UnicodeDecodeError as error:
            why = f"not UTF-8 (byte 0x{line[error.start]:02x} at column {error.start + 1})"
            return self._refuse(number, why, line.decode("utf-8", "surrogateescape"))
        before = BYTE_ORDER_MARK if number == 1 and whole.startswith(BYTE_ORDER_MARK) else ""
        text = whole.removeprefix(before).removesuffix("\n").removesuffix("\r")
        if len(text) > self.longest:
            why = f"{len(text):,} characters; at most {self.longest:,} are read in one text"
            return self._refuse(number, why, whole)
        return Line(text, before, whole[len(before) + len(text) :])

    def _refuse(self, number: int, why: str, whole: str = "") -> Line:
        self.refused += 1
        print(f"saccade: line {number}: {why}; {self.fate}", file=sys.stderr, flush=True)
        return Line(None, whole, "")


def checked(texts: Iterable[str], longest: int) -> Iterator[str]:
    """Texts given as arguments: the first that is too long is an error."""
    for text in texts:
        if len(text) > longest:
            raise UserError(f"a text of {len(text):,} characters; at most {longest:,} are read in one text")
        yield text


def on_one_line(text: str) -> str:
    """Replaces line breaks, so that output line n answers input line n."""
    return text.replace("\r", " ").replace("\n", " ")


def standard_input() -> BinaryIO:
    """A separate reader of standard input: Python cannot close the shared one while a thread waits in it."""
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except OSError:  # not a real file
        return sys.stdin.buffer

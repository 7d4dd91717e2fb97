"""Input lines, read ahead in a thread, so that errors are reported at once; no line may fill the memory."""

import codecs
import os
import queue
import stat
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from saccade.errors import UserError

AHEAD, AHEAD_BYTES = 8192, 2**26
"""Lines that are read before they are asked for, and their bytes."""
CHUNK_BYTES = 2**24
"""Bytes of lines that are handed out together."""
PIECE, PIECES = 2**16, 16
"""Bytes of an overlong line that are passed on at a time, and how many such pieces may wait."""


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
    rest: "queue.Queue[str] | None" = None
    """What follows `before` in a line too long to be held: pieces, up to an empty one, read as they are asked for."""

    def unchanged(self) -> Iterator[str]:
        """The line as it was read; the pieces of an overlong one can be had once."""
        yield self.around(self.text or "")
        if self.rest is not None:
            yield from iter(self.rest.get, "")

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
        self.waiting = 0
        """Bytes of the lines in the queue."""
        self.room = threading.Condition()
        self.ended = False
        """Whether the last overlong line had a line break, and not just the end of the stream."""
        threading.Thread(target=self._read, daemon=True).start()

    def take(self, most: int) -> list[Line]:
        """Between 1 and `most` lines; none at the end."""
        taken: list[Line] = []
        size = 0
        while len(taken) < most and size < CHUNK_BYTES:
            try:
                line = self.queue.get(block=not taken)
            except queue.Empty:
                break
            if line is None:
                self.queue.put(None)
                break
            taken.append(line[0])
            size += line[1]
            with self.room:
                self.waiting -= line[1]
                self.room.notify()
        self.taken += size
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
        # A character has at most four bytes; the rest is room for a byte order mark and the line's end.
        limit, number, left_over = 4 * self.longest + 8, 0, 0
        try:
            while line := self.stream.readline(limit):
                number += 1
                size, left_over = len(line) + left_over, 0
                if len(line) < limit or line.endswith(b"\n"):
                    self._put(self._line(number, line), size)
                elif self.fate == KEPT:
                    left_over = self._pass_on(number, line, size)
                else:
                    followed = sum(len(piece) for piece in self._rest())
                    self._put(self._refuse(number, self._too_long(len(line) + followed)), size + followed)
        except OSError as error:
            self._refuse(0, f"standard input: {error.strerror}")
        self.queue.put(None)

    def _put(self, line: Line, size: int) -> None:
        with self.room:
            self.room.wait_for(lambda: self.waiting < AHEAD_BYTES)
            self.waiting += size
        self.queue.put((line, size))

    def _rest(self) -> Iterator[bytes]:
        """What is left of a line."""
        self.ended = False
        while not self.ended and (piece := self.stream.readline(PIECE)):
            self.ended = piece.endswith(b"\n")
            yield piece

    def _pass_on(self, number: int, begin: bytes, size: int) -> int:
        """An overlong line, piece by piece to whoever took it; how many bytes followed its beginning."""
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        rest: queue.Queue[str] = queue.Queue(PIECES)
        self._put(Line(None, decoder.decode(begin), "", rest), size)
        followed = 0
        for piece in self._rest():
            followed += len(piece)
            if text := decoder.decode(piece):  # an empty one would be the end
                rest.put(text)
        if text := decoder.decode(b"", final=True):
            rest.put(text)
        self._refuse(number, self._too_long(len(begin) + followed))
        rest.put("")
        return followed

    def _too_long(self, size: int) -> str:
        return f"{size - self.ended:,} bytes; at most {self.longest:,} characters are read in one text"

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

"""Standard input line by line: nothing is lost or shifted, and no line, however long, fills the memory."""

import io
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from typing import cast

import hypothesis.strategies as st
import pytest
from hypothesis import given

from saccade.cli.reading import AHEAD_BYTES, EMPTIED, KEPT, PIECE, PIECES, Line, Lines


class Endless(io.RawIOBase):
    """A stream of one line that is made as it is read."""

    def __init__(self, size: int, after: bytes = b"\nend\n") -> None:
        self.size, self.after, self.given = size, after, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = cast("memoryview", buffer)
        count = min(len(view), self.size - self.given)
        if count > 0:
            view[:count] = b"x" * count
            self.given += count
            return count
        count = min(len(view), len(self.after))
        view[:count], self.after = self.after[:count], self.after[count:]
        return count


def taken(lines: Lines, most: int = 1000) -> Iterator[Line]:
    while some := lines.take(most):
        yield from some


def unchanged(content: bytes, longest: int) -> bytes:
    """What a verb that keeps lines writes when it changes nothing."""
    lines = taken(Lines(io.BytesIO(content), longest, KEPT))
    return "".join(piece for line in lines for piece in line.unchanged()).encode("utf-8", "surrogateescape")


def test_a_line_up_to_the_limit_is_read_and_one_longer_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    for character in "aé猫🙂":
        for ending in ("\n", "\r\n", ""):
            for mark in ("", "\ufeff"):
                fits, longer = character * 7, character * 8
                content = f"{mark}{fits}{ending}".encode()
                assert [line.text for line in taken(Lines(io.BytesIO(content), 7))] == [fits]
                content = f"{mark}{longer}{ending}".encode()
                assert [line.text for line in taken(Lines(io.BytesIO(content), 7))] == [None]
    assert "at most 7 are read in one text" in capsys.readouterr().err


@given(st.lists(st.binary(max_size=80).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.booleans())
def test_kept_lines_are_the_same_bytes_whatever_they_hold(parts: list[bytes], ended: bool) -> None:
    content = b"\n".join(parts) + (b"\n" if ended else b"")
    assert unchanged(content, longest=3) == content


@pytest.mark.parametrize("size", [10_000, 3 * PIECE * PIECES + 1])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_an_overlong_line_is_passed_on_whole(size: int, end: bytes) -> None:
    content = b"one\n" + "猫é".encode() * size + end
    assert unchanged(content, longest=100) == content


def test_an_overlong_line_shifts_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    content = b"one\n" + b"x" * 500_000 + b"\nthree\n" + b"y" * 2000 + b"\nfive"
    for fate in (EMPTIED, KEPT):
        lines = Lines(io.BytesIO(content), 100, fate)
        found = []
        for line in taken(lines):
            found.append(line.text)
            list(line.unchanged())
        assert found == ["one", None, "three", None, "five"]
        assert lines.refused == 2
        assert lines.taken == len(content)
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 2
        assert said[0].startswith("saccade: line 2: 500,000 bytes")
        assert said[1].startswith("saccade: line 4: 2,000 bytes")
        assert all(line.endswith(fate) for line in said)


def test_no_more_of_an_overlong_line_is_read_than_is_asked_for() -> None:
    stream = Endless(10**9)
    lines = Lines(io.BufferedReader(stream), 1000, KEPT)
    (line,) = lines.take(10)
    pieces = line.unchanged()
    for asked in range(100):
        next(pieces)
        assert stream.given <= 4008 + PIECE * (asked + PIECES + 2) + 3 * io.DEFAULT_BUFFER_SIZE


def test_a_huge_line_is_counted_without_being_held(capsys: pytest.CaptureFixture[str]) -> None:
    tracemalloc.start()
    try:
        lines = list(taken(Lines(io.BufferedReader(Endless(300_000_000)), 1000)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [line.text for line in lines] == [None, "end"]
    assert peak < 4_000_000
    assert "line 1: 300,000,000 bytes; at most 1,000 characters" in capsys.readouterr().err


def test_many_long_lines_are_not_read_far_ahead() -> None:
    stream = Endless(10**10)
    line = b"x" * 999_999 + b"\n"
    stream.readinto = lambda buffer: _fill(stream, buffer, line)  # type: ignore[method-assign]
    lines = Lines(io.BufferedReader(stream, 2**20), 10**6)
    assert lines.take(1)
    for _ in range(5):
        assert sum(len(one.text or "") for one in lines.take(4096)) < AHEAD_BYTES
    assert stream.given < 12 * AHEAD_BYTES
    assert threading.active_count() < 50


def _fill(stream: Endless, buffer: object, line: bytes) -> int:
    view = cast("memoryview", buffer)
    repeated = (line * 2)[stream.given % len(line) :][: len(view)]
    view[: len(repeated)] = repeated
    stream.given += len(repeated)
    return len(repeated)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
@pytest.mark.parametrize("verb", ["translate", "correct"])
def test_a_command_refuses_a_huge_line_and_goes_on(verb: str) -> None:
    """In a process of its own, whose memory is measured: of models, not of the line."""
    code = "import sys; sys.argv = ['saccade', sys.argv[1]]\nfrom saccade.cli.main import main\nmain()"
    huge = b"x" * 200_000_000
    found = subprocess.run(
        [sys.executable, "-c", f"{MEASURED}{code}", verb],
        input=b"one\n" + huge + b"\ncat\n",
        capture_output=True,
        check=False,
    )
    assert found.returncode == 1
    said = found.stderr.decode().splitlines()
    assert sum("line 2: 200,000,000 bytes" in line for line in said) == 1
    outputs = found.stdout.split(b"\n")
    assert len(outputs) == 4
    assert outputs[1] == (huge if verb == "correct" else b"")
    assert int(said[-1]) < 300_000_000


# Not getrusage: a process begins with the most that the one had which started it.
MEASURED = """
import atexit, re, sys
status = lambda: open("/proc/self/status").read()
atexit.register(lambda: print(re.search(r"VmHWM:\\s*(\\d+)", status())[1] + "000", file=sys.stderr))
"""

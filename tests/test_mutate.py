"""A short form of mutate.py, and that it would say something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mutate
from saccade import native

pytestmark = [
    pytest.mark.skipif(native.kernels() is None, reason=f"no C kernels: {native.why_not()}"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
]


def run(code: str) -> "subprocess.CompletedProcess[str]":
    """In a process that has used no kernels yet, as `mutate.py` needs it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(mutate.__file__).parent), *sys.path])}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_mutated_folders_and_corrupted_caches_end_in_one_clear_line() -> None:
    code = "import mutate; print(mutate.check(40, 30))"
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_corrupted_cache_is_seen_by_the_process_that_is_tested(tmp_path: Path) -> None:
    """Else all would be well whatever is in it."""
    code = f"""
import os, mutate
from pathlib import Path
room = Path({str(tmp_path)!r})
models, good = mutate.prepare(room)
def said():
    return mutate.run(["doctor"], {{"XDG_CACHE_HOME": str(good), "PATH": "/nowhere"}}).out
assert "compiled for this machine" in said()
assert any(file.name.startswith("packed-") for file in (good / "saccade").iterdir())
for file in (good / "saccade").iterdir():
    os.truncate(file, 100)
assert "no C compiler" in said()
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "ended",
    [
        mutate.Ended(-11, "", "", 0, 0),
        mutate.Ended(70, "", "", 0, 0),
        mutate.Ended(1, "", "saccade: KeyError('x'); --debug shows where\n", 0, 0),
        mutate.Ended(1, "", "saccade: one\nsaccade: two\n", 0, 0),
        mutate.Ended(1, "", "", 0, 0),
        mutate.Ended(0, "", "", 2 * 10**9, 0),
    ],
)
def test_a_bad_end_is_complained_about(ended: mutate.Ended) -> None:
    assert mutate.complaint(ended)


def test_a_clear_line_is_not() -> None:
    assert mutate.complaint(mutate.Ended(1, "", "saccade: config.json: damaged\n", 10**8, 1)) is None

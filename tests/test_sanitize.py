"""A short form of sanitize.py: random calls of the kernels, and that the sanitizers would say something."""

from pathlib import Path

import pytest

import sanitize
from saccade import native

pytestmark = [
    pytest.mark.skipif(native.kernels() is None, reason=f"no C kernels: {native.why_not()}"),
    pytest.mark.skipif(sanitize.runtime() is None, reason="the compiler has no sanitizers"),
]

TOO_SHORT = """
import numpy as np
logits, found = np.zeros((9, 50), np.float32), np.zeros(9, np.float32)
tokens = np.zeros((9, 5), np.int64)
native.needed().choose_best(logits.ctypes.data, 9, 50, 5, found.ctypes.data, tokens.ctypes.data, 1)
"""


def test_random_calls_leave_memory_and_arithmetic_in_order(tmp_path: Path) -> None:
    done = sanitize.run("import sanitize; sanitize.fuzz(300, 1)", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "300 calls" in done.stdout
    # The library that was tested is one with sanitizers: it would find a result that does not fit.
    done = sanitize.run(TOO_SHORT, tmp_path)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr

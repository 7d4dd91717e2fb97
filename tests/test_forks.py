"""A process that has used the kernels may fork: its children answer as it does, and so does it afterwards."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from saccade import native
from tiny import SENTENCES, write_tiny_model

pytestmark = [
    pytest.mark.skipif(native.kernels() is None, reason=f"no C kernels: {native.why_not()}"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
]

CODE = """
import multiprocessing, sys
import saccade
from saccade import native
from saccade.runtime.packing import Packed
import numpy as np

model = saccade.load(sys.argv[1])
layer = Packed.of(np.ones((2000, 500), np.float32), None, 16)
x = np.ones((100, 500), np.float32)
texts = sys.argv[3:] * 30

def work(_):
    return native.threads(), [answer.text for answer in model(texts)], float(layer(x).sum())

expected = work(0)
assert expected[0] == 2
if sys.argv[2] == "no pause":
    native.needed().end_threads = lambda: 0
with multiprocessing.get_context("fork").Pool(4) as pool:
    found = pool.map_async(work, range(8)).get(timeout=100)
assert all(one[1:] == expected[1:] for one in found)
assert work(0) == expected
print({one[0] for one in found})
"""


@pytest.mark.parametrize(("way", "threads"), [("pause", "{2}"), ("no pause", "{1}")])
def test_a_fork_pool_of_four_answers_after_the_parent_did(tmp_path: Path, way: str, threads: str) -> None:
    """Without a way to end the threads (an old OpenMP), children go on with one."""
    model = write_tiny_model(tmp_path / "model")
    environment = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONPATH": ":".join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", CODE, str(model), way, *SENTENCES],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == threads

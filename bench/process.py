"""One engine, one process, one line of JSON: two thread pools in one process would slow each other."""

import json
import os
import subprocess
import sys
from typing import Any

# glibc maps and unmaps large blocks at every use unless told to keep them. Saccade tells it so when it trains;
# here every engine gets the same, so that the comparison is of engines and not of allocators.
MALLOC = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
    "MALLOC_TOP_PAD_": "268435456",
}


class EngineError(Exception):
    """A measuring process ended without an answer."""


def measure_apart(module: str, *arguments: object, threads: int) -> dict[str, Any]:
    """Run `python -m module arguments` and return the JSON of its last line."""
    environment = os.environ | MALLOC | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    finished = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        reason = finished.stderr.strip().splitlines() or ["it said nothing"]
        raise EngineError(f"{module} ended with code {finished.returncode}: {reason[-1]}")
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return answer

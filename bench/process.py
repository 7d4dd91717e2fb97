"""One engine, one process, one line of JSON: two thread pools in one process would slow each other."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# glibc maps and unmaps large blocks at every use unless told to keep them. Saccade tells it so when it trains;
# there every engine gets the same, so that the comparison is of engines and not of allocators.
MALLOC = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
    "MALLOC_TOP_PAD_": "268435456",
    "MALLOC_ARENA_MAX": "1",
}
AS_IT_IS: Mapping[str, str] = {}
SACCADE = [sys.executable, "-c", "from saccade.cli.main import main; main()"]
"""The command `saccade`, also where it is not installed."""


class EngineError(Exception):
    """A measuring process ended without an answer."""


def measure_apart(
    module: str,
    *arguments: object,
    threads: int,
    environment: Mapping[str, str] = AS_IT_IS,
    python: Path | str = sys.executable,
    watched: bool = False,
) -> dict[str, Any]:
    """Run `python -m module arguments` and return the JSON of its last line; watched, its progress is seen."""
    finished = subprocess.run(
        [str(python), "-m", module, *map(str, arguments)],
        env=os.environ | environment | _threads(threads),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if watched else subprocess.PIPE,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise _failed(module, finished.returncode, finished.stderr)
    answer: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return answer


@dataclass(frozen=True)
class Timed:
    """A command from its start to its end."""

    seconds: float
    output: str


def time_command(
    command: Sequence[str], *, threads: int, given: Path | None = None, environment: Mapping[str, str] = AS_IT_IS
) -> Timed:
    """Run a whole command, with a file as its standard input, and look at the clock before and after."""
    settings = os.environ | environment | _threads(threads)
    with open(given or os.devnull, "rb") as file:
        began = time.perf_counter()
        finished = subprocess.run(command, env=settings, stdin=file, capture_output=True, check=False)
        seconds = time.perf_counter() - began
    if finished.returncode:
        raise _failed(" ".join(command[1:4]), finished.returncode, finished.stderr.decode(errors="replace"))
    return Timed(seconds, finished.stdout.decode("utf-8"))


def _threads(count: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(count), "MKL_NUM_THREADS": str(count)}


def _failed(what: str, code: int, said: str | None) -> EngineError:
    reason = (said or "").strip().splitlines() or ["it said nothing"]
    return EngineError(f"{what} ended with code {code}: {reason[-1]}")

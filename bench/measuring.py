"""What every measuring process of a contest does: read its arguments, and repeat short calls."""

import argparse
import os
import time
from collections.abc import Callable, Iterable

LEAST_SECONDS = 0.5
"""Short calls are repeated for at least so long."""


def read_arguments(sizes: Iterable[str], *own: str) -> argparse.Namespace:
    """The size, how many calls, and what an engine wants to know besides."""
    parser = argparse.ArgumentParser()
    parser.add_argument("size", choices=list(sizes))
    parser.add_argument("--calls", type=int, default=5)
    for name in own:
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    given.threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
    return given


def seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def repeat(measure: Callable[[], float], calls: int) -> list[float]:
    """After one measurement that is not counted, at least so many."""
    measure()
    found: list[float] = []
    began = time.perf_counter()
    while len(found) < calls or time.perf_counter() - began < LEAST_SECONDS:
        found.append(measure())
    return found

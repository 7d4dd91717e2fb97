"""What this machine can do at most: `python -m bench.limits` prints fp32 matmul, integer multiply-adds and memory speed
as a line of JSON."""

import ctypes
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import torch

SIDES = (2048, 3072, 4096)
VECTOR = 2**25
ROUNDS = 2_000_000
"""Of the integer loops: a few milliseconds."""


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """The fastest of several runs: a limit is what happens when nothing disturbs."""
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def matmul_gigaflops(side: int, repeats: int = 5) -> float:
    """Square fp32 matmul: 2 n³ operations."""
    one, other, out = torch.randn(side, side), torch.randn(side, side), torch.empty(side, side)
    return 2 * side**3 / best_seconds(lambda: torch.mm(one, other, out=out), repeats) / 1e9


def memory_gigabytes(repeats: int = 5) -> float:
    """c = a + b over vectors far larger than any cache: two are read and one is written."""
    one, other, out = torch.randn(VECTOR), torch.randn(VECTOR), torch.empty(VECTOR)
    return 3 * one.nbytes / best_seconds(lambda: torch.add(one, other, out=out), repeats) / 1e9


def integer_multiply_adds(threads: int, repeats: int = 9) -> dict[str, float]:
    """Billions a second, of 16-bit and of 8-bit numbers, in a C loop that touches no memory; 0 where it cannot be
    compiled. The names are those of `bench.roofline`."""
    library = _compiled()
    if library is None:
        return {"int16": 0.0, "int8": 0.0}
    found = {}
    with ThreadPoolExecutor(threads) as pool:
        for name, loop in (("int16", library.multiply_words), ("int8", library.multiply_bytes)):
            loop.argtypes, loop.restype = [ctypes.c_long], ctypes.c_longlong
            work = partial(_on_all_threads, pool, loop, threads)
            done, seconds = work(), best_seconds(work, repeats)
            found[name] = done / seconds / 1e9
    return found


def _on_all_threads(pool: ThreadPoolExecutor, loop: Callable[[int], int], threads: int) -> int:
    """How many were done together; a call into C leaves Python's lock to the others."""
    return sum(pool.map(loop, [ROUNDS] * threads))


def _compiled() -> ctypes.CDLL | None:
    compiler, source = shutil.which("cc"), Path(__file__).with_name("multiply_adds.c")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "multiply_adds.so"
        command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(path)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            return None
        return ctypes.CDLL(str(path))


def main() -> None:
    threads = int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads()))
    torch.set_num_threads(threads)
    limits = {
        "gigaflops": max(matmul_gigaflops(side) for side in SIDES),
        "gigabytes": memory_gigabytes(),
        **integer_multiply_adds(threads),
        "threads": threads,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
    }
    print(json.dumps(limits))


if __name__ == "__main__":
    main()

"""What this machine can do at most: `python -m bench.limits` prints fp32 matmul and memory speed as a line of JSON."""

import json
import os
import time
from collections.abc import Callable

import torch

SIDES = (2048, 3072, 4096)
VECTOR = 2**25


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


def main() -> None:
    threads = int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads()))
    torch.set_num_threads(threads)
    limits = {
        "gigaflops": max(matmul_gigaflops(side) for side in SIDES),
        "gigabytes": memory_gigabytes(),
        "threads": threads,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
    }
    print(json.dumps(limits))


if __name__ == "__main__":
    main()

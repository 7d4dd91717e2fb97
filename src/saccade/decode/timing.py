"""How long a linear layer takes in each packing, measured in PyTorch, which runs some of them."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from saccade.decode.pack import packer
from saccade.decode.packed import How

INPUTS, OUTPUTS = 512, 2048
ROWS = (1, 5, 32)
"""One sentence, one sentence's beams, a batch."""
SECONDS = 0.03
"""Time given to each packing and number of rows."""


def time_packings(hows: Sequence[How]) -> dict[How, list[float]]:
    """Microseconds of one layer on one thread at each number of rows, for those packings that this machine has."""
    found: dict[How, list[float]] = {}
    # A training measures when it first validates; its random numbers must be the same as in one that remembers.
    with torch.random.fork_rng(devices=[]), torch.inference_mode(), _one_thread():
        linear = nn.Linear(INPUTS, OUTPUTS)
        for how in hows:
            try:
                layer = linear if how == "exact" else packer(how)(linear)
                found[how] = [_microseconds(layer, rows) for rows in ROWS]
            except RuntimeError:  # an operator this build of PyTorch does not have
                continue
    return found


@contextmanager
def _one_thread() -> Iterator[None]:
    """On a busy machine several threads would measure how long they wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _microseconds(layer: nn.Module, rows: int) -> float:
    """The fastest single call: whatever else the machine does only ever makes one slower."""
    x = torch.randn(rows, INPUTS)
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        start = time.perf_counter()
        layer(x)
        best = min(best, time.perf_counter() - start)
    return round(best * 1e6, 1)

"""Which packing is fastest here: a short measurement, remembered for this machine."""

import json
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import nn

from saccade import native
from saccade.decode.pack import NEAR_LOSSLESS, How, packer

INPUTS, OUTPUTS = 512, 2048
ROWS = (1, 5, 32)
"""One sentence, one sentence's beams, a batch."""
SECONDS = 0.03
"""Time given to each packing and number of rows."""
STACKS_GAIN = 1.5
"""What running a whole stack in one call gains at least, beside its faster layers (`python -m bench translation`)."""


@dataclass(frozen=True)
class Measurement:
    """Microseconds of one linear layer on one thread, per packing, at each number of rows."""

    microseconds: dict[How, list[float]]

    @property
    def fastest(self) -> How:
        """Every number of rows counts alike. The C kernels, which also run whole stacks, lose only by a lot."""
        exact = self.microseconds["exact"]

        def relative(how: How) -> float:
            slower = 1.0 if how == "int16" else STACKS_GAIN
            return slower * sum(own / plain for own, plain in zip(self.microseconds[how], exact, strict=True))

        return min((how for how in NEAR_LOSSLESS if how in self.microseconds), key=relative)


@cache
def fastest() -> How:
    """The near-lossless packing that is fastest on this machine."""
    return remembered().fastest


def remembered() -> Measurement:
    """The measurement made earlier on this machine with this software, or a new one."""
    try:
        stored = json.loads(memory_path().read_text())
        if stored["about"] == _about():
            return Measurement(stored["microseconds"])
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        pass
    return measure()


def measure(hows: Sequence[How] = ("exact", "fp16", "int16", "int8")) -> Measurement:
    """Measure now, and remember it where that is possible."""
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
    measurement = Measurement(found)
    try:
        memory_path().parent.mkdir(parents=True, exist_ok=True)
        memory_path().write_text(json.dumps({"about": _about(), "microseconds": found}))
    except (OSError, RuntimeError):
        pass  # then it is measured again next time
    return measurement


@contextmanager
def _one_thread() -> Iterator[None]:
    """On a busy machine several threads would measure how long they wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def memory_path() -> Path:
    return native.cache_folder() / "packing.json"


def _microseconds(layer: nn.Module, rows: int) -> float:
    """The fastest single call: whatever else the machine does only ever makes one slower."""
    x = torch.randn(rows, INPUTS)
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        start = time.perf_counter()
        layer(x)
        best = min(best, time.perf_counter() - start)
    return round(best * 1e6, 1)


def _about() -> list[str]:
    """What a measurement holds for."""
    return [platform.node(), platform.machine(), torch.__version__, native.identity()]

"""Which packing is fastest here: a short measurement, remembered for this machine."""

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from saccade import native
from saccade.decode.packed import NEAR_LOSSLESS, How

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
    from saccade.decode.timing import time_packings  # imports PyTorch, for which who remembers need not wait

    found = time_packings(hows)
    try:
        memory_path().parent.mkdir(parents=True, exist_ok=True)
        memory_path().write_text(json.dumps({"about": _about(), "microseconds": found}))
    except (OSError, RuntimeError):
        pass  # then it is measured again next time
    return Measurement(found)


def memory_path() -> Path:
    return native.cache_folder() / "packing.json"


def _about() -> list[str]:
    """What a measurement holds for."""
    return [platform.node(), platform.machine(), version("torch"), native.identity()]

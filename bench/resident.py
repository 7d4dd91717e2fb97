"""The memory of this process, as Linux counts it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Resident:
    """Megabytes in memory: now, and at most since the process began."""

    now: float
    peak: float


def resident() -> Resident:
    # Not ru_maxrss: a new process inherits that from the one that started it.
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kibibytes = {key: int(rest.split()[0]) for key, _, rest in (line.partition(":") for line in lines) if "kB" in rest}
    return Resident(now=kibibytes["VmRSS"] * 1024 / 1e6, peak=kibibytes["VmHWM"] * 1024 / 1e6)

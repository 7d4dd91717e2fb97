"""What every comparison is told."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True)
class Settings:
    numbers: ClassVar[dict[str, str]] = {
        "repeats": "rounds; in each, every engine is measured once, in turn",
        "warmup": "steps before the clock starts",
        "steps": "steps on the clock",
        "threads": "threads of every engine",
    }

    out: Path = Path("bench/results")
    data: Path | None = None
    repeats: int = 5
    warmup: int = 3
    steps: int = 12
    threads: int = 2

"""What every comparison is told."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True)
class Settings:
    numbers: ClassVar[dict[str, str]] = {
        "repeats": "rounds; in each, every engine is measured once, in turn (5; startup 7; characters 3)",
        "warmup": "training: steps before the clock starts",
        "steps": "training: steps on the clock",
        "calls": "translation, gpt, bert: calls on the clock in each round, at least",
        "sentences": "file: sentences in it",
        "tokens": "memory: tokens that attend to each other",
        "every": "time-to-bleu: steps of 2,048 tokens between two looks at BLEU",
        "most": "time-to-bleu: training seconds after which an engine gives up",
        "threads": "threads of every engine",
    }

    out: Path = Path("bench/results")
    data: Path | None = None
    joeynmt: Path | None = None
    """The Python of an environment that has JoeyNMT, whose requirements do not go with the others'."""
    tests: bool = False
    """Whether test parts are opened."""
    repeats: int | None = None
    warmup: int = 3
    steps: int = 12
    calls: int = 5
    sentences: int = 2000
    tokens: int = 65_536
    every: int = 25
    most: int = 4000
    threads: int = 2

    def rounds(self, usual: int = 5) -> int:
        return self.repeats or usual

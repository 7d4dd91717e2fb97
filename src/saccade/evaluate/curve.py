"""Accuracy against the number of examples: the share of right answers, with its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

NORMAL_95 = 1.959964
"""Standard deviations to each side that hold 95 % of a normal distribution."""


@dataclass(frozen=True)
class Point:
    """Right answers for one number of examples."""

    k: int
    right: int
    asked: int
    examples: float
    """Examples a prompt had on average: fewer than k where k did not fit."""

    @property
    def accuracy(self) -> float:
        """In percent."""
        return 100 * self.right / self.asked

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval, in percent."""
        low, high = wilson(self.right, self.asked)
        return 100 * low, 100 * high

    def record(self) -> dict[str, Any]:
        low, high = self.interval
        figures = {"accuracy": self.accuracy, "low": low, "high": high, "examples": self.examples}
        return {"k": self.k, "right": self.right, "asked": self.asked} | {n: round(f, 2) for n, f in figures.items()}


def wilson(right: int, asked: int, z: float = NORMAL_95) -> tuple[float, float]:
    """Wilson's interval for a share: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n) (Wilson 1927).

    Unlike p ± z √(p(1-p)/n) it stays within 0 and 1, and has a width even if all answers or none are right.
    """
    share, scale = right / asked, 1 + z * z / asked
    middle = (share + z * z / (2 * asked)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / asked + z * z / (4 * asked * asked))
    return max(0.0, middle - half), min(1.0, middle + half)


def pooled(points: Sequence[Point]) -> Point:
    """All questions together; where each kind was asked as often, their mean."""
    asked = sum(point.asked for point in points)
    examples = sum(point.examples * point.asked for point in points) / asked
    return Point(points[0].k, sum(point.right for point in points), asked, examples)

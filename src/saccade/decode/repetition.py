"""Texts that go round in circles, as weak decoders write them: how often tokens repeat, and the text without that."""

from collections.abc import Sequence
from typing import NamedTuple

LONGEST_PERIOD = 16
"""Tokens of the longest stretch whose repetition is noticed."""
SUSPECT = 2.6
"""Times a stretch is written in a row that make a loop; "las ocho de las ocho de las ocho" is 2.67 times."""


class Loop(NamedTuple):
    """A stretch of tokens that is written several times in a row."""

    times: float
    """The last time may be incomplete."""
    start: int
    period: int
    """Tokens of one time."""

    @property
    def stop(self) -> int:
        return self.start + round(self.times * self.period)


def worst_loop(tokens: Sequence[int]) -> Loop:
    """The stretch that is written most often in a row."""
    worst = Loop(1.0, 0, max(1, len(tokens)))
    for period in range(1, min(LONGEST_PERIOD, len(tokens) // 2) + 1):
        run = 0
        for place in range(period, len(tokens)):
            run = run + 1 if tokens[place] == tokens[place - period] else 0
            times = 1 + run / period
            # A single token twice is "bye bye"; only longer stretches count before they are whole again.
            if times > worst.times and run > 1:
                worst = Loop(times, place - run - period + 1, period)
    return worst


def repeats(written: Sequence[int], read: Sequence[int] = ()) -> bool:
    """Whether a text goes in circles more than what was read did ("no, no, no!")."""
    return worst_loop(written).times >= max(SUSPECT, worst_loop(read).times + 1)


def without_loops(tokens: Sequence[int], read: Sequence[int] = ()) -> list[int]:
    """The text with every loop written once."""
    left = list(tokens)
    while repeats(left, read):
        loop = worst_loop(left)
        del left[loop.start + loop.period : loop.stop]
    return left

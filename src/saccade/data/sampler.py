"""The order of training examples: shuffled, bucketed by length, resumable at the exact next batch."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np


class Batches(Protocol):
    """The interface for the training loop: endless batches of example numbers, and a position to save and restore."""

    def __next__(self) -> np.ndarray: ...

    @property
    def progress(self) -> float:
        """Epochs done, as a fraction."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def plan_epoch(source: np.ndarray, target: np.ndarray, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The batches of one epoch, a pure function of its arguments.

    Examples are shuffled, then sorted by length with ties in shuffled order, cut so that a batch
    holds at most `budget` padded target tokens (and as many source tokens), and the batches shuffled.
    Among equal target lengths the sources rise and fall in turn, so that no batch spans a jump.
    """
    random = np.random.default_rng([seed, epoch])
    shuffled = random.permutation(len(source))
    winding = np.where(target % 2, source, -source)
    order = shuffled[np.lexsort((winding[shuffled], target[shuffled]))]
    source, target = source[order], target[order]
    batches, start = [], 0
    while start < len(order):
        stop = _fill(source, target, start, budget)
        batches.append(order[start:stop])
        start = stop
    random.shuffle(batches)
    return batches


def _fill(source: np.ndarray, target: np.ndarray, start: int, budget: int) -> int:
    """Where the batch that begins at `start` ends."""
    reach = min(len(source), start + budget)
    widest = np.maximum(np.maximum.accumulate(source[start:reach]), np.maximum.accumulate(target[start:reach]))
    padded = widest * np.arange(1, reach - start + 1)
    return start + max(1, int(np.searchsorted(padded, budget, side="right")))


class Sampler:
    """Endless batches of example numbers; its whole state is which batch comes next.

    The examples may be several copies of the data; `starts` says where each copy begins. Epoch e goes through copy e
    modulo their number.
    """

    def __init__(
        self, source: np.ndarray, target: np.ndarray, *, budget: int, seed: int, starts: Sequence[int] = (0,)
    ) -> None:
        self.source, self.target, self.budget, self.seed = source, target, budget, seed
        self.bounds = [*starts, len(source)]
        self.epoch, self.next = 0, 0
        self.batches = self._plan()

    def __iter__(self) -> Iterator[np.ndarray]:
        return self

    def __next__(self) -> np.ndarray:
        if self.next == len(self.batches):
            self.epoch, self.next = self.epoch + 1, 0
            self.batches = self._plan()
        self.next += 1
        return self.batches[self.next - 1]

    @property
    def progress(self) -> float:
        """Epochs done, as a fraction."""
        return self.epoch + self.next / len(self.batches)

    def fill(self) -> tuple[float, float]:
        """The share of this epoch's source and target positions that are real: the rest is padding."""
        shares = []
        for sizes in (self.source, self.target):
            padded = sum(len(batch) * int(sizes[batch].max()) for batch in self.batches)
            shares.append(sum(int(sizes[batch].sum()) for batch in self.batches) / padded)
        return shares[0], shares[1]

    def epochs(self, batches: int) -> list[tuple[int, float]]:
        """What so many batches go through: copy and share of it, epoch after epoch. Only this epoch's batches are
        counted; those of other copies are estimated by their target tokens."""
        tokens = [int(self.target[start:stop].sum()) for start, stop in pairwise(self.bounds)]
        here = tokens[self.epoch % len(tokens)]
        found: list[tuple[int, float]] = []
        left = float(batches)
        while left > 0:
            copy = len(found) % len(tokens)
            epoch = len(self.batches) * tokens[copy] / here
            found.append((copy, min(1.0, left / epoch)))
            left -= epoch
        return found

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "next": self.next}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.next = int(state["epoch"]), int(state["next"])
        self.batches = self._plan()

    def _plan(self) -> list[np.ndarray]:
        copy = self.epoch % (len(self.bounds) - 1)
        start, stop = self.bounds[copy : copy + 2]
        source, target = self.source[start:stop], self.target[start:stop]
        return [start + batch for batch in plan_epoch(source, target, self.budget, self.seed, self.epoch)]

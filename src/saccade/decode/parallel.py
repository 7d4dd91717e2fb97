"""Batches side by side, a thread each: while one is between two steps in Python, the others compute."""

import contextvars
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from saccade import native

Batch = TypeVar("Batch")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Batch], Result], batches: Sequence[Batch]) -> Iterator[Result]:
    """The result of every batch, in order. Few batches, or no C kernels, go one after the other on all threads."""
    threads = native.threads()
    if native.kernels() is None or threads == 1 or len(batches) < 2 * threads:
        yield from map(work, batches)
        return

    def alone(batch: Batch) -> Result:
        with native.single_threaded():
            return work(batch)

    with ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(contextvars.copy_context().run, alone, batch) for batch in batches]
        try:
            for future in waiting:
                yield future.result()
        finally:
            for future in waiting:
                future.cancel()

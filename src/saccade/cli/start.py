"""A command's start: what is imported and loaded stays to its end, so nobody looks for garbage in it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def starting() -> Iterator[None]:
    """Python's collector rests in here, and afterwards leaves alone what was made in here: a quarter of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

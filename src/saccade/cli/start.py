"""The start of a command, without garbage collection: what it imports and loads stays until the end."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.runtime.contract import How


@contextmanager
def starting() -> Iterator[None]:
    """Disables the garbage collector, then freezes the objects made here. Saves a quarter of the start time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def load_model(model: str, how: "How | None") -> Any:
    """A model by name or folder. If the arithmetic that was asked for is not to be had, that is said."""
    with starting():
        from saccade.pipelines.load import load

        pipeline = load(model, how)
    choice = pipeline.choice
    if how is not None and choice.how != how:
        print(f"saccade: {how} is not to be had here: {choice.why}; {choice.engine}, {choice.how}", file=sys.stderr)
    return pipeline

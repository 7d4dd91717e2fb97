"""`saccade.watch`: hear, and perhaps change, what a model looks at while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from saccade.runtime.watch import watching
from saccade.sites import Edit, Heard


@contextmanager
def watch(model: object, edit: Edit | None = None) -> Iterator[Heard[Any, Any]]:
    """Hear every attention of a loaded model, or of a PyTorch model, inside the `with` block.

    A loaded model answers in exact float32 while it is watched; `edit` switches off heads or hides positions.
    """
    if hasattr(model, "named_modules"):  # a PyTorch module, which tells its own watcher
        from saccade.nn.watch import watch as watch_modules

        with watch_modules(model, edit) as tensors:  # type: ignore[arg-type]
            yield tensors
        return
    with watching(edit) as heard:
        yield heard

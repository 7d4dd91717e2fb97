"""`saccade.watch`: hear, and perhaps change, what a model looks at while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager

from saccade.runtime.watch import Edit, Looks, watching


@contextmanager
def watch(model: object, edit: Edit | None = None) -> Iterator[Looks]:
    """Hear every attention of a loaded model, or of a PyTorch model, inside the `with` block.

    A loaded model answers in exact float32 while it is watched; `edit` switches off heads or hides positions.
    """
    if hasattr(model, "named_modules"):  # a PyTorch module, which tells its own watcher
        from saccade.nn.watch import watch as watch_modules

        if edit is not None:
            raise ValueError("PyTorch models cannot be edited while they run; load the model folder instead")
        with watch_modules(model) as looks:  # type: ignore[arg-type]
            yield looks  # type: ignore[misc]
        return
    with watching(edit) as heard:
        yield heard

"""`saccade.watch`: hear, and perhaps change, what a model looks at while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from saccade.errors import WrongUse, did_you_mean
from saccade.runtime.watch import watching
from saccade.sites import Edit, Heard


@contextmanager
def watch(model: object, edit: Edit | None = None) -> Iterator[Heard[Any, Any]]:
    """Hear every attention of a loaded model, or of a PyTorch module, inside the `with` block.

    A loaded model answers in exact float32 while it is watched; `edit` switches off heads or hides positions. A PyTorch
    module is heard alone; of loaded models, every one that answers inside the block.

    >>> translator = saccade.load("en-es")
    >>> with saccade.watch(translator, saccade.Edit(without_source=[1])) as looks:
    ...     text = translator("this cat is very large").text
    >>> {look.kind for look in looks} == {"encoder", "decoder", "cross"}
    True
    """
    if hasattr(model, "named_modules"):  # a PyTorch module, which tells its own watcher
        from saccade.nn.watch import watch as watch_modules

        with watch_modules(model, edit) as tensors:  # type: ignore[arg-type]
            yield tensors
        _insist_on_heads(tensors)
        return
    if isinstance(model, str | bytes) or not (callable(model) or hasattr(model, "choice")):
        raise WrongUse(f"{type(model).__name__} is not a loaded model: watch what saccade.load(…) returns")
    with watching(edit) as arrays:
        yield arrays
    _insist_on_heads(arrays)


def _insist_on_heads(heard: Heard[Any, Any]) -> None:
    """A head that is not there changes nothing, which its name would hide: layers are known once they have looked."""
    heads = {look.name: look.weights_BNTS.shape[1] for look in heard}
    for name in heard.edit.without_layers if heads else ():
        if name not in heads:
            raise WrongUse(f"no layer {name!r} looked{did_you_mean(name, heads)}")
    for name, head in heard.edit.without_heads if heads else ():
        if name not in heads:
            raise WrongUse(f"no layer {name!r} looked{did_you_mean(name, heads)}")
        if not 0 <= head < heads[name]:
            raise WrongUse(f"{name} has {heads[name]} heads, counted from 0; there is no head {head}")

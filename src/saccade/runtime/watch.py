"""Looking is listening: while somebody watches, every attention of a plain runtime tells what it looked at, and may be
told to look elsewhere.

Nothing is stored on models. A context variable carries the watcher, so that two threads may watch at once.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from saccade.runtime.contract import Booleans, Floats
from saccade.sites import Edit, Heard, Look, Site


@dataclass
class ArraysHeard(Heard[Look[Floats], Floats]):
    """What was heard of a runtime."""

    inside: str | None = None
    """The layer whose arrays are kept, not only its weights."""
    arrays: list[Mapping[str, Floats]] = field(default_factory=list)
    """Of that layer, call by call: queries, keys, scores and what else it computes, by their names."""

    def _stack(self, weights: list[Floats]) -> Floats:
        return np.stack(weights) if weights else np.zeros((0, 1, 1, 1, 1), dtype=np.float32)


_watcher: ContextVar[ArraysHeard | None] = ContextVar("watcher", default=None)


def watcher() -> ArraysHeard | None:
    """Who watches here, if anybody does."""
    return _watcher.get()


def watched() -> bool:
    return _watcher.get() is not None


def edit_here() -> Edit:
    """What whoever watches here changes."""
    heard = watcher()
    return Edit() if heard is None else heard.edit


@contextmanager
def watching(edit: Edit | None = None, inside: str | None = None) -> Iterator[ArraysHeard]:
    """Hear every attention that a plain runtime computes inside the `with` block; of the layer `inside`, all arrays."""
    heard = ArraysHeard(edit or Edit(), inside=inside)
    token = _watcher.set(heard)
    try:
        yield heard
    finally:
        _watcher.reset(token)


def edited_mask(site: Site, allowed: Booleans | None, keys: int) -> Booleans | None:
    """Which keys are allowed, without those that the watcher hides; [S] or what `allowed` is."""
    heard = watcher()
    if heard is None or not (hidden := heard.edit.hidden(site, keys)):
        return allowed
    visible_S = np.ones(keys, dtype=bool)
    visible_S[hidden] = False
    return visible_S if allowed is None else allowed & visible_S


def heads_off(name: str, heads: int) -> list[int]:
    """The heads of a layer that the watcher switches off."""
    heard = watcher()
    return [] if heard is None else heard.edit.heads_off(name, heads)


def tell(name: str, site: Site, weights_BNTS: Floats) -> None:
    """Called by every attention."""
    if (heard := watcher()) is not None:
        heard.looks.append(Look(name, site, weights_BNTS))


def tell_arrays(name: str, arrays: Mapping[str, Floats]) -> None:
    """What a layer computed on its way; kept if somebody wants to look inside it."""
    if (heard := watcher()) is not None and heard.inside == name:
        heard.arrays.append(arrays)

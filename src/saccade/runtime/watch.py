"""Looking is listening: while somebody watches, every attention of a plain runtime tells what it looked at, and may be
told to look elsewhere.

Nothing is stored on models. A context variable carries the watcher, so that two threads may watch at once.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from saccade.runtime.contract import Booleans, Floats

Kind = Literal["encoder", "decoder", "cross"]
"""Who looks at what: the source at itself, the target at its past, the target at the source."""


@dataclass(frozen=True)
class Look:
    """What one attention layer did in one call."""

    name: str
    """The layer's name in the model, such as `decoder.blocks.2.cross_attention`."""
    kind: Kind
    weights_BNTS: Floats
    """Every head, nothing averaged."""


@dataclass(frozen=True)
class Edit:
    """What a watcher changes while the model runs."""

    without_heads: Collection[tuple[str, int]] = ()
    """Layer names and heads, counted from 0, whose output is zero."""
    without_source: Collection[int] = ()
    """Source positions that nobody may look at."""
    without_target: Collection[int] = ()
    """Target positions that nobody may look at."""

    def hidden(self, kind: Kind) -> Collection[int]:
        """The key positions that are hidden from looks of this kind."""
        return self.without_target if kind == "decoder" else self.without_source


@dataclass
class Looks:
    """All looks heard, in the order they happened."""

    edit: Edit = Edit()
    heard: list[Look] = field(default_factory=list)

    def of(self, kind: Kind) -> Floats:
        """The weights of one kind, layers stacked: [L, B, N, T, S]; no layers if none looked."""
        heard = [look.weights_BNTS for look in self.heard if look.kind == kind]
        return np.stack(heard) if heard else np.zeros((0, 1, 1, 1, 1), dtype=np.float32)


_watcher: ContextVar[Looks | None] = ContextVar("watcher", default=None)


def watcher() -> Looks | None:
    """Who watches here, if anybody does."""
    return _watcher.get()


@contextmanager
def watching(edit: Edit | None = None) -> Iterator[Looks]:
    """Hear every attention that a plain runtime computes inside the `with` block."""
    looks = Looks(edit or Edit())
    token = _watcher.set(looks)
    try:
        yield looks
    finally:
        _watcher.reset(token)


def allowed_by(looks: Looks, kind: Kind, keys: int) -> Booleans | None:
    """Which keys the watcher leaves visible: [S]; None where it hides none."""
    hidden = [place for place in looks.edit.hidden(kind) if place < keys]
    if not hidden:
        return None
    allowed_S = np.ones(keys, dtype=bool)
    allowed_S[hidden] = False
    return allowed_S

"""Looking is listening: while a watcher is present, every attention tells it what it looked at, and may be told to look
elsewhere.

Nothing is stored on modules and nothing changes in the model's own path: the weights a watcher
hears are computed beside it, by the oracle, from the same queries and keys.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from saccade.nn.masks import Keys, Mask
from saccade.sites import Edit, Heard, Look, Site


class Sited(Protocol):
    """A module that attends, and says what it looks at."""

    site: Site


@dataclass(frozen=True)
class TensorLook(Look[Tensor]):
    """What one attention layer did in one call, and what it did it from."""

    queries: Tensor
    keys: Tensor
    values: Tensor


class TensorsHeard(Heard[TensorLook, Tensor]):
    """What was heard of PyTorch modules."""

    def _stack(self, weights: list[Tensor]) -> Tensor:
        return torch.stack(weights) if weights else torch.zeros(0, 1, 1, 1, 1)


@dataclass(frozen=True)
class _Watcher:
    names: dict[int, str]
    """Of the modules of the model that is watched, by their identity."""
    heard: TensorsHeard
    gradients: bool = False
    """What is heard stays part of the computation: a loss may be made of it."""


# A context variable rather than an attribute of the model: two threads may watch one model at once.
_watcher: ContextVar[_Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watch(model: nn.Module, edit: Edit | None = None, *, gradients: bool = False) -> Iterator[TensorsHeard]:
    """Hear every attention of `model` inside the `with` block; `edit` switches off heads or hides positions. With
    `gradients` a loss may be made of what is heard."""
    heard = TensorsHeard(edit or Edit())
    names = {id(module): name for name, module in model.named_modules()}
    token = _watcher.set(_Watcher(names, heard, gradients))
    try:
        yield heard
    finally:
        _watcher.reset(token)


def _watching(module: Sited) -> tuple[str, TensorsHeard] | None:
    """The module's name and who hears it, if somebody watches the model it belongs to."""
    watcher = _watcher.get()
    if watcher is None or id(module) not in watcher.names:
        return None
    return watcher.names[id(module)], watcher.heard


def edited_mask(module: Sited, mask: Mask | None, k: Tensor) -> Mask | None:
    """The mask without the keys that the watcher hides."""
    found = _watching(module)
    if found is None or not (hidden := found[1].edit.hidden(module.site, k.shape[-2])):
        return mask
    visible_1S = torch.ones(1, k.shape[-2], dtype=torch.bool, device=k.device)
    visible_1S[:, hidden] = False
    return Keys(visible_1S) if mask is None else mask & Keys(visible_1S)


def edited_heads(module: Sited, context_BNTH: Tensor) -> Tensor:
    """The context without the heads that the watcher switches off."""
    found = _watching(module)
    if found is None or not (off := found[1].edit.heads_off(found[0], context_BNTH.shape[1])):
        return context_BNTH
    heads_N1 = torch.zeros(context_BNTH.shape[1], 1, 1, dtype=torch.bool, device=context_BNTH.device)
    heads_N1[off] = True
    return context_BNTH.masked_fill(heads_N1, 0.0)


def tell(module: Sited, q: Tensor, k: Tensor, v: Tensor, weights: Callable[[], Tensor]) -> None:
    """Called by every attention; computes the weights only if someone watches the model it belongs to."""
    if (found := _watching(module)) is None:
        return
    name, heard = found
    watcher = _watcher.get()
    if watcher is not None and watcher.gradients:
        heard.looks.append(TensorLook(name, module.site, weights(), q, k, v))
        return
    with torch.no_grad():
        parts = (part.detach() for part in (weights(), q, k, v))
        heard.looks.append(TensorLook(name, module.site, *parts))

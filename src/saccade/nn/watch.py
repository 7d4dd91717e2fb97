"""Looking is listening: while a watcher is present, every attention tells it what it looked at.

Nothing is stored on modules and nothing changes in the model's own path: the weights a watcher
hears are computed beside it, by the oracle, from the same queries and keys.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class TensorLook:
    """What one attention layer did in one call."""

    name: str
    """The layer's full name, such as `decoder.blocks.2.cross_attention`."""
    weights: Tensor
    """[B, N, T, S]: every head, nothing averaged."""
    queries: Tensor
    keys: Tensor
    values: Tensor

    @property
    def kind(self) -> str:
        """`cross`, `encoder` (self-attention over the source) or `decoder` (over the target)."""
        if "cross" in self.name:
            return "cross"
        return "encoder" if self.name.startswith("encoder") else "decoder"


@dataclass
class TensorLooks:
    """All looks heard, in the order they happened."""

    names: dict[int, str]
    heard: list[TensorLook] = field(default_factory=list)

    def __iter__(self) -> Iterator[TensorLook]:
        return iter(self.heard)

    def __len__(self) -> int:
        return len(self.heard)

    def of(self, kind: str) -> Tensor:
        """The weights of one kind, layers stacked: [L, B, N, T, S]; no layers if none looked."""
        heard = [look.weights for look in self.heard if look.kind == kind]
        return torch.stack(heard) if heard else torch.zeros(0, 1, 1, 1, 1)

    @property
    def cross(self) -> Tensor:
        return self.of("cross")

    @property
    def encoder(self) -> Tensor:
        return self.of("encoder")

    @property
    def decoder(self) -> Tensor:
        return self.of("decoder")


# A context variable rather than an attribute of the model: two threads may watch one model at once.
_watcher: ContextVar[TensorLooks | None] = ContextVar("watcher", default=None)


@contextmanager
def watch(model: nn.Module) -> Iterator[TensorLooks]:
    """Hear every attention of `model` inside the `with` block."""
    looks = TensorLooks({id(module): name for name, module in model.named_modules()})
    token = _watcher.set(looks)
    try:
        yield looks
    finally:
        _watcher.reset(token)


def tell(site: nn.Module, q: Tensor, k: Tensor, v: Tensor, weights: Callable[[], Tensor]) -> None:
    """Called by every attention; computes the weights only if someone watches the model it belongs to."""
    looks = _watcher.get()
    if looks is None or id(site) not in looks.names:
        return
    with torch.no_grad():
        looks.heard.append(TensorLook(looks.names[id(site)], weights().detach(), q.detach(), k.detach(), v.detach()))

"""Dropout with cheap random numbers (Srivastava et al. 2014), and in one pass with the sum that follows it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from saccade import native

_generator: ContextVar[torch.Generator | None] = ContextVar("generator", default=None)


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """What this thread of the program drops depends on the seed alone, whatever other threads draw meanwhile."""
    token = _generator.set(torch.Generator().manual_seed(seed))
    try:
        yield
    finally:
        _generator.reset(token)


def drawn_again() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Contexts for computing something now and once more later: the second time draws what the first one drew."""
    generator = _generator.get()
    if generator is None:  # PyTorch's own, which its checkpointing restores
        return nullcontext(), nullcontext()
    return nullcontext(), _drawn_from_state(generator.get_state())


@contextmanager
def _drawn_from_state(state: Tensor) -> Iterator[None]:
    token = _generator.set(torch.Generator().set_state(state))
    try:
        yield
    finally:
        _generator.reset(token)


class Dropout(nn.Module):
    """Zero a share `p` of the numbers in training and scale the rest by 1 / (1 - p).

    The same in distribution as `nn.Dropout`, which on a CPU draws one random number per element, one after the
    other. Here one 64-bit draw decides four elements, 16 bits each, so p is met to within 1/65536.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if _native(x):
            dropped: Tensor = _Dropped.apply(None, x, self.p)  # type: ignore[no-untyped-call]
            return dropped
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None, generator=_generator.get())
        bits = draws.to(x.device).view(torch.int16)[: x.numel()].view(x.shape)
        kept = bits >= round(self.p * 2**16) - 2**15
        return x * (kept.to(x.dtype) / (1 - self.p))

    def add(self, x: Tensor, f: Tensor) -> Tensor:
        """x + dropout(f), in the kind of numbers that x has."""
        f = f.to(x.dtype)
        if not self.training or self.p == 0 or not _native(x, f):
            plain: Tensor = x + self(f)
            return plain
        total: Tensor = _Dropped.apply(x, f, self.p)  # type: ignore[no-untyped-call]
        return total

    def extra_repr(self) -> str:
        return f"p={self.p}"


class TokenDropout(nn.Module):
    """Put `mask` in place of a share `p` of the tokens in training, so that no word is relied on alone (Iyyer et al.
    2015). Ids below `first` are marks, and stay."""

    def __init__(self, p: float, mask: int, first: int) -> None:
        super().__init__()
        self.p, self.mask, self.first = p, mask, first

    def forward(self, tokens_BT: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return tokens_BT
        draws_BT = torch.rand(tokens_BT.shape, generator=_generator.get()).to(tokens_BT.device)
        return tokens_BT.masked_fill((draws_BT < self.p) & (tokens_BT >= self.first), self.mask)


class _Dropped(torch.autograd.Function):
    """x + dropout(f) by the C kernel. What was dropped is not stored: the same seed drops the same again."""

    @staticmethod
    def forward(context: Any, x: Tensor | None, f: Tensor, p: float) -> Tensor:
        context.seed, context.p = int(torch.randint(2**62, (), generator=_generator.get())), p
        return _run(x, f, context.seed, p)

    @staticmethod
    def backward(context: Any, d_total: Tensor) -> tuple[Tensor | None, Tensor, None]:
        d_x = d_total if context.needs_input_grad[0] else None
        return d_x, _run(None, d_total, context.seed, context.p), None


def _run(x: Tensor | None, f: Tensor, seed: int, p: float) -> Tensor:
    x, f = None if x is None else x.contiguous(), f.contiguous()
    total = torch.empty_like(f)
    native.needed().add_dropped(
        *(None if x is None else x.data_ptr(), f.data_ptr(), total.data_ptr(), f.numel()),
        *(seed, round(p * 2**16), 1 / (1 - p), torch.get_num_threads()),
    )
    return total


def _native(*tensors: Tensor) -> bool:
    return native.kernels() is not None and all(t.device.type == "cpu" and t.dtype == torch.float32 for t in tensors)

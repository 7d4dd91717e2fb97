"""Heads of queries, keys and values taken apart and turned by their positions in one pass over them, on a CPU.

Written out in PyTorch (`multihead.py`, `rotary.py`) the same takes about fifteen passes, forward and backward, an
eighth of a training step in bfloat16. Scores are computed in float32 (`attention.py`), so float32 is what comes out.
"""

from collections.abc import Sequence
from ctypes import c_int64
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade import native
from saccade.nn.rotary import Rotary


class Part(NamedTuple):
    """So many heads of a projection, side by side; `turned`: by their positions."""

    heads: int
    turned: bool = False


def splits_at_once(x_BTE: Tensor, start: int | Tensor, head_width: int) -> bool:
    """Whether `split_heads` can: in training, on a CPU with kernels, all rows at the same positions."""
    return (
        x_BTE.requires_grad
        and isinstance(start, int)
        and x_BTE.device.type == "cpu"
        and x_BTE.dtype in (torch.bfloat16, torch.float32)
        and head_width <= native.MOST_HEAD_WIDTH
        and native.kernels() is not None
    )


def split_heads(x_BTE: Tensor, parts: Sequence[Part], rotary: Rotary | None, start: int = 0) -> tuple[Tensor, ...]:
    """[B, N, T, H] of each part, in float32. The first token stands at position `start`."""
    head_width = x_BTE.shape[-1] // sum(part.heads for part in parts)
    cos_TP = sin_TP = None
    halves = False
    if rotary is not None and any(part.turned for part in parts):
        angles_TP = rotary.angles(torch.arange(start, start + x_BTE.shape[1]))
        cos_TP, sin_TP = angles_TP.cos(), angles_TP.sin()
        halves = rotary.layout == "halves"
    split: tuple[Tensor, ...] = _Split.apply(x_BTE, tuple(parts), head_width, cos_TP, sin_TP, halves)  # type: ignore[no-untyped-call]
    return split


class _Split(torch.autograd.Function):
    """A turn is a rotation: backward turns the gradients the other way."""

    @staticmethod
    def forward(
        context: Any,
        x_BTE: Tensor,
        parts: tuple[Part, ...],
        head_width: int,
        cos_TP: Tensor | None,
        sin_TP: Tensor | None,
        halves: bool,
    ) -> tuple[Tensor, ...]:
        x_BTE = x_BTE.contiguous()
        context.parts, context.dtype, context.shape = parts, x_BTE.dtype, x_BTE.shape
        context.angles, context.halves = (cos_TP, sin_TP), halves
        rows, length, _ = x_BTE.shape
        split = []
        for part, from_BTNH in zip(parts, _heads_of(x_BTE, parts, head_width), strict=True):
            to_BTNH = torch.empty(rows, length, part.heads, head_width)
            _copy(from_BTNH, to_BTNH, part, context.angles, halves=halves, backwards=False)
            split.append(to_BTNH.transpose(1, 2))
        return tuple(split)

    @staticmethod
    def backward(context: Any, *d_split_BNTH: Tensor) -> tuple[Tensor | None, ...]:
        d_x_BTE = torch.empty(context.shape, dtype=context.dtype)
        head_width = d_split_BNTH[0].shape[-1]
        heads = _heads_of(d_x_BTE, context.parts, head_width)
        for part, d_part_BNTH, to_BTNH in zip(context.parts, d_split_BNTH, heads, strict=True):
            d_part_BTNH = d_part_BNTH.transpose(1, 2)
            if d_part_BTNH.stride(-1) != 1:
                d_part_BTNH = d_part_BTNH.contiguous()
            _copy(d_part_BTNH, to_BTNH, part, context.angles, halves=context.halves, backwards=True)
        return d_x_BTE, None, None, None, None, None


def _heads_of(x_BTE: Tensor, parts: Sequence[Part], head_width: int) -> list[Tensor]:
    """Views [B, T, N, H] of the parts."""
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + part.heads)
    x_BTNH = x_BTE.view(*x_BTE.shape[:2], ends[-1], head_width)
    return [x_BTNH[:, :, first:end] for first, end in pairwise(ends)]


def _copy(
    from_BTNH: Tensor,
    to_BTNH: Tensor,
    part: Part,
    angles: tuple[Tensor | None, Tensor | None],
    *,
    halves: bool,
    backwards: bool,
) -> None:
    rows, length, heads, width = from_BTNH.shape
    cos_TP, sin_TP = angles if part.turned else (None, None)
    strides = [(c_int64 * 3)(*x.stride()[:3]) for x in (from_BTNH, to_BTNH)]
    native.needed().copy_heads(
        *(from_BTNH.data_ptr(), strides[0], from_BTNH.dtype == torch.bfloat16),
        *(to_BTNH.data_ptr(), strides[1], to_BTNH.dtype == torch.bfloat16),
        *(rows, length, heads, width),
        *(None if angle is None else angle.data_ptr() for angle in (cos_TP, sin_TP)),
        *(backwards, halves, torch.get_num_threads()),
    )

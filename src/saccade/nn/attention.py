"""Attention: the oracle in ten plain lines, and the path that is used.

`attention` is the definition. `attend` is what models call: it takes PyTorch's fused kernel where
the score is a dot product, must equal the oracle, and tells any watcher what it looked at.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.nn import watch
from saccade.nn.masks import Causal, Mask
from saccade.nn.scores import Dot, ScaledDot

Score = Callable[[Tensor, Tensor], Tensor]
SCALED_DOT = ScaledDot()


def attention(
    q: Tensor, k: Tensor, v: Tensor, *, score: Score = SCALED_DOT, mask: Mask | None = None, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """softmax(score(q, k) + bias) v: a weighted average of the values. Returns context and weights.

    `mask` says which keys a query may look at; a query that may look at none gets zeros.

    >>> import torch
    >>> context, weights = saccade.attention(torch.randn(2, 8), torch.randn(5, 8), torch.randn(5, 8))
    >>> context.shape, weights.shape
    (torch.Size([2, 8]), torch.Size([2, 5]))
    """
    scores = score(q, k)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        hidden = ~mask.allowed(*scores.shape[-2:]).to(scores.device)
        # The lowest finite number instead of -inf keeps a fully masked row, and its gradient, free of NaN.
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(hidden, 0.0)
    return weights @ v, weights


def attend(
    module: watch.Sited,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    score: Score = SCALED_DOT,
    mask: Mask | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """The context of `attention`, by the fastest path that equals it; `module` is the one that looks."""
    context = attend_unseen(module, q, k, v, score=score, mask=mask, bias=bias)
    tell(module, q, k, v, score=score, mask=mask, bias=bias)
    return context


def attend_unseen(
    module: watch.Sited,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    score: Score = SCALED_DOT,
    mask: Mask | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """`attend` without a word to watchers: who looks step by step tells them once, when all is written. Their edits
    hold all the same."""
    mask = watch.edited_mask(module, mask, k)
    if isinstance(score, Dot) and bias is None:
        context = _fused(q, score.prepare(k), v, score.scale(q.shape[-1]), mask)
    else:
        context = attention(q, k, v, score=score, mask=mask, bias=bias)[0]
    return watch.edited_heads(module, context)


def tell(
    module: watch.Sited,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    score: Score = SCALED_DOT,
    mask: Mask | None = None,
    bias: Tensor | None = None,
) -> None:
    """Tell watchers what `attend_unseen` looked at."""
    mask = watch.edited_mask(module, mask, k)
    watch.tell(module, q, k, v, lambda: attention(q, k, v, score=score, mask=mask, bias=bias)[1])


def _fused(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Mask | None) -> Tensor:
    if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        # The kernel's backward pass in bfloat16 takes three times as long as in float32.
        with torch.autocast("cpu", enabled=False):
            return _fused(q.float(), k.float(), v.float(), scale, mask)
    queries, keys = q.shape[-2], k.shape[-2]
    if isinstance(mask, Causal) and mask.offsets_B is None and queries == keys:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    allowed = None if mask is None else mask.allowed(queries, keys).to(q.device)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=scale)

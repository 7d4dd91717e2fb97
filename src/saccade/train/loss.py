"""Cross-entropy at the output layer, a few rows at a time: the logits of a batch are never all in memory."""

from typing import Any

import torch
from torch import Tensor, nn

from saccade import native

CHUNK_BYTES = 4 * 2**20
"""Logits computed at once; they should fit the processor's cache."""
GRADIENT_BYTES = 32 * 2**20
"""Gradients of logits held at once. Each time they are added to those of the weights, which are larger than a chunk of
logits, these are read and written again: with chunk by chunk that was a twentieth of a training step."""


def cross_entropy(features_ND: Tensor, head: nn.Linear, labels_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The sum over rows of the smoothed loss, and of -log p(label), of softmax(head(features)).

    Smoothing puts 1-ε on the label and spreads ε evenly over the vocabulary (Szegedy et al. 2016, 7).
    """
    divided = getattr(head, "cross_entropy", None)
    if divided is not None:  # each process has a part of the vocabulary
        found: tuple[Tensor, Tensor] = divided(features_ND, labels_N, smoothing)
        return found
    loss, likelihood = _CrossEntropy.apply(features_ND, head.weight, head.bias, labels_N, smoothing)  # type: ignore[no-untyped-call]
    return loss, likelihood


class _CrossEntropy(torch.autograd.Function):
    """Loss and gradients in one pass over the rows; `backward` only scales what `forward` found."""

    @staticmethod
    def forward(
        context: Any, features_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, labels_N: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        wanted = any(context.needs_input_grad[:3])
        rows, vocabulary = features_ND.shape[0], weight_VD.shape[0]
        device = features_ND.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else features_ND.dtype
        # Logits are computed a chunk at a time, and become their gradients in the same place. A block of chunks is
        # kept for the gradients of the weights.
        chunk = max(1, CHUNK_BYTES // (kind.itemsize * vocabulary))
        block = chunk * max(1, GRADIENT_BYTES // CHUNK_BYTES) if wanted else chunk
        loss, likelihood = weight_VD.new_zeros(()), weight_VD.new_zeros(())
        d_features_ND = torch.empty_like(features_ND) if wanted else None
        d_weight_VD = torch.zeros_like(weight_VD) if wanted else None
        d_bias_V = torch.zeros_like(bias_V) if wanted and bias_V is not None else None
        rounded_ND, rounded_VD = features_ND.to(kind), weight_VD.to(kind)
        rounded_bias_V = None if bias_V is None else bias_V.to(kind)
        logits_GV = rounded_VD.new_empty(min(block, rows), vocabulary)
        with torch.autocast(device, enabled=False):
            for first in range(0, rows, block):
                end = min(first + block, rows)
                for start in range(first, end, chunk):
                    part = slice(start, min(start + chunk, end))
                    logits_CV = logits_GV[start - first : part.stop - first]
                    _multiply(rounded_ND[part], rounded_VD.t(), rounded_bias_V, out=logits_CV)
                    nll_C, uniform_C = _row_losses(logits_CV, labels_N[part], smoothing, gradient=wanted)
                    likelihood += nll_C.sum()
                    loss += ((1 - smoothing) * nll_C + smoothing * uniform_C).sum()
                if d_features_ND is not None and d_weight_VD is not None:
                    d_logits_GV = logits_GV[: end - first]
                    d_features_ND[first:end] = d_logits_GV @ rounded_VD
                    _add_product(d_weight_VD, d_logits_GV.t(), rounded_ND[first:end])
                    if d_bias_V is not None:
                        d_bias_V += d_logits_GV.sum(dim=0, dtype=d_bias_V.dtype)
        context.found = (d_features_ND, d_weight_VD, d_bias_V)
        context.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(context: Any, d_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        # In place: nothing else refers to these gradients, and backward runs once.
        return (*(None if found is None else found.mul_(d_loss) for found in context.found), None, None)


def _multiply(left: Tensor, right: Tensor, bias: Tensor | None, *, out: Tensor) -> None:
    if bias is None:
        torch.mm(left, right, out=out)
    else:
        torch.addmm(bias, left, right, out=out)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right


def _row_losses(logits_CV: Tensor, labels_C: Tensor, smoothing: float, *, gradient: bool) -> tuple[Tensor, Tensor]:
    """-log p(label) and the mean -log p of each row, in float32. Logits become gradients of the smoothed loss."""
    library = native.kernels()
    if library is not None and logits_CV.device.type == "cpu" and logits_CV.dtype in (torch.float32, torch.bfloat16):
        rows, vocabulary = logits_CV.shape
        labels_C = labels_C.contiguous()
        nll_C, uniform_C = torch.empty(rows), torch.empty(rows)
        library.cross_entropy(
            *(logits_CV.data_ptr(), logits_CV.dtype == torch.bfloat16, labels_C.data_ptr()),
            *(rows, vocabulary, smoothing, gradient),
            *(nll_C.data_ptr(), uniform_C.data_ptr(), torch.get_num_threads()),
        )
        return nll_C, uniform_C
    logprobs_CV = logits_CV.to(torch.promote_types(logits_CV.dtype, torch.float32)).log_softmax(dim=1)
    nll_C, uniform_C = -logprobs_CV.gather(1, labels_C[:, None])[:, 0], -logprobs_CV.mean(dim=1)
    if gradient:
        d_logits_CV = logprobs_CV.exp_().sub_(smoothing / logits_CV.shape[1])
        rows_C = torch.arange(len(labels_C), device=labels_C.device)
        d_logits_CV[rows_C, labels_C] -= 1 - smoothing
        logits_CV.copy_(d_logits_CV)
    return nll_C, uniform_C

"""The output layer and its loss where each process has a part of the vocabulary (Shoeybi et al. 2019, 3).

What is exchanged is a few numbers for each position, not its logits.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

CHUNK_BYTES = 32 * 2**20
"""Logits computed at once; more at a time than alone, since every chunk waits for the other processes."""


class DividedHead(nn.Linear):
    """An output layer of which this process has some words."""

    def __init__(self, whole: nn.Linear, weight: nn.Parameter, bias: nn.Parameter | None, mesh: DeviceMesh) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = whole.in_features, whole.out_features
        self.weight = weight
        self.register_parameter("bias", bias)
        self.group, part = mesh.get_group(), mesh.get_local_rank()
        self.first = part * (whole.out_features // mesh.size())

    def forward(self, input: Tensor) -> Tensor:
        raise NotImplementedError("logits of divided words are not put together: validate the whole model")

    def cross_entropy(self, features_ND: Tensor, labels_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """As `loss.cross_entropy`; the same on every process."""
        assert isinstance(self.weight, DTensor)
        bias = self.bias.to_local() if isinstance(self.bias, DTensor) else None
        found: tuple[Tensor, Tensor] = _DividedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            features_ND, self.weight.to_local(), bias, labels_N - self.first, smoothing, self.out_features, self.group
        )
        return found


class _DividedCrossEntropy(torch.autograd.Function):
    """-log p(label) = log Σ exp z - z_label: the largest logit, the sum, and the label's logit are put together."""

    @staticmethod
    def forward(
        context: Any,
        features_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        labels_N: Tensor,
        smoothing: float,
        vocabulary: int,
        group: dist.ProcessGroup,
    ) -> tuple[Tensor, Tensor]:
        loss, likelihood = features_ND.new_zeros(()), features_ND.new_zeros(())
        d_features_ND, d_weight_VD = torch.zeros_like(features_ND), torch.zeros_like(weight_VD)
        d_bias_V = None if bias_V is None else torch.zeros_like(bias_V)
        rows = max(1, CHUNK_BYTES // (4 * len(weight_VD)))
        for start in range(0, len(features_ND), rows):
            part = slice(start, start + rows)
            features_CD, labels_C = features_ND[part], labels_N[part]
            logits_CV = (features_CD @ weight_VD.t()).float()
            if bias_V is not None:
                logits_CV += bias_V
            nll_C, uniform_C = _losses_and_gradients(logits_CV, labels_C, smoothing, vocabulary, group)
            likelihood += nll_C.sum()
            loss += ((1 - smoothing) * nll_C + smoothing * uniform_C).sum()
            d_features_ND[part] = logits_CV @ weight_VD
            d_weight_VD += logits_CV.t() @ features_CD
            if d_bias_V is not None:
                d_bias_V += logits_CV.sum(dim=0)
        dist.all_reduce(d_features_ND, group=group)
        context.found = (d_features_ND, d_weight_VD, d_bias_V)
        context.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(context: Any, d_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        found = (None if part is None else part.mul_(d_loss) for part in context.found)
        return *found, None, None, None, None


def _losses_and_gradients(
    logits_CV: Tensor, labels_C: Tensor, smoothing: float, vocabulary: int, group: dist.ProcessGroup
) -> tuple[Tensor, Tensor]:
    """-log p(label) and the mean -log p of each row; logits become gradients of the smoothed loss. `labels_C` are
    counted from the first word here: those of other processes are below 0, or too large."""
    largest_C = logits_CV.amax(dim=1)
    dist.all_reduce(largest_C, dist.ReduceOp.MAX, group=group)
    here_C = (labels_C >= 0) & (labels_C < logits_CV.shape[1])
    inside_C1 = labels_C.clamp(0, logits_CV.shape[1] - 1)[:, None]
    label_C = logits_CV.gather(1, inside_C1)[:, 0].masked_fill(~here_C, 0.0)
    parts_3C = torch.stack([torch.empty_like(label_C), label_C, logits_CV.sum(dim=1)])
    logits_CV.sub_(largest_C[:, None]).exp_()
    parts_3C[0] = logits_CV.sum(dim=1)
    dist.all_reduce(parts_3C, group=group)
    total_C, label_C, sum_C = parts_3C
    log_total_C = total_C.log() + largest_C
    logits_CV.div_(total_C[:, None]).sub_(smoothing / vocabulary)
    logits_CV.scatter_add_(1, inside_C1, (here_C.to(logits_CV.dtype) * (smoothing - 1))[:, None])
    return log_total_C - label_C, log_total_C - sum_C / vocabulary

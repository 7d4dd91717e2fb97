"""The likeliest next tokens, without a log-probability for every other one."""

import numpy as np
import torch
from torch import Tensor

from saccade import native


def best_tokens(logits_BV: Tensor, count: int, gains_BV: np.ndarray | None = None) -> tuple[Tensor, Tensor]:
    """Each row's `count` likeliest tokens, likeliest first: natural log-probabilities [B, C] and tokens [B, C].

    Gains are added to the log-probabilities, which then no longer sum up to one: what may be written where little is
    allowed does not become likely by that.
    """
    rows, vocabulary = logits_BV.shape
    count = min(count, vocabulary)
    if gains_BV is not None:
        best = (logits_BV.log_softmax(dim=1) + torch.from_numpy(gains_BV).to(logits_BV.device)).topk(count, dim=1)
        return best.values, best.indices
    library = native.kernels()
    if library is None or logits_BV.device.type != "cpu" or logits_BV.dtype != torch.float32:
        best_BC, tokens_BC = logits_BV.topk(count, dim=1)
        return best_BC - logits_BV.logsumexp(dim=1, keepdim=True), tokens_BC
    logits_BV = logits_BV.contiguous()
    logprobs_BC, tokens_BC = torch.empty(rows, count), torch.empty(rows, count, dtype=torch.long)
    threads = native.threads()
    library.choose_best(
        logits_BV.data_ptr(), rows, vocabulary, count, logprobs_BC.data_ptr(), tokens_BC.data_ptr(), threads
    )
    return logprobs_BC, tokens_BC

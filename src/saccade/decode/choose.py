"""The likeliest next tokens, without a log-probability for every other one."""

from typing import Any

import numpy as np

from saccade import native
from saccade.decode.running import as_array


def best_tokens(logits_BV: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Each row's `count` likeliest tokens, likeliest first: natural log-probabilities [B, C] and tokens [B, C].

    Logits are an array or a tensor.
    """
    count = min(count, logits_BV.shape[1])
    library = native.kernels()
    if library is None or _elsewhere(logits_BV):
        return _by_pytorch(logits_BV, count)
    logits_BV = np.ascontiguousarray(as_array(logits_BV))
    rows, vocabulary = logits_BV.shape
    logprobs_BC = np.empty((rows, count), dtype=np.float32)
    tokens_BC = np.empty((rows, count), dtype=np.int64)
    parts = (logprobs_BC.ctypes.data, tokens_BC.ctypes.data)
    library.choose_best(logits_BV.ctypes.data, rows, vocabulary, count, *parts, native.threads())
    return logprobs_BC, tokens_BC


def _elsewhere(logits_BV: Any) -> bool:
    """Whether it is a tensor that the kernels cannot read."""
    return not isinstance(logits_BV, np.ndarray) and (
        logits_BV.device.type != "cpu" or str(logits_BV.dtype) != "torch.float32"
    )


def _by_pytorch(logits_BV: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    import torch  # for tensors, which are there only where it is

    logits_BV = torch.as_tensor(logits_BV)
    best = logits_BV.topk(count, dim=1)
    return as_array(best.values - logits_BV.logsumexp(dim=1, keepdim=True)), as_array(best.indices)

"""The likeliest next tokens, without a log-probability for every other one."""

from typing import Any

import numpy as np

from saccade import native
from saccade.decode.running import as_array


def best_tokens(logits_BV: Any, count: int, gains_BV: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Each row's `count` likeliest tokens, likeliest first: natural log-probabilities [B, C] and tokens [B, C].

    Logits are an array or a tensor. Gains are added to the log-probabilities, which then no longer sum up to one: what
    may be written where little is allowed does not become likely by that.
    """
    count = min(count, logits_BV.shape[1])
    library = native.kernels()
    if library is None or _elsewhere(logits_BV):
        return _by_pytorch(logits_BV, count, gains_BV)
    logits_BV = np.ascontiguousarray(as_array(logits_BV))
    if gains_BV is not None:
        # What is left of the probability is not shared out: the likeliest of all tokens stays the measure.
        free_B1 = _log_sums(logits_BV)
        logits_BV = logits_BV + gains_BV
    rows, vocabulary = logits_BV.shape
    logprobs_BC = np.empty((rows, count), dtype=np.float32)
    tokens_BC = np.empty((rows, count), dtype=np.int64)
    parts = (logprobs_BC.ctypes.data, tokens_BC.ctypes.data)
    library.choose_best(logits_BV.ctypes.data, rows, vocabulary, count, *parts, native.threads())
    if gains_BV is not None:
        logprobs_BC += _log_sums(logits_BV) - free_B1
    return logprobs_BC, tokens_BC


def _log_sums(logits_BV: np.ndarray) -> np.ndarray:
    """log Σ exp of each row, as a column."""
    most_B1 = logits_BV.max(axis=1, keepdims=True)
    sums: np.ndarray = most_B1 + np.log(np.exp(logits_BV - most_B1).sum(axis=1, keepdims=True))
    return sums


def _elsewhere(logits_BV: Any) -> bool:
    """Whether it is a tensor that the kernels cannot read."""
    return not isinstance(logits_BV, np.ndarray) and (
        logits_BV.device.type != "cpu" or str(logits_BV.dtype) != "torch.float32"
    )


def _by_pytorch(logits_BV: Any, count: int, gains_BV: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    import torch  # for tensors, which are there only where it is

    logits_BV = torch.as_tensor(logits_BV)
    sums_B1 = logits_BV.logsumexp(dim=1, keepdim=True)
    if gains_BV is not None:
        logits_BV = logits_BV + torch.from_numpy(gains_BV).to(logits_BV.device)
    best = logits_BV.topk(count, dim=1)
    return as_array(best.values - sums_B1), as_array(best.indices)

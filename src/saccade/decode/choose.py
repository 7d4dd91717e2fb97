"""The likeliest next tokens, without a log-probability for every other one."""

import numpy as np

from saccade import native
from saccade.runtime.contract import Floats, Ids


def best_tokens(logits_BV: Floats, count: int) -> tuple[Floats, Ids]:
    """Each row's `count` likeliest tokens, likeliest first, of equals the lower: natural log-probabilities [B, C] and
    tokens [B, C]."""
    rows, vocabulary = logits_BV.shape
    count = min(count, vocabulary)
    library = native.kernels()
    if library is None:
        return _in_numpy(logits_BV, count)
    logits_BV = np.ascontiguousarray(logits_BV)
    logprobs_BC = np.empty((rows, count), dtype=np.float32)
    tokens_BC = np.empty((rows, count), dtype=np.int64)
    parts = (logprobs_BC.ctypes.data, tokens_BC.ctypes.data)
    library.choose_best(logits_BV.ctypes.data, rows, vocabulary, count, *parts, native.threads())
    return logprobs_BC, tokens_BC


def _in_numpy(logits_BV: Floats, count: int) -> tuple[Floats, Ids]:
    """Where there are no kernels."""
    some_BC = np.argpartition(-logits_BV, count - 1, axis=1)[:, :count]
    values_BC = np.take_along_axis(logits_BV, some_BC, axis=1)
    order_BC = np.lexsort((some_BC, -values_BC), axis=1)
    best_BC = np.take_along_axis(values_BC, order_BC, axis=1)
    return best_BC - log_sum_exp(logits_BV), np.take_along_axis(some_BC, order_BC, axis=1)


def log_sum_exp(logits_BV: Floats) -> Floats:
    """log Σ e^x of each row: [B, 1]."""
    most_B1 = logits_BV.max(axis=1, keepdims=True)
    result: Floats = most_B1 + np.log(np.exp(logits_BV - most_B1).sum(axis=1, keepdims=True))
    return result

"""Which tokens translate each other, learnt from pairs of texts alone: what an alignment head is taught by.

Two models, each token of one side made by one of the other (IBM model 1 with a prior for the diagonal, as in Dyer et
al. 2013), are trained to agree (Liang et al. 2006): their posteriors are multiplied, and both are estimated from the
product.
"""

from collections.abc import Iterator

import numpy as np

from saccade.data.ragged import Ragged

ROUNDS = 5
MOST_PAIRS = 200_000
"""Pairs that are learnt from: more change little, and cost time."""
DIAGONAL = 4.0
"""How fast the prior falls with the distance from the diagonal, as a share of the lengths."""
CELLS = 400_000
"""Of source times target positions in one step."""


def learn_table(source: Ragged, target: Ragged, vocabulary: int) -> np.ndarray:
    """[V, V], float16: √(p(t|s) · p(s|t)) for every source token s and target token t."""
    chosen = np.arange(0, len(source), max(1, -(-len(source) // MOST_PAIRS)))
    counts_VV = np.ones((vocabulary, vocabulary), dtype=np.float32)
    for _ in range(ROUNDS):
        forward_V1, backward_1V = (np.maximum(counts_VV.sum(axis=axis, keepdims=True), 1e-9) for axis in (1, 0))
        news_VV = np.zeros_like(counts_VV)
        for rows in _chunks(source, target, chosen):
            s_BS, t_BT = source.padded(rows, pad=-1), target.padded(rows, pad=-1)
            together_BST = counts_VV[s_BS[:, :, None], t_BT[:, None, :]] * diagonal_prior(s_BS >= 0, t_BT >= 0)
            ahead = together_BST / forward_V1[s_BS]
            back = together_BST / backward_1V[0, t_BT][:, None, :]
            ahead /= np.maximum(ahead.sum(axis=1, keepdims=True), 1e-20)
            back /= np.maximum(back.sum(axis=2, keepdims=True), 1e-20)
            np.add.at(news_VV, (s_BS[:, :, None], t_BT[:, None, :]), ahead * back)
        counts_VV = news_VV
    forward_V1, backward_1V = (np.maximum(counts_VV.sum(axis=axis, keepdims=True), 1e-9) for axis in (1, 0))
    table_VV: np.ndarray = (counts_VV / np.sqrt(forward_V1 * backward_1V)).astype(np.float16)
    return table_VV


def diagonal_prior(source_BS: np.ndarray, target_BT: np.ndarray) -> np.ndarray:
    """[B, S, T] from what is real on both sides: e^(-4 |i/S - j/T|), and 0 where there is padding."""
    i_BS, j_BT = (
        np.arange(real.shape[1]) / np.maximum(real.sum(axis=1), 1)[:, None] for real in (source_BS, target_BT)
    )
    prior_BST = np.exp(-DIAGONAL * np.abs(i_BS[:, :, None] - j_BT[:, None, :])).astype(np.float32)
    real_BST: np.ndarray = prior_BST * source_BS[:, :, None] * target_BT[:, None, :]
    return real_BST


def _chunks(source: Ragged, target: Ragged, chosen: np.ndarray) -> Iterator[np.ndarray]:
    """Pairs of like lengths together."""
    areas = source.lengths[chosen] * target.lengths[chosen]
    order = chosen[np.argsort(areas, kind="stable")]
    order = order[(source.lengths[order] > 0) & (target.lengths[order] > 0)]
    start = 0
    while start < len(order):
        largest = int(source.lengths[order[start]] * target.lengths[order[start]])
        size = max(1, CELLS // (2 * max(1, largest)))
        yield order[start : start + size]
        start += size

"""Scores of walks through mazes: how many end where they should."""

from collections.abc import Sequence

import numpy as np

from saccade.evaluate.metrics import Score
from saccade.evaluate.spelling import ratio_score


def success(name: str, reached: Sequence[bool], *, what: str, bootstrap: int = 1000) -> Score:
    """The share, in percent, of walks, or other things, that reached what they should."""
    counts_N2 = np.stack([np.array(reached, dtype=np.int64), np.ones(len(reached), dtype=np.int64)], axis=1)
    return ratio_score(name, counts_N2, f"{what}:{len(reached)}", bootstrap=bootstrap, scale=100)

"""Whether what is attended is what it is about: the largest weight against the fields of the goal."""

from collections.abc import Sequence

import numpy as np

from saccade.axes import Grid
from saccade.evaluate.metrics import Score
from saccade.evaluate.spelling import ratio_score

Field = tuple[int, int]


def pointing(
    name: str, goals: Sequence[Sequence[Field]], weights: Sequence[np.ndarray], grid: Grid, *, bootstrap: int = 1000
) -> list[Score]:
    """Of the looks while a goal was in view, the share, in percent, whose largest weight was on one; beside it, how
    often a random field would be. `goals` and `weights` [S] stand side by side, a pair for each action."""
    hits, chances = [], []
    for fields, weights_S in zip(goals, weights, strict=True):
        if fields:
            hits.append(divmod(int(weights_S.argmax()), grid.width) in set(fields))
            chances.append(len(set(fields)) / (grid.height * grid.width))
    if not hits:
        return []
    counts_N2 = np.stack([np.array(hits, dtype=np.int64), np.ones(len(hits), dtype=np.int64)], axis=1)
    signature = f"looks:{len(hits)}"
    return [
        ratio_score(f"pointing, {name}", counts_N2, signature, bootstrap=bootstrap, scale=100),
        Score(f"pointing, {name}, a random field", 100 * float(np.mean(chances)), None, signature),
    ]

"""Scores of action sequences: how many are right as a whole, and how many actions are right one by one."""

from collections.abc import Sequence

import numpy as np

from saccade.evaluate.classes import BOOTSTRAP
from saccade.evaluate.metrics import Score
from saccade.evaluate.spelling import ratio_score

Actions = Sequence[str]


def exact_match(
    done: Sequence[Actions], accepted: Sequence[Sequence[Actions]], *, name: str = "exact match", bootstrap: int = 1000
) -> Score:
    """The share of commands, in percent, after which all actions are those of an accepted sequence, and no others."""
    pairs = zip(done, accepted, strict=True)
    right = [any(list(one) == list(truth) for truth in some) for one, some in pairs]
    counts_N2 = np.stack([np.array(right, dtype=np.int64), np.ones(len(right), dtype=np.int64)], axis=1)
    return ratio_score(name, counts_N2, f"commands:{len(right)}", bootstrap=bootstrap, scale=100)


def actions_right(
    done: Sequence[Actions], accepted: Sequence[Sequence[Actions]], *, bootstrap: int = BOOTSTRAP
) -> Score:
    """The share of actions, in percent, that stand in their place; of several accepted sequences the best one counts.
    One too many or too few is wrong, too."""
    counts = [
        max((_in_place(one, truth) for truth in some), key=_share) for one, some in zip(done, accepted, strict=True)
    ]
    counts_N2 = np.array(counts, dtype=np.int64)
    signature = f"commands:{len(counts)}|actions:{counts_N2[:, 1].sum()}"
    return ratio_score("actions in place", counts_N2, signature, bootstrap=bootstrap, scale=100)


def _in_place(done: Actions, truth: Actions) -> tuple[int, int]:
    return sum(one == other for one, other in zip(done, truth, strict=False)), max(len(done), len(truth), 1)


def _share(counts: tuple[int, int]) -> float:
    return counts[0] / counts[1]

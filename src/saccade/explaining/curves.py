"""Is an explanation right? Covering what it points at must cost, showing only that must suffice: curves of deletion and
insertion (Petsiuk et al. 2018, 4.2), comprehensiveness and sufficiency (DeYoung et al. 2020, 4)."""

from dataclasses import dataclass

import numpy as np

from saccade.explaining.covers import Cover
from saccade.explaining.rise import AT_ONCE, Scorer, scored
from saccade.runtime.contract import Floats

STEPS = 20
"""Of a curve, where there are as many places."""
SHARES = (0.1, 0.2, 0.3, 0.5)
"""Of the places that are taken for the explanation, in comprehensiveness and sufficiency."""


@dataclass(frozen=True, eq=False)
class Curves:
    """The score of an input as places are covered, most important first, and as they are shown in the same order."""

    shares_K: Floats
    """The places that are covered, or shown, from 0 to 1."""
    deletion_K: Floats
    insertion_K: Floats
    counts_K: np.ndarray

    @property
    def deletion(self) -> float:
        """The area below the curve of deletion: low, if the explanation is right."""
        return float(np.trapezoid(self.deletion_K, self.shares_K))

    @property
    def insertion(self) -> float:
        """The area below the curve of insertion: high, if it is right."""
        return float(np.trapezoid(self.insertion_K, self.shares_K))

    @property
    def comprehensiveness(self) -> float:
        """What the score loses without the most important places, over several shares of them: high, if it is right."""
        return float(np.mean([self.deletion_K[0] - self._at(self.deletion_K, share) for share in SHARES]))

    @property
    def sufficiency(self) -> float:
        """What the score loses with nothing but the most important places: low, if it is right."""
        return float(np.mean([self.insertion_K[-1] - self._at(self.insertion_K, share) for share in SHARES]))

    def _at(self, curve_K: Floats, share: float) -> float:
        return float(np.interp(share, self.shares_K, curve_K))


def curves(box: Scorer, cover: Cover, values_P: Floats, *, steps: int = STEPS) -> Curves:
    """Both curves for an order of places; of equals the first comes first."""
    order = np.argsort(-np.asarray(values_P).reshape(-1), kind="stable")
    places = cover.places
    counts = np.unique(np.linspace(0, places, min(steps, places) + 1).round().astype(int))
    masks = np.ones((2 * len(counts), places), dtype=np.float32)
    for row, count in enumerate(counts.tolist()):
        masks[row, order[:count]] = 0
        masks[len(counts) + row, order[count:]] = 0
    found = np.concatenate(
        [
            scored(box, [cover.under(mask) for mask in masks[first : first + AT_ONCE]])
            for first in range(0, len(masks), AT_ONCE)
        ]
    )
    return Curves(counts / places, found[: len(counts)], found[len(counts) :], counts)

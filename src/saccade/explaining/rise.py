"""RISE: what of an input matters to a black box, from its answers to many copies with random parts covered (Petsiuk,
Das & Saenko 2018). No gradient is used: the box may be any function, or a person."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade.errors import UserError, WrongUse
from saccade.explaining.covers import Cover
from saccade.runtime.contract import Floats

Scorer = Callable[[Sequence[Any]], Floats]
"""What a black box says of several inputs: a number for each, higher for more of what is asked about."""
AT_ONCE = 64
"""Inputs that the box is given together."""
FEWEST = 2
"""Answers from which anything can be said."""


@dataclass
class Estimate:
    """What is known so far: sums, so that answers are forgotten and more can be added.

    RISE's value of a place is the mean of the box's score f over masks that show it. Shown here is the slope of f on
    the mask, Cov(f, m) / Var(m): what showing the place adds to the score. It orders places as RISE does, and the part
    of the score that is the same for all places, which is most of the noise, has gone.
    """

    places: int
    count: int = 0
    scores: np.ndarray = None  # type: ignore[assignment]
    """Σ f^b for b = 0, 1, 2."""
    masks: np.ndarray = None  # type: ignore[assignment]
    """Σ m^a f^b of every place for a = 1, 2 and b = 0, 1, 2: [2, P, 3]."""

    def __post_init__(self) -> None:
        self.scores, self.masks = np.zeros(3), np.zeros((2, self.places, 3))

    def add(self, masks_NP: Floats, scores_N: Floats) -> None:
        """Answers to inputs under these masks."""
        if not np.isfinite(scores_N).all():
            raise UserError("the black box gave a score that is no finite number")
        powers_N3 = scores_N.astype(np.float64)[:, None] ** np.arange(3)
        masks = masks_NP.astype(np.float64)
        self.scores += powers_N3.sum(axis=0)
        self.masks += np.stack([masks.T @ powers_N3, np.square(masks).T @ powers_N3])
        self.count += len(scores_N)

    @property
    def values_P(self) -> Floats:
        """What showing each place adds to the score."""
        values: Floats = self._covariance_P / self._variance_P
        return values

    @property
    def errors_P(self) -> Floats:
        """The standard error of each value."""
        n, (f1, f2) = self.count, self.scores[1:]
        (m1, m1f1, m1f2), (m2, m2f1, m2f2) = self.masks[0].T, self.masks[1].T
        f, m = f1 / n, m1 / n
        # Σ ((mᵢ - m)(fᵢ - f))², multiplied out.
        squares = m2f2 - 2 * f * m2f1 + f**2 * m2 - 2 * m * (m1f2 - 2 * f * m1f1 + f**2 * m1)
        squares = squares + m**2 * (f2 - 2 * f * f1 + n * f**2)
        spread = np.maximum(squares / n - self._covariance_P**2, 0)
        errors: Floats = np.sqrt(spread / n) / self._variance_P
        return errors

    @property
    def _covariance_P(self) -> Floats:
        covariance: Floats = self.masks[0, :, 1] / self.count - self.masks[0, :, 0] * self.scores[1] / self.count**2
        return covariance

    @property
    def _variance_P(self) -> Floats:
        if self.count < FEWEST:
            raise WrongUse(f"{self.count} answers; an estimate needs at least {FEWEST}")
        variance = self.masks[1, :, 0] / self.count - (self.masks[0, :, 0] / self.count) ** 2
        return np.maximum(variance, 1e-12)


def rise(box: Scorer, cover: Cover, *, masks: int, seed: int = 0, first: int = 0) -> Iterator[Estimate]:
    """The same estimate again and again, better after each batch of answers; stop when it is good enough."""
    if masks < FEWEST:
        raise WrongUse(f"{masks} masks; at least {FEWEST} are needed")
    estimate = Estimate(cover.places)
    for start in range(first, first + masks, AT_ONCE):
        drawn = cover.masks(seed, start, min(start + AT_ONCE, first + masks))
        estimate.add(drawn, scored(box, [cover.under(mask) for mask in drawn]))
        yield estimate


def scored(box: Scorer, inputs: Sequence[Any]) -> Floats:
    """What the box says, a number for each input."""
    found = np.asarray(box(inputs), dtype=np.float64)
    if found.shape != (len(inputs),):
        raise WrongUse(f"the black box gave scores of shape {found.shape} for {len(inputs)} inputs")
    return found

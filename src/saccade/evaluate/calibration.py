"""Whether probabilities mean what they say: calibration error, and the weights of log-probabilities that lower it."""

from collections.abc import Sequence

import numpy as np

from saccade.evaluate.metrics import Score

BINS = 15
LARGEST = 20.0
"""Largest weight: a temperature of 1/20."""


def calibration_error(confidence_N: Sequence[float], right_N: Sequence[bool], *, of: str = "examples") -> Score:
    """Expected calibration error in percent (Guo et al. 2017, eq. 5): answers are put into bins by their probability;
    the mean distance between a bin's probability and its share of right answers."""
    sure_N = np.asarray(confidence_N, dtype=np.float64)
    bin_N = np.minimum((sure_N * BINS).astype(int), BINS - 1)
    off_B = np.bincount(bin_N, weights=sure_N - np.asarray(right_N), minlength=BINS)
    error = 100 * float(np.abs(off_B).sum()) / max(1, len(sure_N))
    return Score("calibration error", error, None, f"{of}:{len(sure_N)}|bins:{BINS}|smaller is better")


def fit_power(confidence_N: Sequence[float], right_N: Sequence[bool]) -> float:
    """The power of confidences that makes the rights and wrongs likeliest; 1 where there are not some of both."""
    sure_N, hit_N = np.clip(np.asarray(confidence_N, np.float64), 1e-9, 1 - 1e-9), np.asarray(right_N, dtype=bool)
    if not len(hit_N) or hit_N.all() or not hit_N.any():
        return 1.0
    powers = np.geomspace(0.02, 5, 200)
    raised_PN = np.clip(sure_N[None] ** powers[:, None], 1e-9, 1 - 1e-9)
    likely_P = np.where(hit_N, np.log(raised_PN), np.log1p(-raised_PN)).mean(axis=1)
    return float(powers[int(likely_P.argmax())])


def class_calibration(logits_NC: np.ndarray, gold_N: np.ndarray) -> Score:
    """Of the likeliest classes."""
    chances_NC = np.exp(log_softmax(logits_NC))
    right_N = chances_NC.argmax(axis=1) == gold_N
    return calibration_error(chances_NC.max(axis=1).tolist(), right_N.tolist())


def log_softmax(logits_NC: np.ndarray) -> np.ndarray:
    """Log-probabilities, in float64."""
    shifted_NC = logits_NC.astype(np.float64) - logits_NC.max(axis=1, keepdims=True)
    return np.asarray(shifted_NC - np.log(np.exp(shifted_NC).sum(axis=1, keepdims=True)))


def weighted_loss(parts: Sequence[np.ndarray], weights: Sequence[float], gold_N: np.ndarray) -> float:
    """Mean negative log-likelihood of softmax(Σ weight · log-probabilities)."""
    logits_NC = sum(weight * part for weight, part in zip(weights, parts, strict=True))
    return float(-log_softmax(np.asarray(logits_NC))[np.arange(len(gold_N)), gold_N].mean())


def fit_weights(parts: Sequence[np.ndarray], gold_N: np.ndarray, *, rounds: int = 60) -> list[float]:
    """The weights, none below 0, with which softmax(Σ weight · log-probabilities) fits the labels best.

    For one part this is its inverse temperature (Guo et al. 2017, 4.2). The loss is convex in the weights: Newton's
    method finds the one minimum. The labels are smoothed as Platt (1999) does it, by about one example in all, so that
    a model that is always right does not become sure of everything.
    """
    found = np.ones(len(parts)) / len(parts)
    stacked_PNC = np.stack(parts)
    count, classes = stacked_PNC.shape[1:]
    target_NC = np.full((count, classes), 1 / (count + 2) / max(1, classes - 1))
    target_NC[np.arange(count), gold_N] = 1 - 1 / (count + 2)
    for _ in range(rounds):
        chances_NC = np.exp(log_softmax(np.tensordot(found, stacked_PNC, 1)))
        slope_P = np.einsum("nc,pnc->p", chances_NC - target_NC, stacked_PNC)
        mean_PN = np.einsum("nc,pnc->pn", chances_NC, stacked_PNC)
        bend_PP = np.einsum("nc,pnc,qnc->pq", chances_NC, stacked_PNC, stacked_PNC) - mean_PN @ mean_PN.T
        free = (found > 0) | (slope_P < 0)
        step_P = np.zeros(len(parts))
        bend = bend_PP[np.ix_(free, free)] + 1e-6 * count * np.eye(int(free.sum()))
        step_P[free] = np.linalg.solve(bend, slope_P[free])
        # Half of itself at most: far from the minimum the curve is flatter than at it, and a whole step too long.
        after = np.clip(found - np.clip(step_P, -0.5, 0.5), 0.0, LARGEST)
        if np.abs(after - found).max() < 1e-7:
            break
        found = after
    return [float(weight) for weight in found]

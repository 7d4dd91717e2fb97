"""A linear model on n-grams of words and letters, fitted by scikit-learn: what a classifier must at least reach."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from saccade.data.ngrams import KINDS, Kind, Ngrams, Sparse, counted
from saccade.data.table import Examples
from saccade.pipelines.mixture import LinearModel

FEATURES: tuple[tuple[Kind, ...], ...] = (("words",), ("words", "letters"))
STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0)
"""C, the inverse of how strongly weights are held down."""
LARGEST = 1_990_000
"""Bytes of a stored model."""
INSTALL = "pip install 'saccade[train]'"


@dataclass(frozen=True)
class ChosenLinear:
    """The model that was chosen on the validation part."""

    model: LinearModel
    setting: str
    """Its features and its C, for people."""
    valid_NC: np.ndarray
    """Log-probabilities of the validation examples."""

    def accuracy(self, examples: Examples) -> float:
        """The share of right answers, in percent."""
        chances_NC = self.model.log_chances(examples.texts, examples.seconds)
        return 100 * float((chances_NC.argmax(axis=1) == np.array(examples.labels)).mean())


def can_fit() -> bool:
    return find_spec("sklearn") is not None


def fit_linear(train: Examples, valid: Examples, report: Callable[[int, int], None]) -> ChosenLinear:
    """Every kind of features with every C; the most right on the validation part, of equals the first."""
    best: ChosenLinear | None = None
    most, done = -1, 0
    gold = np.array(valid.labels)
    rows = {kind: counted(train.texts, train.seconds, kind) for kind in KINDS}
    for kinds in FEATURES:
        # A key and a rarity of 4 bytes, a scale of 4, and a byte for each class.
        known = LARGEST // (12 + len(train.classes)) // len(kinds)
        ngrams = [Ngrams.learn(kind, rows[kind], known) for kind in kinds]
        features = _joined([one.weigh(rows[one.kind]) for one in ngrams], ngrams)
        for strength in STRENGTHS:
            model = LinearModel.of(ngrams, *_fitted(features, train, strength))
            valid_NC = model.log_chances(valid.texts, valid.seconds)
            if (right := int((valid_NC.argmax(axis=1) == gold).sum())) > most:
                most, best = right, ChosenLinear(model, f"{' and '.join(kinds)}, C = {strength:g}", valid_NC)
            done += 1
            report(done, len(FEATURES) * len(STRENGTHS))
    assert best is not None
    return best


def _joined(parts: Sequence[Sparse], ngrams: Sequence[Ngrams]) -> Any:
    """The features of all kinds beside one another, as scikit-learn takes them."""
    from scipy import sparse

    blocks = [
        sparse.csr_matrix(
            (part.values, part.places, np.concatenate([[0], part.ends])), shape=(len(part.ends), len(one))
        )
        for part, one in zip(parts, ngrams, strict=True)
    ]
    return sparse.hstack(blocks).tocsr()


def _fitted(features: Any, train: Examples, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights [K, C] and biases [C] of logistic regression."""
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged to the last digit, which nobody needs
        model = LogisticRegression(C=strength, max_iter=200, tol=1e-3).fit(features, np.array(train.labels))
    weights_CK, bias_C = model.coef_, model.intercept_
    if len(weights_CK) == 1:  # two classes: the logit of the second, which is half for it and half against the first
        weights_CK, bias_C = (np.concatenate([-one, one]) / 2 for one in (weights_CK, bias_C))
    return weights_CK.T, bias_C

"""The end of a classification training: how sure the model may be, and what a linear model does on the same rows."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from saccade.data.table import TableParts
from saccade.evaluate.calibration import class_calibration, fit_weights, log_softmax, weighted_loss
from saccade.evaluate.metrics import Score
from saccade.pipelines.classifier import Classifier
from saccade.pipelines.mixture import LINEAR, MixtureSettings
from saccade.pipelines.pipeline import Report
from saccade.tasks.contract import Finish
from saccade.tasks.linear import INSTALL, ChosenLinear, can_fit, fit_linear

LinearUse = Literal["none", "beside", "mixed"]
GAIN = 0.01
"""Share of the validation loss that the linear model must take away to be mixed in."""


def finish(pipeline: Classifier, parts: TableParts, use: LinearUse, report: Report) -> Finish:
    """Fit the temperature, and the weight of a linear model, on the validation part; `pipeline` has neither yet."""
    gold_N = np.array(parts.valid.labels)
    own_NC = log_softmax(pipeline.outputs(parts.valid.texts, parts.valid.seconds))
    if use == "none" or not can_fit():
        told = [] if use == "none" else [f"no linear model beside it: scikit-learn is not installed: {INSTALL}"]
        settings, calibration = _settings([own_NC], gold_N)
        return Finish({"probabilities": settings.table()}, {}, [calibration, *told], lambda _: [])
    linear = fit_linear(parts.train, parts.valid, report)
    chances = [own_NC, linear.valid_NC] if use == "mixed" and _gains(own_NC, linear.valid_NC, gold_N) else [own_NC]
    settings, calibration = _settings(chances, gold_N)
    told = [calibration, _compared(settings, own_NC, linear, gold_N)]
    files = {LINEAR: linear.model.packed()} if settings.linear else {}
    return Finish({"probabilities": settings.table()}, files, told, lambda scores: _beside(linear, parts, scores))


def _gains(own_NC: np.ndarray, linear_NC: np.ndarray, gold_N: np.ndarray) -> bool:
    alone, both = ([own_NC], [own_NC, linear_NC])
    before, after = (weighted_loss(parts, fit_weights(parts, gold_N), gold_N) for parts in (alone, both))
    return after < (1 - GAIN) * before


def _settings(chances: Sequence[np.ndarray], gold_N: np.ndarray) -> tuple[MixtureSettings, str]:
    """The weights of the encoder's log-probabilities and perhaps the linear model's, and what they do."""
    encoder, linear = (*fit_weights(chances, gold_N), 0.0)[:2]
    settings = MixtureSettings(encoder=round(encoder, 6), linear=round(linear, 6))
    mixed_NC = sum(weight * part for weight, part in zip((encoder, linear), chances, strict=False))
    raw, fitted = (class_calibration(np.asarray(one), gold_N) for one in (chances[0], mixed_NC))
    return settings, (
        f"probabilities: {settings}; calibration error on the validation part, where that was fitted, "
        f"{fitted.value:.2f}, of the bare encoder {raw.value:.2f}"
    )


def _compared(settings: MixtureSettings, own_NC: np.ndarray, linear: ChosenLinear, gold_N: np.ndarray) -> str:
    parts = {"encoder": own_NC, f"linear model on n-grams ({linear.setting})": linear.valid_NC}
    if settings.linear:
        parts["mixture of both"] = settings.encoder * own_NC + settings.linear * linear.valid_NC
    figures = [f"{name} {100 * (part_NC.argmax(axis=1) == gold_N).mean():.2f}" for name, part_NC in parts.items()]
    return f"accuracy on the validation part: {', '.join(figures)}"


def _beside(linear: ChosenLinear, parts: TableParts, scores: Sequence[Score]) -> list[str]:
    """The linear model's figure on the test part, and, where it is the better one, a sentence that says so."""
    if parts.test is None:
        return []
    own, other = next(score.value for score in scores if score.name == "accuracy"), linear.accuracy(parts.test)
    told = [f"test, linear model on n-grams: accuracy {other:.2f} (this model: {own:.2f})"]
    if other > own:
        told.append(
            f"the linear model is better on this test part, by {other - own:.2f} points: for these texts n-grams do, "
            "or more labelled texts are needed"
        )
    return told

"""What of the input mattered for an output, with standard errors, and whether covering it costs more than chance."""

from collections.abc import Callable
from typing import Any

import numpy as np

from saccade.explaining.boxes import answer_subject
from saccade.explaining.explain import Method, explained
from saccade.explaining.rise import Estimate
from saccade.view.recording import axis_values
from saccade.view.runs import ViewedRun

Values = dict[str, Any]
MASKS = 512
"""Random masks: half as many as the command, for somebody waits."""
CHANCES = 5
"""Random orders that an explanation must beat."""


def explain_run(run: ViewedRun, raw: Any, method: Method, word: int | None, stopped: Callable[[], bool]) -> Values:
    """Scores of places, and the check: the score that is lost without the most important ones, beside random ones."""
    subject = answer_subject(run.pipeline, raw, run.answer, word=word)

    def watch(_: Estimate) -> bool:
        return stopped()

    found = explained(subject, method, 0, MASKS, watch)
    mine = found.curves().comprehensiveness
    others = [explained(subject, "random", seed).curves().comprehensiveness for seed in range(CHANCES)]
    pieces = run.pipeline.forced(run.answer).pieces
    return {
        "words": [pieces.name(group) for group in pieces.groups()],
        "method": found.method,
        "text": found.text,
        "axis": axis_values(found.axis),
        "values": _plain(found.values_P),
        "errors": None if found.errors_P is None else _plain(found.errors_P),
        "score": found.score,
        "masks": found.masks,
        "check": {"lost": mine, "random": float(np.mean(others)), "passed": bool(mine > max(others))},
    }


def _plain(values_P: np.ndarray) -> list[float]:
    rounded: list[float] = np.round(np.asarray(values_P, dtype=np.float64).reshape(-1), 6).tolist()
    return rounded

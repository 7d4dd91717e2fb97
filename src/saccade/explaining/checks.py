"""Does a method point at what matters? What it points at is covered over many inputs, and compared with covering places
at random."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade.errors import UserError
from saccade.explaining.boxes import BlackBox, answer_subject
from saccade.explaining.curves import Curves, curves
from saccade.explaining.explain import Method, explained
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.pipeline import Pipeline
from saccade.runtime.contract import Floats

MEASURES: Mapping[str, int] = {"deletion": -1, "insertion": 1, "sufficiency": -1, "comprehensiveness": 1}
"""What is measured, and whether more or less of it is better."""
RANDOM_ORDERS = 5
"""Over which random removals are averaged."""
RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class MethodCheck:
    """One measure of one method over many inputs."""

    method: Method
    measure: str
    values_I: Floats
    """Of each input."""
    random_I: Floats
    """The same for random removals."""

    @property
    def value(self) -> float:
        """The mean."""
        return float(self.values_I.mean())

    @property
    def gain_I(self) -> Floats:
        """How much better than random each input is, whether more or less is better."""
        gain: Floats = MEASURES[self.measure] * (self.values_I - self.random_I)
        return gain

    @property
    def interval(self) -> tuple[float, float]:
        """Of the mean gain, 95 %, by drawing the inputs again (bootstrap)."""
        random = np.random.default_rng(0)
        means = self.gain_I[random.integers(len(self.gain_I), size=(RESAMPLES, len(self.gain_I)))].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975]).tolist()
        return low, high

    @property
    def verdict(self) -> str:
        """better, worse or not to be told from random."""
        low, high = self.interval
        return "better" if low > 0 else "worse" if high < 0 else "as random"

    def record(self) -> Values:
        """As plain values."""
        low, high = self.interval
        record: Values = {"method": self.method, "measure": self.measure, "value": round(self.value, 5)}
        record |= {"random": round(float(self.random_I.mean()), 5), "gain": round(float(self.gain_I.mean()), 5)}
        return record | {
            "low": round(low, 5),
            "high": round(high, 5),
            "verdict": self.verdict,
            "inputs": len(self.gain_I),
        }


def check(
    pipeline: Pipeline[Any, Any],
    raws: Sequence[Any],
    answers: Sequence[Answer],
    methods: Sequence[Method],
    *,
    masks: int,
    seed: int = 0,
) -> Iterator[list[MethodCheck]]:
    """The table of all methods, once after each input; the last one is of all. Inputs with fewer than three places say
    nothing and are left out."""
    found: dict[Method, list[Curves]] = {method: [] for method in methods}
    random: list[list[Curves]] = []
    for number, (raw, answer) in enumerate(zip(raws, answers, strict=True)):
        try:
            subject = answer_subject(pipeline, raw, answer)
            if subject.cover.places < 3:
                continue
            rows = {method: _curves(subject, method, masks, seed + number) for method in methods}
            orders = [_curves(subject, "random", 0, seed + RANDOM_ORDERS * number + k) for k in range(RANDOM_ORDERS)]
        except UserError:
            if not random:  # the first one tells whether it can be done at all
                raise
            continue
        for method, one in rows.items():
            found[method].append(one)
        random.append(orders)
        yield _table(found, random)


def _curves(subject: BlackBox, method: Method, masks: int, seed: int) -> Curves:
    explanation = explained(subject, method, seed, masks)
    return curves(subject.box, subject.cover, explanation.values_P)


def _table(found: Mapping[Method, Sequence[Curves]], random: Sequence[Sequence[Curves]]) -> list[MethodCheck]:
    table = []
    for method, some in found.items():
        for measure in MEASURES:
            values = np.array([getattr(one, measure) for one in some])
            plain = np.array([np.mean([getattr(one, measure) for one in orders]) for orders in random])
            table.append(MethodCheck(method, measure, values, plain))
    return table

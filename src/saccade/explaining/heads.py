"""What each head costs, and what it does: measured over many inputs, never guessed from its name."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saccade.axes import BEGIN_LABEL, END_LABEL, Axis, Pieces
from saccade.errors import UserError
from saccade.explaining.interventions import forced_under
from saccade.explaining.places import AttentionLayer, all_heads, attention_layers
from saccade.look.head_grid import entropy_share
from saccade.look.record import LayerLooks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.pipeline import Pipeline
from saccade.runtime.contract import Floats
from saccade.sites import Edit

ROLES = ("previous", "same place", "next", "same word", "punctuation", "marks", "diagonal")
"""What a head may look at: its neighbours, itself, the same word elsewhere, commas and stops, the beginning and the
end, and, of what was read while writing, the place that lies as far along."""
CLEAR, CLEARER = 0.4, 0.3
"""A role is a head's if this share of its weight is there, and of the way from looking everywhere alike to looking
nowhere else it has gone so far."""
SPREAD = 0.85
"""Share of the largest entropy from which a head is said to look everywhere."""
NEAR = 1.5
"""Positions from the diagonal."""


@dataclass
class HeadStudy:
    """One head over many inputs."""

    layer: AttentionLayer
    head: int
    """Counted from 1."""
    costs: list[float] = field(default_factory=list)
    """For each input what the log-probability of the output loses without it, per piece."""
    shares: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """By role, for each input the share of its weight and that of looking everywhere alike."""
    entropies: list[float] = field(default_factory=list)

    @property
    def label(self) -> str:
        """As it is typed: `cross:2.3`."""
        return self.layer.head(self.head)

    @property
    def cost(self) -> float:
        """The mean over inputs, in nats a piece."""
        return float(np.mean(self.costs))

    @property
    def error(self) -> float:
        """The standard error of the cost."""
        return float(np.std(self.costs) / max(1, len(self.costs)) ** 0.5)

    @property
    def entropy(self) -> float:
        """Share of the largest."""
        return float(np.mean(self.entropies))

    def share(self, role: str) -> tuple[float, float]:
        """Of its weight, and of looking everywhere alike."""
        found = np.array(self.shares.get(role) or [(0.0, 0.0)])
        weight, chance = found.mean(axis=0).tolist()
        return weight, chance

    @property
    def role(self) -> str:
        """What it does, as far as that is clear."""
        shares = {role: self.share(role) for role in self.shares}
        clear = {role: w for role, (w, chance) in shares.items() if w >= CLEAR and w - chance >= CLEARER * (1 - chance)}
        if clear:
            return max(clear, key=lambda role: clear[role])
        return "spread" if self.entropy >= SPREAD else "–"

    def record(self) -> Values:
        """As plain values."""
        record: Values = {"head": self.label, "layer": self.layer.name, "number": self.head, "kind": self.layer.kind}
        record |= {"cost": round(self.cost, 5), "error": round(self.error, 5), "role": self.role}
        record |= {"entropy": round(self.entropy, 4), "inputs": len(self.costs)}
        return record | {"shares": {role: round(self.share(role)[0], 4) for role in self.shares}}


def study_heads(pipeline: Pipeline[Any, Any], answers: Sequence[Answer]) -> Iterator[list[HeadStudy]]:
    """The table of all heads, after each answer; the last one is of all."""
    if not answers:
        raise UserError("no inputs are left to study heads on")
    layers = attention_layers(pipeline, answers[0])
    found = [HeadStudy(layer, head) for layer, head in all_heads(layers)]
    for answer in answers:
        plain = forced_under(pipeline, answer, Edit())
        looks = {one.name: one for one in answer.looks.layers}
        for one in found:
            edited = forced_under(pipeline, answer, Edit(without_heads=[(one.layer.name, one.head - 1)]))
            one.costs.append(float((plain.logprobs_IP - edited.logprobs_IP).mean()))
            if one.layer.name in looks:
                _look(one, looks[one.layer.name])
        yield found


def _look(study: HeadStudy, looks: LayerLooks) -> None:
    weights_TS = looks.weights_NTS[study.head - 1].astype(np.float64)
    study.entropies.append(entropy_share(weights_TS))
    for role, places_TS in role_places(looks).items():
        # Few words stand twice; all other roles are asked of every row.
        share = share_of(weights_TS, places_TS, causal=looks.kind == "decoder", some=role == "same word")
        if share is not None:
            study.shares.setdefault(role, []).append(share)


def share_of(
    weights_TS: Floats, places_TS: np.ndarray, *, causal: bool = False, some: bool = False
) -> tuple[float, float] | None:
    """The mean weight on these places, and that of looking everywhere alike. `some`: of those rows that have any."""
    seen_TS = np.tri(*weights_TS.shape) > 0 if causal else np.ones(weights_TS.shape, dtype=bool)
    has_T = (places_TS & seen_TS).any(axis=1)
    rows_T = has_T if some else np.full(len(has_T), bool(has_T.any()))
    if not rows_T.any():
        return None
    alike = (places_TS & seen_TS)[rows_T].sum(axis=1) / seen_TS[rows_T].sum(axis=1)
    return float((weights_TS[rows_T] * places_TS[rows_T]).sum(axis=1).mean()), float(alike.mean())


def role_places(looks: LayerLooks) -> dict[str, np.ndarray]:
    """For each role the places [T, S] that a head with it looks at."""
    rows, columns = looks.weights_NTS.shape[1:]
    i, j = np.arange(rows)[:, None], np.arange(columns)[None]
    found: dict[str, np.ndarray] = {}
    if looks.kind == "cross":
        slope = (columns - 1) / max(rows - 1, 1)
        found["diagonal"] = np.abs(j - i * slope) <= NEAR
    else:
        found |= {"previous": j == i - 1, "same place": j == i, "next": j == i + 1}
    found["marks"] = np.broadcast_to(_those(looks.columns, (BEGIN_LABEL, END_LABEL)), (rows, columns))
    if isinstance(looks.columns, Pieces):
        found["punctuation"] = np.broadcast_to(_punctuation(looks.columns), (rows, columns))
        if looks.kind != "cross":
            words = np.array([label.strip().lower() for label in looks.columns.labels])
            same = (words[:, None] == words[None]) & (i != j) & (words != "")[None]
            found["same word"] = same[:rows, :columns]
    return found


def _those(axis: Axis, labels: Sequence[str]) -> np.ndarray:
    return np.array([isinstance(axis, Pieces) and axis.labels[place] in labels for place in range(len(axis))])


def _punctuation(axis: Pieces) -> np.ndarray:
    marks = (BEGIN_LABEL, END_LABEL)
    return np.array(
        [bool(label.strip()) and label not in marks and not any(map(str.isalnum, label)) for label in axis.labels]
    )


def removed_in_order(studies: Sequence[HeadStudy]) -> list[tuple[str, Edit]]:
    """Edits that switch off more and more heads, the cheapest first; the last one leaves none."""
    ordered = sorted(studies, key=lambda one: one.cost)
    return [
        (one.label, Edit(without_heads=[(other.layer.name, other.head - 1) for other in ordered[: number + 1]]))
        for number, one in enumerate(ordered)
    ]

"""Interventions: a model answers as it is and with something taken away, and the first output is weighed in both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saccade.explaining.places import AttentionLayer, all_heads, attention_layers
from saccade.look.watch import watch
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced
from saccade.pipelines.pipeline import Pipeline, Request
from saccade.runtime.contract import Floats
from saccade.sites import Edit


@dataclass(frozen=True)
class Intervention:
    """One input answered twice: as the model is, and with heads, layers or positions taken away."""

    edit: Edit
    """What was taken away."""
    before: Answer
    """The answer of the model as it is, in exact arithmetic."""
    after: Answer | None
    """The answer under the edit; None where it was not asked for."""
    pieces: list[str]
    """What the first answer is made of."""
    before_P: Floats
    """The natural log of the probability of each piece of the first answer."""
    after_P: Floats
    """The same under the edit."""

    @property
    def change(self) -> float:
        """What the edit adds to the log-probability of the whole first answer: mostly it is below 0."""
        return float(self.after_P.sum() - self.before_P.sum())

    @property
    def changed(self) -> bool:
        """Whether another text came out."""
        return self.after is not None and self.after.text != self.before.text

    def record(self) -> Values:
        """As plain values."""
        rows = zip(self.pieces, self.before_P.tolist(), self.after_P.tolist(), strict=True)
        pieces = [{"piece": one, "before": round(a, 4), "after": round(b, 4)} for one, a, b in rows]
        record: Values = {"source": self.before.source, "before": self.before.text}
        if self.after is not None:
            record["after"] = self.after.text
        return record | {"change": round(self.change, 4), "pieces": pieces}


def intervene(
    pipeline: Pipeline[Any, Any],
    raw: Any,
    edit: Edit,
    *,
    request: Request | None = None,
    before: Answer | None = None,
    answer: bool = True,
) -> Intervention:
    """Answer an input with and without the edit. `before`: the first answer, if it is there already, or one that was
    given. `answer`: also under the edit, which takes longest; else only the first answer is weighed again.

    >>> translator = saccade.load("en-es")
    >>> found = intervene(translator, "this cat is very large", Edit(without_source=[1]))
    >>> "gato" in found.before.text, "gato" in found.after.text
    (True, False)
    """
    first = exactly(pipeline, raw, request=request) if before is None else before
    plain = forced_under(pipeline, first, Edit())
    edited = forced_under(pipeline, first, edit)
    second = exactly(pipeline, raw, edit, request=request) if answer else None
    return Intervention(edit, first, second, labels_of(plain), plain.logprobs_IP[0], edited.logprobs_IP[0])


def exactly(
    pipeline: Pipeline[Any, Any], raw: Any, edit: Edit | None = None, *, request: Request | None = None
) -> Answer:
    """The answer in the arithmetic that edits are made in, so that only the edit makes a difference."""
    with watch(pipeline, edit):
        found = pipeline.answer([raw], request or Request())[0]
    if isinstance(found, Exception):
        raise found
    first: Answer = found
    return first


def forced_under(pipeline: Pipeline[Any, Any], answer: Answer, edit: Edit) -> Forced:
    """How likely an answer is under an edit, piece by piece."""
    with watch(pipeline, edit):
        return pipeline.forced(answer)


def labels_of(forced: Forced) -> list[str]:
    """The pieces, a space before those that begin a word."""
    return list(forced.pieces.labels)


@dataclass(frozen=True)
class HeadRemoved:
    """What becomes of one answer without one head."""

    layer: AttentionLayer
    head: int
    """Counted from 1."""
    change_P: Floats
    """What its absence adds to the log-probability of each piece of the answer."""

    @property
    def label(self) -> str:
        """As it is typed: `cross:2.3`."""
        return self.layer.head(self.head)

    @property
    def change(self) -> float:
        """Of the whole answer."""
        return float(self.change_P.sum())

    def record(self) -> Values:
        """As plain values."""
        record: Values = {"head": self.label, "layer": self.layer.name, "number": self.head, "kind": self.layer.kind}
        record |= {"memory": self.layer.memory, "change": round(self.change, 4)}
        return record | {"changes": np.round(self.change_P.astype(float), 4).tolist()}


def sweep(
    pipeline: Pipeline[Any, Any], answer: Answer, *, layers: Sequence[AttentionLayer] | None = None
) -> Iterator[HeadRemoved]:
    """One head after the other is removed, and the answer is weighed without it: one row per head."""
    plain_P = forced_under(pipeline, answer, Edit()).logprobs_IP[0]
    for layer, head in all_heads(attention_layers(pipeline, answer) if layers is None else layers):
        edited = forced_under(pipeline, answer, Edit(without_heads=[(layer.name, head - 1)]))
        yield HeadRemoved(layer, head, edited.logprobs_IP[0] - plain_P)

"""What the page may ask: models, a run, a head, what is inside a layer, what each head is worth, a file to share."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.errors import UserError, WrongUse
from saccade.explaining.interventions import forced_under, labels_of, sweep
from saccade.explaining.places import attention_layers
from saccade.sites import Edit
from saccade.view.explanations import explain_run
from saccade.view.models import Models
from saccade.view.page import one_file
from saccade.view.recording import to_bytes
from saccade.view.runs import Ask, ViewedRun, look_inside, make_run
from saccade.view.sharing import shared

Values = dict[str, Any]
Send = Callable[[Values | bytes], None]
MOST_BYTES = 600 * 2**20
"""Of the weights of all runs that are kept; the latest one stays in any case."""
MOST_RUNS = 40


class Stopped(Exception):
    """The page wants no more of it."""


class AskHead(Record):
    run: str = Field(max_length=100)
    look: int = Field(ge=0, lt=100_000)
    plane: int = Field(ge=0, lt=10_000)


class AskInside(Record):
    run: str = Field(max_length=100)
    look: int = Field(ge=0, lt=100_000)
    head: int = Field(ge=0, lt=10_000)
    row: int = Field(ge=0, lt=10_000_000)


class AskSweep(Record):
    id: str = Field(max_length=100)
    run: str = Field(max_length=100)


class AskExplain(Record):
    id: str = Field(max_length=100)
    run: str = Field(max_length=100)
    method: Literal["rise", "occlusion", "attention", "rollout"] = "rise"
    word: int | None = Field(None, ge=1)
    """Of the output, counted from 1."""


class AskShare(Record):
    runs: tuple[str, ...] = Field(min_length=1, max_length=10)


class AskStop(Record):
    id: str = Field(max_length=100)


@dataclass
class Desk:
    """Keeps the latest runs. One thing is computed at a time: two would only wait for each other."""

    models: Models
    first: Values = field(default_factory=dict)
    """What the page shows when it opens: a model and an input."""
    runs: OrderedDict[str, ViewedRun] = field(default_factory=OrderedDict)
    stopped: set[str] = field(default_factory=set)
    busy: threading.Lock = field(default_factory=threading.Lock)
    inside: tuple[tuple[str, str], list[dict[str, Any]]] | None = None
    """The layer that was last looked into."""

    def __post_init__(self) -> None:
        self.answers: dict[str, Callable[[Values, Send], None]] = {
            "models": self.list_models,
            "run": self.run,
            "head": self.head,
            "inside": self.look_inside,
            "sweep": self.sweep,
            "explain": self.explain,
            "cancel": self.cancel,
            "share": self.share,
        }

    def list_models(self, _: Values, send: Send) -> None:
        send({"models": self.models.values(), "first": self.first})

    def run(self, asked: Values, send: Send) -> None:
        ask = Ask.of(asked, where="run")

        def report(step: Values) -> None:
            if ask.id in self.stopped:
                raise Stopped
            send({"step": step})

        with self.busy:
            report({"text": "", "step": 0, "part": 1})
            parent = self.runs.get(ask.parent) if ask.parent is not None else None
            run = make_run(self.models, ask, parent, report)
        self._keep(run)
        send(run.to_bytes())

    def _keep(self, run: ViewedRun) -> None:
        self.runs[run.ask.id] = run
        while len(self.runs) > 1 and (
            len(self.runs) > MOST_RUNS or sum(one.nbytes for one in self.runs.values()) > MOST_BYTES
        ):
            self.runs.popitem(last=False)

    def kept(self, name: str) -> ViewedRun:
        """A run by its name."""
        if name not in self.runs:
            raise UserError("this run is no longer kept: run its input again")
        return self.runs[name]

    def head(self, asked: Values, send: Send) -> None:
        """One head's weights, or, after the last head, their mean."""
        ask = AskHead.read(asked, where="head")
        run = self.kept(ask.run)
        if ask.look >= len(run.planes) or ask.plane >= len(run.planes[ask.look]):
            raise WrongUse(f"there is no head {ask.plane} of look {ask.look}")
        send(to_bytes({"look": ask.look, "plane": ask.plane}, {"plane": run.planes[ask.look][ask.plane]}))

    def look_inside(self, asked: Values, send: Send) -> None:
        """What one head computed for one row: its query, all keys and values, scores, weights, context."""
        ask = AskInside.read(asked, where="inside")
        run = self.kept(ask.run)
        if ask.look >= len(run.layers) or run.layers[ask.look].name == "rollout":
            raise WrongUse("a roll-out is computed of all layers, and has no queries and keys")
        layer = run.layers[ask.look]
        key = (ask.run, layer.name)
        with self.busy:
            if self.inside is None or self.inside[0] != key:
                self.inside = (key, look_inside(run, layer.name))
        found = self.inside[1]
        if layer.part >= len(found) or ask.head >= len(found[layer.part]["q"]):
            raise UserError("this layer keeps no queries and keys")
        arrays = found[layer.part]
        if ask.row >= arrays["q"].shape[1]:
            raise WrongUse(f"row {ask.row} of {arrays['q'].shape[1]}")
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        one = {
            name: arrays[name][ask.head] if name in ("k", "v") else arrays[name][ask.head, ask.row] for name in arrays
        }
        plain = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in one.items()}
        off = ask.head in run.edit.heads_off(layer.name, shapes["q"][0])
        send(to_bytes({"shapes": shapes, "head": ask.head, "row": ask.row, "off": off}, plain))

    def sweep(self, asked: Values, send: Send) -> None:
        """One head after the other is switched off, and the run's own text weighed without it."""
        ask = AskSweep.read(asked, where="sweep")
        run = self.kept(ask.run)
        with self.busy:
            plain = forced_under(run.pipeline, run.answer, Edit())
            layers = attention_layers(run.pipeline, run.answer)
            total = sum(layer.heads for layer in layers)
            send({"pieces": labels_of(plain), "total": total})
            for removed in sweep(run.pipeline, run.answer, layers=layers):
                if ask.id in self.stopped:
                    raise Stopped
                changes = removed.change_P.tolist()
                send({"row": {"site": removed.layer.name, "head": removed.head - 1, "changes": changes}})
        send({"done": True})

    def explain(self, asked: Values, send: Send) -> None:
        """What of the input mattered."""
        ask = AskExplain.read(asked, where="explain")
        run = self.kept(ask.run)
        raw = run.ask.raw(self.models.offer(run.ask.model).takes)
        with self.busy:
            send(explain_run(run, raw, ask.method, ask.word, lambda: ask.id in self.stopped))

    def cancel(self, asked: Values, send: Send) -> None:
        """Ends what runs under this name at its next step."""
        self.stopped.add(AskStop.read(asked, where="cancel").id)
        send({"stopped": True})

    def share(self, asked: Values, send: Send) -> None:
        """Runs as one page that needs no server."""
        ask = AskShare.read(asked, where="share")
        runs = [self.kept(name) for name in ask.runs]
        title = f"Saccade: {runs[0].ask.text[:60] or runs[0].ask.model}"
        content, left_out = shared(runs)
        send({"page": one_file(content, title), "left_out": left_out})

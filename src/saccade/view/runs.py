"""One input through one model, perhaps changed: the answer, how it was written, where the model looked."""

import base64
import binascii
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.phonemes import as_phonemes
from saccade.decode.listen import listening
from saccade.errors import UserError, WrongUse
from saccade.explaining.interventions import forced_under, labels_of
from saccade.look.record import LayerLooks, Looks
from saccade.pipelines.answer import Answer
from saccade.pipelines.completer import Completion
from saccade.pipelines.corrector import Correction
from saccade.pipelines.picture_writer import PictureAnswer
from saccade.pipelines.pipeline import Pipeline
from saccade.pipelines.pronouncer import Pronunciation
from saccade.pipelines.transcriber import Transcript
from saccade.pipelines.translator import Translation
from saccade.runtime.contract import Floats
from saccade.runtime.watch import ArraysHeard, watching
from saccade.sites import Edit
from saccade.view.architecture import parts_of
from saccade.view.changes import MOST_CHANGES, Change, edit_from
from saccade.view.models import Models, model_of, vocabulary_of
from saccade.view.recording import looks_values, planes, spectrogram, to_bytes, with_roll_out
from saccade.view.written import Searches

Values = dict[str, Any]
LONGEST_INPUT = 100_000
LARGEST_FILE = 20 * 2**20
SENT_AT_ONCE = 3 * 2**20
"""Bytes of weights that come with the answer; of larger ones a head comes when it is looked at."""
DEFAULT_TOKENS = 40
"""That a language model writes."""
SCORES = {
    "translation": "log-probability with length penalty",
    "pronunciation": "log-probability with length penalty",
    "correction": "log-probability with length penalty",
    "language": "log-probability",
}


class Ask(Record):
    """What the page asks."""

    id: str = Field(max_length=100, pattern=r"^[A-Za-z0-9_-]+$")
    parent: str | None = Field(None, max_length=100)
    """The run that this one changes or goes on from."""
    model: str = Field(max_length=4_000)
    text: str = Field("", max_length=LONGEST_INPUT)
    """The text, or the question about a picture."""
    file: str = Field("", max_length=4 * LARGEST_FILE // 3 + 4)
    """A picture or a sound, base64."""
    changes: tuple[Change, ...] = Field((), max_length=MOST_CHANGES)
    prefix: str = Field("", max_length=LONGEST_INPUT)
    """What the answer begins with."""
    seed: int | None = Field(None, ge=0, lt=2**40)
    beam: int | None = Field(None, ge=1, le=50)
    tokens: int = Field(DEFAULT_TOKENS, ge=1, le=4_000)

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> "Ask":
        """A plain table; of what is too long only the length is said."""
        for name, longest in (("text", LONGEST_INPUT), ("prefix", LONGEST_INPUT), ("file", 4 * LARGEST_FILE // 3 + 4)):
            given = values.get(name)
            if isinstance(given, str) and len(given) > longest:
                raise WrongUse(f"{name} of {len(given):,} characters; at most {longest:,} are read")
        return cls.read(values, where=where)

    def raw(self, takes: str) -> Any:
        """The input as a pipeline reads it."""
        if takes in ("text", "pair of texts"):
            return self.text
        try:
            content = base64.b64decode(self.file, validate=True)
        except (binascii.Error, ValueError):
            raise WrongUse("the file came damaged: it is not base64") from None
        if not content:
            raise WrongUse("this model reads a file: drop one, or choose one")
        return (content, self.text) if "question" in takes else content


@dataclass
class ViewedRun:
    """What is kept of a run, so that heads can be shown and changes compared."""

    ask: Ask
    edit: Edit
    pipeline: Pipeline[Any, Any]
    answer: Answer
    layers: list[LayerLooks]
    planes: list[np.ndarray]
    record: Values
    arrays: dict[str, np.ndarray]

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in self.planes)

    def to_bytes(self) -> bytes:
        return to_bytes(self.record, self.arrays)

    def written(self) -> list[list[int]]:
        return written_tokens(self.answer)


def make_run(models: Models, ask: Ask, parent: ViewedRun | None, report: Callable[[Values], None]) -> ViewedRun:
    """Answer and look, under the changes that are asked for. `parent`: the run whose text is weighed under them.
    `report` hears of each step, and may raise to end it."""
    offer, pipeline = models.offer(ask.model), models.open(ask.model)
    began = time.perf_counter()
    edit, searches = edit_from(ask.changes), Searches(vocabulary_of(pipeline), report)
    if offer.task == "pronunciation":
        searches.say = as_phonemes
    raw, options = ask.raw(offer.takes), _options(pipeline, ask)
    if ask.prefix and isinstance(raw, str) and offer.task == "language":
        raw = raw + ask.prefix
    exact = pipeline.choice.how == "exact" or bool(ask.changes)
    with listening(searches):
        answer = _answer(pipeline, raw, options, edit if exact else None)
    looks, note = _looks(answer, edit)
    layers = with_roll_out(looks)
    if ask.changes and 1 + max((one.part for one in layers), default=0) > 1:
        hidden = any(change.kind == "hide" for change in ask.changes)
        note = "a hidden position is hidden in every sentence of the input" if hidden else note
    kept = [planes(one.weights_NTS) for one in layers]
    found, arrays = looks_values(layers, kept, SENT_AT_ONCE)
    record = {
        "run": _described(ask, offer.task, offer.digest, answer, exact, time.perf_counter() - began),
        **found,
        "steps": [searches.values(tokens) for tokens in written_tokens(answer)],
        "written": [len(tokens) for tokens in written_tokens(answer)],
        "finished": [searches.finished(tokens) for tokens in written_tokens(answer)],
        "architecture": parts_of(model_of(pipeline).config),
    }
    if parent is not None and parent.pipeline is pipeline:
        record["weighed"] = _weighed(parent, edit)
    if isinstance(answer, Correction) and any(one.text not in answer.text for one in answer.parts):
        note = "the looks are of what the model wrote; of that only the changes it is sure of are taken"
    record["run"]["notes"] = [*answer.warnings, *([note] if note else [])]
    if (image := _picture(answer)) is not None:
        arrays["picture"] = image
    if offer.takes == "sound":
        arrays["sound"] = np.frombuffer(raw, dtype=np.uint8)  # to be played
        record["sounds"] = [{"start": one.start, "seconds": one.step * len(one.frames_TF)} for one in looks.sounds]
        arrays |= {f"mel{part}": spectrogram(one.frames_TF) for part, one in enumerate(looks.sounds)}
    return ViewedRun(ask, edit, pipeline, answer, layers, kept, record, arrays)


def _weighed(parent: ViewedRun, edit: Edit) -> Values | None:
    """How likely the parent's text is under other changes, piece by piece: what can be compared."""
    try:
        before = forced_under(parent.pipeline, parent.answer, parent.edit)
        after = forced_under(parent.pipeline, parent.answer, edit)
    except UserError:
        return None
    return {
        "run": parent.ask.id,
        "pieces": labels_of(before),
        "before": before.logprobs_IP[0].tolist(),
        "after": after.logprobs_IP[0].tolist(),
        "change": float(after.total_I[0] - before.total_I[0]),
    }


class _Forgets(list[Any]):
    """Looks of single steps are not wanted: all of them come in one pass at the end."""

    def append(self, _: Any) -> None:
        pass


def _answer(pipeline: Pipeline[Any, Any], raw: Any, options: Values, edit: Edit | None) -> Answer:
    if edit is None:
        answer: Answer = pipeline(raw, **options)
        return answer
    with watching(edit) as heard:
        heard.looks = _Forgets()
        changed: Answer = pipeline(raw, **options)
    return changed


def _looks(answer: Answer, edit: Edit) -> tuple[Looks, str]:
    """Where the model looked; and why not, if it did not."""
    try:
        with watching(edit):
            assert answer.pipeline is not None
            return answer.pipeline.look(answer), ""
    except UserError as error:
        return Looks(()), str(error)


def look_inside(run: ViewedRun, site: str) -> list[dict[str, Floats]]:
    """All arrays of one layer [N, T or S, H], for every part of the input."""
    heard: ArraysHeard
    with watching(run.edit, inside=site) as heard:
        run.pipeline.look(run.answer)
    parts = 1 + max((one.part for one in run.layers), default=0)
    each = max(1, len(heard.arrays) // parts)
    found = []
    for first in range(0, len(heard.arrays), each):
        calls = heard.arrays[first : first + each]
        # A recurrent decoder looks step by step, always at the same keys.
        found.append(
            {
                name: calls[0][name][0] if name in ("k", "v") else np.concatenate([call[name][0] for call in calls], 1)
                for name in calls[0]
            }
        )
    return found


def written_tokens(answer: Answer) -> list[list[int]]:
    """What was written for every part of the input."""
    match answer:
        case Translation():
            return [sentence.hypothesis.tokens for sentence in answer.sentences]
        case Pronunciation() | Correction():
            return [tokens for part in answer.parts for tokens in written_tokens(part)]
        case Transcript():
            return [stretch.ids for stretch in answer.stretches]
        case Completion() | PictureAnswer():
            return [answer.ids]
    return []


def _options(pipeline: Pipeline[Any, Any], ask: Ask) -> Values:
    """What this pipeline knows of what is asked."""
    asked: Values = {"prefix": ask.prefix, "seed": ask.seed, "beam": ask.beam, "max_tokens": ask.tokens}
    known = {name: value for name, value in asked.items() if name in pipeline.options and value not in (None, "")}
    if "best" in pipeline.options and vocabulary_of(pipeline) is not None and "beam" not in pipeline.options:
        known["best"] = 5  # of what is guessed or sorted, the next likeliest
    return known


def _described(ask: Ask, task: str, digest: str, answer: Answer, exact: bool, seconds: float) -> Values:
    kind = "file" if ask.file else "text"
    return {
        "id": ask.id,
        "parent": ask.parent,
        "model": ask.model,
        "task": task,
        "digest": digest,
        "input": {"kind": kind, "text": ask.text, "sha256": hashlib.sha256(ask.file.encode()).hexdigest()[:12]},
        "changes": [change.table() for change in ask.changes],
        "prefix": ask.prefix,
        "seed": ask.seed,
        "strategy": {"beam": ask.beam, "tokens": ask.tokens},
        "text": answer.text,
        "score": answer.score,
        "score_kind": SCORES.get(task, "probability"),
        "logprob": getattr(answer, "logprob", None),
        "others": [{"text": one.text, "score": one.score} for one in answer.others],
        "arithmetic": "exact" if exact else answer.pipeline.choice.how if answer.pipeline is not None else "",
        "seconds": round(seconds, 4),
    }


def _picture(answer: Answer) -> np.ndarray | None:
    """The picture that was looked at, as the bytes of a PNG."""
    if answer.image is None:
        return None
    written = BytesIO()
    answer.image.convert("RGB").save(written, "PNG")
    return np.frombuffer(written.getvalue(), dtype=np.uint8)

"""A model that follows commands: a command in words in, the actions out (listen, attend and walk)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from saccade.axes import Actions, Pieces
from saccade.data.misspell import distance
from saccade.data.ragged import in_order
from saccade.data.scan import check_command
from saccade.decode.row import RowRequest
from saccade.decode.session import Session
from saccade.errors import UserError
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced
from saccade.pipelines.pipeline import Pipeline, Report, Request, unreported
from saccade.pipelines.table import TASKS
from saccade.pipelines.translator import Translation, Translator
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sources.text import TextItem, TextSource, pad_sources

SHORTEST_MENDED = 3
"""Letters; in a shorter word one wrong letter says too little."""
Language = Literal["", "scan"]
"""What commands there are: any of known words, or those of SCAN's grammar."""


class WalkerSettings(TaskSettings):
    """What a model folder says about the commands its model was trained on."""

    words: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(default_factory=list, max_length=100_000)
    """The words of commands, in order."""
    language: Language = ""
    """The grammar that a command must keep to."""


@dataclass(frozen=True)
class Walk(Answer):
    """What is done after a command; its text is the actions with spaces between them. Its score is the log-probability
    with the length penalty."""

    actions: list[str]
    """Step by step."""
    read: str
    """The command as it was read: in small letters, without punctuation, near misspellings mended."""
    mended: Mapping[str, str]
    """Words that were read as others, by what was typed."""
    translation: Translation = field(repr=False)
    """What was written."""

    @property
    def warnings(self) -> list[str]:
        cut_off = any(not sentence.hypothesis.finished for sentence in self.translation.sentences)
        told = [f"read {typed!r} as {word!r}" for typed, word in self.mended.items()]
        return told + ([f"cut off after {len(self.actions)} actions"] if cut_off else [])

    def record(self) -> Values:
        record: Values = {"source": self.source, "read": self.read, "actions": self.actions}
        record["score"] = round(self.score, 5)
        if self.mended:
            record["mended"] = dict(self.mended)
        if self.others:
            record["best"] = [{"actions": one.actions, "score": round(one.score, 5)} for one in self.best]
        return record


@dataclass(frozen=True)
class CommandReader:
    """Commands as the model knows them. What it does not know is refused by name, together with what it knows."""

    words: Sequence[str]
    """All known words; none: any word may be tried."""
    language: Language = ""

    @classmethod
    def of(cls, settings: WalkerSettings) -> "CommandReader":
        return cls(tuple(settings.words), settings.language)

    def read(self, command: str) -> tuple[str, dict[str, str]]:
        """The command in known words, and the words that were mended."""
        typed = plain_words(command)
        if not typed:
            raise UserError(f"there is no command in {command[:60]!r}; known words: {', '.join(self.words[:40])}")
        mended: dict[str, str] = {}
        unknown = []
        for word in dict.fromkeys(typed):
            if not self.words or word in self._known:
                continue
            near = self._near(word)
            if near is None:
                unknown.append(word)
            else:
                mended[word] = near
        if unknown:
            named = ", ".join(repr(word[:30]) for word in unknown[:5]) + (" …" if len(unknown) > 5 else "")
            more = "" if len(self.words) <= 40 else " …"
            raise UserError(f"{named}: not among the words of this model; it knows {', '.join(self.words[:40])}{more}")
        read = " ".join(mended.get(word, word) for word in typed)
        if self.language == "scan":
            check_command(read)
        return read, mended

    def insist(self, command: str) -> None:
        """Every word must be known as it stands: nobody may have meant another one."""
        if unknown := [word for word in command.split() if word not in self._known]:
            raise UserError(
                f"{unknown[0][:30]!r}: not among the words of this model; it knows {', '.join(self.words[:40])}"
            )

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.words)

    def _near(self, word: str) -> str | None:
        """The only known word that is one slip away: a letter too many, too few, wrong, or two that changed places."""
        if not SHORTEST_MENDED <= len(word) <= 30:
            return None
        some = [known for known in self.words if len(known) >= SHORTEST_MENDED and abs(len(known) - len(word)) <= 1]
        near = [known for known in some if distance(known, word) == 1]
        return near[0] if len(near) == 1 else None


def plain_words(command: str) -> list[str]:
    """The words of a command in small letters, without the punctuation around them."""
    return [word for piece in command.lower().split() if (word := piece.strip(".,;:!?\"'()"))]


class Walker(Pipeline[TextItem, Walk]):
    """Follows commands. A translator of words into actions is asked.

    >>> walker = saccade.load("runs/walker")  # doctest: +SKIP
    >>> walker("turn left twice and jump").actions  # doctest: +SKIP
    ['I_TURN_LEFT', 'I_TURN_LEFT', 'I_JUMP']
    """

    options: ClassVar[frozenset[str]] = frozenset({"beam", "alpha", "best"})

    def __init__(self, translator: Translator, reader: CommandReader) -> None:
        self.translator, self.reader = translator, reader

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Walker":
        """The model of a folder."""
        return cls(Translator.open(folder, how, whole=True), CommandReader.of(folder.settings(WalkerSettings)))

    @property
    def source(self) -> TextSource:
        return cast(TextSource, TASKS["walking"].source)

    @property
    def choice(self) -> Choice:
        return self.translator.choice

    def answer_items(
        self, items: Sequence[TextItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Walk | UserError]:
        read = [self._read(item.text) for item in items]
        kept = [place for place, one in enumerate(read) if not isinstance(one, UserError)]
        commands = [one[0] for one in read if not isinstance(one, UserError)]
        asked, numbers = [requests[place] for place in kept], [places[place] for place in kept]
        found = iter(self.translator.answer(commands, asked, numbers=numbers, report=report))
        answers: list[Walk | UserError] = []
        for item, one in zip(items, read, strict=True):
            written = one if isinstance(one, UserError) else next(found)
            if isinstance(one, UserError) or isinstance(written, UserError):
                answers.append(cast(UserError, written))
            else:
                answers.append(self._walk(item.text, *one, written))
        return answers

    def _read(self, command: str) -> tuple[str, dict[str, str]] | UserError:
        try:
            return self.reader.read(command)
        except UserError as error:
            return error

    def _walk(self, source: str, read: str, mended: Mapping[str, str], written: Translation) -> Walk:
        others = [self._walk(source, read, mended, one) for one in written.others]
        actions = written.text.split()
        return Walk(source, written.text, written.score, actions, read, mended, written, others=others, pipeline=self)

    def look(self, answer: Walk) -> Looks:
        """Words, and the action that was chosen while looking at them."""
        return self.translator.look_as(answer.translation, lambda read: read, _as_actions)

    def forced(self, answer: Walk, inputs: Sequence[str] | None = None) -> Forced:
        # Inputs are read as they are: a command without one of its words need not be one.
        return self.translator.forced(answer.translation, inputs)

    def with_lengths(
        self, commands: Sequence[str], lengths: Sequence[int], report: Report = unreported
    ) -> list[list[str]]:
        """The actions where it is told how many there are: the end mark is forbidden before (the oracle of Lake and
        Baroni 2018, experiment 2). Greedy."""
        model, vocabulary = self.translator.model, self.translator.vocabulary
        ids = vocabulary.read([self.reader.read(command)[0] for command in commands])
        sizes = np.array([len(one) + length for one, length in zip(ids, lengths, strict=True)], dtype=np.int64)
        written: dict[int, list[str]] = {i: [] for i, length in enumerate(lengths) if length < 1}
        asked = np.flatnonzero(np.array(lengths) > 0)
        for some in in_order(sizes[asked], Translator.batch_tokens):
            chosen = asked[some].tolist()
            session = Session(model.decoder, vocabulary.marks)
            session.forbidden = (*session.forbidden, vocabulary.marks.end)
            memory = model.read(*pad_sources([ids[i] for i in chosen], vocabulary.marks))
            texts = session.add_all([RowRequest([vocabulary.marks.start], lengths[i]) for i in chosen], memory)
            while session:
                session.step()
            written |= {i: vocabulary.decode(text.tokens).split() for i, text in zip(chosen, texts, strict=True)}
            report(len(written), len(commands))
        return [written[i] for i in range(len(commands))]


def _as_actions(written: Pieces) -> Actions:
    return Actions(labels=tuple(label.strip() for label in written.labels))


def known_words(commands: Iterable[str]) -> list[str]:
    """The words of commands, each once, in order."""
    return sorted({word for command in commands for word in command.split()})

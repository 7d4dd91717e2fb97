"""What a loaded model is to its users, the commands and Python: an input in, an answer out; a list in, a list out."""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypedDict, TypeVar, Unpack, overload

import numpy as np

from saccade.errors import UserError, WrongUse
from saccade.pipelines.answer import Answer
from saccade.pipelines.forced import Forced
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sources.source import Item, Source, shown

if TYPE_CHECKING:
    from saccade.look.record import Looks

One = TypeVar("One", bound=Answer)
Made = TypeVar("Made")
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(["beam", "best", "seed", "top_k", "max_tokens"], ((int,), "a whole number")),
    **dict.fromkeys(["alpha", "temperature", "top_p", "repetition"], ((int, float), "a number")),
    "prefix": ((str,), "a string"),
    "stop": ((tuple,), "a string or several"),
}


@dataclass(frozen=True)
class Request:
    """How a pipeline is asked, as far as it differs from the model's own settings. A task takes what concerns it."""

    beam: int | None = None
    """Beam width; 1 is greedy search."""
    alpha: float | None = None
    """Length penalty; higher values favour longer texts."""
    best: int = 1
    """How many answers per input."""
    prefix: str = ""
    """What the answer must begin with."""
    temperature: float | None = None
    """Sample at this temperature; below 1 favours likely tokens, 0 takes the likeliest. None: as the model does it."""
    seed: int | None = None
    """Random seed for sampling."""
    top_k: int | None = None
    """Sample from this many of the most likely tokens only."""
    top_p: float | None = None
    """Sample from the smallest set of tokens with this total probability."""
    repetition: float | None = None
    """Repetition penalty; above 1, tokens that occurred before become less likely."""
    stop: tuple[str, ...] = ()
    """Strings that end the answer; they are not part of it."""
    max_tokens: int | None = None
    """The longest answer, where the input does not decide it."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value, (kinds, words) = getattr(self, one.name), _KINDS[one.name]
            if (value is None and one.default is None) or (isinstance(value, kinds) and not isinstance(value, bool)):
                continue
            raise WrongUse(f"{one.name} is {words}, not {shown(value)}")
        if not all(isinstance(text, str) for text in self.stop):
            raise WrongUse(f"stop is a string or several, not {shown(self.stop)}")
        if self.best < 1:
            raise WrongUse(f"best must be at least 1, not {self.best}")


class Keywords(TypedDict, total=False):
    """The options of a call: the fields of `Request`, where `stop` may be one string."""

    beam: int | None
    alpha: float | None
    best: int
    prefix: str
    temperature: float | None
    seed: int | None
    top_k: int | None
    top_p: float | None
    repetition: float | None
    stop: str | Sequence[str]
    max_tokens: int | None


Requests = Request | Sequence[Request]
"""One for all inputs, or one for each."""
Report = Callable[[int, int], None]
"""Told how much is done, and of how much, while something takes its time."""


def unreported(done: int, total: int) -> None:
    """The report nobody reads."""


def request_of_each(requests: Requests, count: int) -> Sequence[Request]:
    """One request for every input."""
    if isinstance(requests, Request):
        return [requests] * count
    if len(requests) != count:
        raise WrongUse(f"{len(requests)} requests for {count} texts; give one for each, or one for all")
    return requests


def once_each(make: Callable[[Request], Made], requests: Sequence[Request]) -> list[Made]:
    """What is made of every input's request: once, where inputs share one."""
    made: dict[int, Made] = {}
    for request in requests:
        if id(request) not in made:
            made[id(request)] = make(request)
    return [made[id(request)] for request in requests]


@dataclass(frozen=True)
class Home:
    """Where a pipeline was loaded from, so that it can be loaded again."""

    path: Path
    name: str
    task: str
    how: How | None
    load: Callable[[str, How | None], Any]


class Pipeline(ABC, Generic[Item, One]):
    """A loaded model that does its task: what `saccade.load` returns. Each task says what it reads and how it answers.

    A pipeline that was loaded from a folder can be pickled: it is loaded again from there.
    """

    options: ClassVar[frozenset[str]] = frozenset({"best"})
    """The fields of `Request` that mean something to it."""
    at_once: ClassVar[int] = 256
    """Files that are read before the first of them is answered."""
    home: Home | None = None
    """None where it was not loaded from a folder."""

    @property
    @abstractmethod
    def source(self) -> Source[Item, Any]:
        """What it reads."""

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """How it runs, and why so."""

    @abstractmethod
    def answer_items(
        self, items: Sequence[Item], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> Sequence[One | UserError]:
        """An answer, or why there is none, for every item, each with a request of its own and its place in a longer
        input."""

    @abstractmethod
    def look(self, answer: One) -> "Looks":
        """Where the model looked when it gave this answer."""

    def forced(self, answer: One, inputs: Sequence[Any] | None = None) -> Forced:
        """How likely each piece of this answer is, the pieces before it given: for its own input, or, instead, for each
        of these. Under the edit of whoever watches."""
        raise UserError(f"a {type(self).__name__} does not tell how likely a given answer is")

    @overload
    def __call__(self, inputs: str | Path | bytes, **options: Unpack[Keywords]) -> One: ...

    @overload
    def __call__(self, inputs: list[Any], **options: Unpack[Keywords]) -> list[One]: ...

    @overload
    def __call__(self, inputs: Any, **options: Unpack[Keywords]) -> Any: ...

    def __call__(
        self,
        inputs: Any,
        *,
        beam: int | None = None,
        alpha: float | None = None,
        best: int = 1,
        prefix: str = "",
        temperature: float | None = None,
        seed: int | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition: float | None = None,
        stop: str | Sequence[str] = (),
        max_tokens: int | None = None,
    ) -> Any:
        """Answer one input; or several in a list, a tuple, a generator, whose answers are a list.

        The first input that cannot be answered is an error. Options (those that mean nothing to a model are refused):

            beam         beam width; 1 is greedy search
            alpha        length penalty; higher values favour longer texts
            best         how many answers per input, found as `answer.best`
            prefix       what the answer must begin with
            temperature  sample at this temperature; below 1 favours likely tokens, 0 takes the likeliest. Language
                         models sample at 0.8 by default
            seed         random seed for sampling; 0 by default
            top_k        sample from this many of the most likely tokens only
            top_p        sample from the smallest set of tokens with this total probability
            repetition   repetition penalty; above 1, tokens that occurred before become less likely
            stop         a string that ends the answer, or several
            max_tokens   the longest answer, in tokens; 200 by default
        """
        stops = (stop,) if not isinstance(stop, Iterable) or isinstance(stop, str) else tuple(stop)
        # In the order of the fields.
        request = Request(beam, alpha, best, prefix, temperature, seed, top_k, top_p, repetition, stops, max_tokens)
        self._insist_on_known(request)
        # An array of numbers is one input, a picture or samples; one of strings is several.
        if isinstance(inputs, np.ndarray) and (inputs.dtype.kind in "UO" or inputs.ndim == 0):
            inputs = inputs.tolist()
        one = self.source.is_one(inputs)
        if not one and (isinstance(inputs, bytes | bytearray | str) or not isinstance(inputs, Iterable)):
            raise WrongUse(f"{self.source.takes}, not {shown(inputs)}")
        answers = []
        for answer in self.answer([inputs] if one else inputs, request):
            if isinstance(answer, UserError):
                raise answer
            answers.append(answer)
        return answers[0] if one else answers

    def answer(
        self,
        inputs: Iterable[Any],
        requests: Requests,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[One | UserError]:
        """An answer, or why there is none, for every input; a request for all of them, or one for each. `numbers` are
        the inputs' places in a longer input."""
        raws = list(inputs)
        each = request_of_each(requests, len(raws))
        places = range(len(raws)) if numbers is None else numbers
        # Texts are small, and batches are the better the more there is to choose from. Files are not kept in memory.
        step = self.at_once if self.source.takes_files else max(1, len(raws))
        answers: list[One | UserError] = []
        for first in range(0, len(raws), step):
            part = slice(first, first + step)
            told = _part_of(report, first, len(raws)) if step < len(raws) else report
            answers += self._answer_part(raws[part], each[part], places[part], told)
        return answers

    def _answer_part(
        self, raws: Sequence[Any], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[One | UserError]:
        read = self.source.read_all(raws)
        items = {n: item for n, item in enumerate(read) if not isinstance(item, UserError)}
        if not items:
            return [item for item in read if isinstance(item, UserError)]
        found = self.answer_items(
            list(items.values()), [requests[n] for n in items], [places[n] for n in items], report
        )
        answers = dict(zip(items, found, strict=True))
        return [item if isinstance(item, UserError) else answers[n] for n, item in enumerate(read)]

    def _insist_on_known(self, request: Request) -> None:
        default = Request()
        for name in (one.name for one in fields(Request)):
            if name not in self.options and getattr(request, name) != getattr(default, name):
                known = ", ".join(sorted(self.options)) or "none"
                raise WrongUse(f"{name} means nothing to a {type(self).__name__}; its options: {known}")

    def __repr__(self) -> str:
        choice, home = self.choice, self.home
        what = "not of a folder" if home is None else f"{home.name!r}, {home.task}"
        return f"{type(self).__name__}({what}, {choice.engine} {choice.how})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, How | None]]:
        if self.home is None:
            raise pickle.PicklingError(f"this {type(self).__name__} was not loaded from a folder: save the model first")
        return self.home.load, (str(self.home.path), self.home.how)


def _part_of(report: Report, before: int, total: int) -> Report:
    """The report of a part as one of the whole."""
    return lambda done, _: report(before + done, total)

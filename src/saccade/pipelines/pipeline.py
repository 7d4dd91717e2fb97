"""What a loaded model is to its users, the commands and Python: a text in, an answer out; a list in, a list out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, overload

from saccade.errors import UserError, WrongUse
from saccade.look.record import Looks
from saccade.runtime.open import Choice

One = TypeVar("One", bound="Answer")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Request:
    """How a pipeline is asked, as far as it differs from the model's own settings. A task takes what concerns it."""

    beam: int | None = None
    alpha: float | None = None
    best: int = 1
    """How many answers per input."""
    prefix: str = ""
    """What the answer must begin with."""
    temperature: float | None = None
    seed: int | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition: float | None = None
    stop: tuple[str, ...] = ()
    """Strings that end the answer; they are not part of it."""
    max_tokens: int | None = None
    """The longest answer, where the input does not decide it."""


Requests = Request | Sequence[Request]
"""One for all texts, or one for each."""
Values = dict[str, object]
"""Plain values by name, as JSON has them."""
Report = Callable[[int, int], None]
"""Told how much is done, and of how much, while something takes its time."""


def unreported(done: int, total: int) -> None:
    """The report nobody reads."""


def request_of_each(requests: Requests, count: int) -> Sequence[Request]:
    """One request for every text."""
    if isinstance(requests, Request):
        return [requests] * count
    if len(requests) != count:
        raise WrongUse(f"{len(requests)} requests for {count} texts; give one for each, or one for all")
    return requests


def once_each(make: Callable[[Request], Made], requests: Sequence[Request]) -> list[Made]:
    """What is made of every text's request: once, where texts share one."""
    made: dict[int, Made] = {}
    for request in requests:
        if id(request) not in made:
            made[id(request)] = make(request)
    return [made[id(request)] for request in requests]


class Answer(Protocol):
    """What a pipeline says about one input."""

    @property
    def text(self) -> str: ...

    @property
    def score(self) -> float: ...

    @property
    def best(self) -> Sequence["Answer"]:
        """All answers that were asked for, this one first."""
        ...

    @property
    def looks(self) -> Looks:
        """Where the model looked."""
        ...

    def record(self) -> Values:
        """The answer as plain values, for `--format json`."""
        ...


class Pipeline(ABC, Generic[One]):
    """A loaded model that does its task: what `saccade.load` returns. Each task says how it answers."""

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """How it runs, and why so."""

    @overload
    def __call__(self, texts: str, **options: Any) -> One: ...

    @overload
    def __call__(self, texts: Sequence[str], **options: Any) -> list[One]: ...

    def __call__(self, texts: str | Sequence[str], **options: Any) -> One | list[One]:
        """Options are the fields of `Request`, such as beam=1; the first text that cannot be answered is an error."""
        if isinstance(options.get("stop"), str):
            options["stop"] = (options["stop"],)  # a string is a sequence of strings too, but not the one that is meant
        answers = []
        for answer in self.answer([texts] if isinstance(texts, str) else texts, Request(**options)):
            if isinstance(answer, UserError):
                raise answer
            answers.append(answer)
        return answers[0] if isinstance(texts, str) else answers

    @abstractmethod
    def answer(
        self,
        texts: Sequence[str],
        request: Requests,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[One | UserError]:
        """An answer, or why there is none, for every text; a request for all of them, or one for each. `numbers` are
        the texts' places in a longer input."""

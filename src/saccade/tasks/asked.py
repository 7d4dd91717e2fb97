"""How a pipeline is called from Python: a text in, an answer out; a list in, a list out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, overload

from torch import nn

from saccade.errors import UserError
from saccade.tasks.contract import Report, Request, unreported

One = TypeVar("One")


class Asked(ABC, Generic[One]):
    """What pipelines share; each says how it answers."""

    model: nn.Module

    @property
    def parameters(self) -> int:
        return sum(weight.numel() for weight in self.model.parameters())

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
        request: Request,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[One | UserError]:
        """An answer, or why there is none, for every text; `numbers` are the texts' places in a longer input."""

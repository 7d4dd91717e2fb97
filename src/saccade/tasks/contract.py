"""What a task is. The commands know tasks only through this."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from saccade.config import Record
from saccade.folder import ModelFolder
from saccade.train.loop import Outcome, TrainConfig, Work


class Recipe(Record):
    """What every recipe says, whatever its task."""

    task: str
    name: str
    train: TrainConfig


@dataclass(frozen=True)
class Request:
    """How a pipeline is asked: what all tasks understand. A task takes what concerns it."""

    beam: int | None = None
    alpha: float | None = None
    best: int = 1
    """How many answers per input."""
    prefix: str = ""
    """What the answer must begin with."""
    temperature: float | None = None
    seed: int = 0


class Answer(Protocol):
    """What a pipeline says about one input."""

    @property
    def text(self) -> str: ...

    @property
    def score(self) -> float: ...

    def record(self) -> dict[str, Any]:
        """The answer as plain values, for `--format json`."""
        ...


class Pipeline(Protocol):
    """A loaded model that does its task: what `saccade.load` returns."""

    def stream(self, inputs: Iterator[str], request: Request) -> Iterator[Any]:
        """An answer, or a UserError, for every input, in order."""
        ...


class Task(Protocol):
    """A task: from files to a trained model, and from a model folder to answers."""

    name: ClassVar[str]
    recipe: ClassVar[type[Recipe]]

    def recipe_for(self, files: Sequence[Path], out: Path) -> Recipe:
        """A recipe for a stranger's own files: sizes and a held-out part chosen from them."""
        ...

    def prepare(self, recipe: Any, folders: Sequence[Path], out: Path, *, resume: bool) -> Work:
        """Read the data, make or reuse the vocabulary, build the model."""
        ...

    def finish(self, recipe: Any, work: Work, outcome: Outcome, out: Path) -> None:
        """Write the trained model as a model folder."""
        ...

    def load(self, folder: ModelFolder) -> Pipeline: ...

    def evaluate(self, pipeline: Any, files: Sequence[Path], folders: Sequence[Path]) -> Iterator[Any]:
        """The figures of a model on held-out files: by default its recipe's test part."""
        ...

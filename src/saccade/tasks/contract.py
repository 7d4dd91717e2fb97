"""What a task is. The commands know tasks only through this."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from saccade.config import Record
from saccade.decode.pack import How
from saccade.errors import UserError
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder
from saccade.look.record import TextLooks
from saccade.train.loop import Outcome, TrainConfig, Work


class CardConfig(Record):
    """What the model's card says and no program can know."""

    summary: str = ""
    """What the model does, in a sentence."""
    data: str = ""
    """Where the training data comes from, with the attribution its licence asks for."""
    licence: str = "the licence of the training data"
    """Licence of the weights."""


class Recipe(Record):
    """What every recipe says, whatever its task."""

    task: str
    """Which task this is a recipe for."""
    name: str
    """The model's name on its card."""
    train: TrainConfig
    """How it is trained."""
    card: CardConfig = CardConfig()
    """What the card says."""


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


Report = Callable[[int, int], None]
"""Told how much is done, and of how much, while something takes its time."""


def unreported(done: int, total: int) -> None:
    """The report nobody reads."""


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
    def looks(self) -> TextLooks:
        """Where the model looked."""
        ...

    def record(self) -> dict[str, Any]:
        """The answer as plain values, for `--format json`."""
        ...


class Pipeline(Protocol):
    """A loaded model that does its task: what `saccade.load` returns."""

    def answer(
        self,
        texts: Sequence[str],
        request: Request,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> Sequence[Answer | UserError]:
        """An answer, or why there is none, for every text; `numbers` are the texts' places in a longer input."""
        ...

    @property
    def parameters(self) -> int: ...


class Task(Protocol):
    """A task: from files to a trained model, and from a model folder to answers."""

    name: ClassVar[str]
    recipe: ClassVar[type[Recipe]]

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[Recipe, list[str]]:
        """A recipe for a stranger's own files, and what was chosen, to be told."""
        ...

    def prepare(self, recipe: Any, folders: Sequence[Path], out: Path, *, resume: bool) -> tuple[Work, list[str]]:
        """Read the data, make or reuse the vocabulary, build the model; and what there is, to be told."""
        ...

    def finish(
        self, recipe: Any, work: Work, outcome: Outcome, folders: Sequence[Path], out: Path, report: Report = unreported
    ) -> list[Score]:
        """Write the trained model as a model folder and score it on the test part."""
        ...

    def load(self, folder: ModelFolder, how: How | None = None) -> Pipeline:
        """The model ready to answer; `how` its weights are packed, by default the fastest near-lossless way."""
        ...

    def evaluate(
        self,
        pipeline: Any,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """The figures of a model on held-out files, or, where none are given, on the test part its recipe names."""
        ...

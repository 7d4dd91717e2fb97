"""The interface of a task; `fit` and the commands use tasks only through it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from pydantic import Field

from saccade.carried import CarriedTest
from saccade.config import Record, Table
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder, Storage
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.tasks.arithmetic import FigureOf
from saccade.tokens.marks import Marks
from saccade.train.loop import TrainConfig, Work


class CardConfig(Record):
    """Parts of the model card that the program cannot know."""

    summary: str = ""
    """One sentence on what the model does."""
    data: str = ""
    """Source of the training data, with the attribution that its licence requires."""
    licence: str = "the licence of the training data"
    """Licence of the weights."""
    carry_test: bool = False
    """Put the test part into the model folder, for `saccade evaluate`; only where its licence allows it."""


class TrialConfig(Record):
    """One of several trainings of a recipe."""

    seed: int = Field(ge=0, lt=2**40)
    """Instead of train.seed."""
    rate: float = Field(gt=0)
    """Instead of train.adam.rate."""


class Recipe(Record):
    """The part of a recipe that all tasks share."""

    task: str
    """Name of the task."""
    name: str
    """Name of the model, for its card."""
    train: TrainConfig
    """Training settings."""
    trials: list[TrialConfig] = Field(default_factory=list)
    """Trainings of which the best on the validation part is kept; none: one, as `train` has it."""
    card: CardConfig = CardConfig()
    """Text for the model card."""


Test = Callable[[Any, ModelFolder, Report], list[Score]]
"""Scores of a stored model on the test part; the model is given as its pipeline and as its folder."""


@dataclass(frozen=True)
class Finish:
    """What is made of a trained model and its validation part, before the model is stored."""

    settings: Table
    """More for config.json."""
    files: Mapping[str, bytes]
    """More files of the folder, by name."""
    told: Sequence[str]
    """For the person who trains, and for the card."""
    beside: Callable[[Sequence[Score]], list[str]]
    """What is to be said once the scores on the test part are known (none without one), there and on the card."""


@dataclass(frozen=True)
class Prepared:
    """Everything that training, storing and scoring need: the training data is read once. tokenizer.json is in the
    run's folder, if the task has texts."""

    work: Work
    """For the loop."""
    settings: Table
    """For config.json, beside the names of task and model, and the marks."""
    marks: Marks
    """The ids that are no text."""
    storage: Storage
    """Number format of the stored weights."""
    messages: Sequence[str]
    """What was read and chosen, for the person who trains."""
    files: Sequence[str]
    """Data files, as the recipe names them. Their digests are kept: a training resumes on the same data only."""
    test: Test | None = None
    """None without a test part."""
    words: Sequence[str] | None = None
    """Lexicon of the model, if it has one."""
    carried: Callable[[], CarriedTest] | None = None
    """The test part as a file; None where the task has no such file."""
    figure: FigureOf | None = None
    """Of a stored model on the validation part: it decides whether int8 is the default."""
    finish: Callable[[Report], Finish] | None = None
    """Called once the chosen weights are in the model. The same weights and data give the same."""


class Task(Protocol):
    """A task: from files to a trained model, and from a model folder to scores."""

    name: ClassVar[str]
    recipe: ClassVar[type[Recipe]]

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[Recipe, list[str]]:
        """A recipe for the user's own files, and messages about the choices."""
        ...

    def prepare(
        self, recipe: Any, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        """Read the data, make the vocabulary, or reuse what a resumed run keeps in `out`, and build the model."""
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
        """Scores on the given files, or without files on the test part of the recipe."""
        ...


@runtime_checkable
class StartingTask(Task, Protocol):
    """A task whose model may start from a pre-trained encoder."""

    def texts_of(self, files: Sequence[Path]) -> list[str]:
        """The texts of the user's training file, to find out their language."""
        ...

    def recipe_from(self, files: Sequence[Path], out: Path, start: str) -> tuple[Recipe, list[str]]:
        """A recipe for the user's own files that starts from this model, and messages about the choices."""
        ...

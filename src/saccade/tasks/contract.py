"""The interface of a task; commands use tasks only through it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from saccade.config import Record
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.train.loop import Outcome, TrainConfig, Work


class CardConfig(Record):
    """Parts of the model card that the program cannot know."""

    summary: str = ""
    """One sentence on what the model does."""
    data: str = ""
    """Source of the training data, with the attribution that its licence requires."""
    licence: str = "the licence of the training data"
    """Licence of the weights."""


class Recipe(Record):
    """The part of a recipe that all tasks share."""

    task: str
    """Name of the task."""
    name: str
    """Name of the model, for its card."""
    train: TrainConfig
    """Training settings."""
    card: CardConfig = CardConfig()
    """Text for the model card."""


class Task(Protocol):
    """A task: from files to a trained model, and from a model folder to answers."""

    name: ClassVar[str]
    recipe: ClassVar[type[Recipe]]

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[Recipe, list[str]]:
        """A recipe for the user's own files, and messages about the choices."""
        ...

    def prepare(
        self, recipe: Any, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> tuple[Work, list[str]]:
        """Read the data, make or reuse the vocabulary, build the model; also returns messages about the data."""
        ...

    def finish(
        self, recipe: Any, work: Work, outcome: Outcome, folders: Sequence[Path], out: Path, report: Report = unreported
    ) -> list[Score]:
        """Write the trained model as a model folder and score it on the test part."""
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

"""What a task is. The commands know tasks only through this."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from saccade.config import Record
from saccade.decode.packed import How
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder
from saccade.tasks.asked import Pipeline, Report, Request, unreported
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

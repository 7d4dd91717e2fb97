"""What belongs to a training besides its checkpoints: its recipe, where its data was and what was in it.

Kept as recipe.toml and run.json in its folder. A training resumes only on what it began with.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from saccade.config import Record, Table, flat, read_toml, to_toml
from saccade.data.prepared import file_digest
from saccade.data.text import find
from saccade.errors import UserError, WrongUse
from saccade.folder import replace_file
from saccade.tasks.contract import Prepared, Recipe, Task
from saccade.tasks.recipes import task_named

RECIPE, RUN = "recipe.toml", "run.json"
CHANGEABLE = (
    "card",
    "storage",
    "search",
    "layer",
    "train.steps",
    "train.validate_every",
    "train.select_by",
    "train.patience",
    "train.average",
    "train.device",
    "train.gradients",
    "train.parallel",
)
"""Keys of recipe.toml that may be changed while a training is under way."""


class RunRecord(Record):
    """What a training began with."""

    data: list[str] = Field(default_factory=list)
    """Folders in which its files were searched."""
    recipe: Table = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of every data file, by the name that the recipe has for it."""
    settings: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of what comes from the data, such as the names of the classes."""


def write_run(out: Path, recipe: Recipe, prepared: Prepared, folders: Sequence[Path]) -> None:
    """recipe.toml makes a folder resumable, so it is written last, just before step 1."""
    began = RunRecord(
        data=[str(folder.resolve()) for folder in folders],
        recipe=recipe.table(),
        files={name: file_digest(find(name, folders)) for name in prepared.files},
        settings=_derived(recipe, prepared),
    )
    replace_file(out / RUN, (json.dumps(began.table(), indent=1) + "\n").encode())
    replace_file(out / RECIPE, to_toml(recipe.table()).encode())


def read_run(run: Path) -> tuple[Task, Recipe, RunRecord]:
    """The task and the recipe of a training, and what it began with."""
    if not (run / RECIPE).is_file():
        raise WrongUse(f"{run}: no training to resume there: it has no {RECIPE}")
    table = read_toml(run / RECIPE)
    task = task_named(str(table.get("task", "missing")))
    return task, task.recipe.read(table, where=str(run / RECIPE)), _beginning(run / RUN)


def _beginning(file: Path) -> RunRecord:
    if not file.exists():
        return RunRecord()
    try:
        return RunRecord.read(json.loads(file.read_bytes()), where=str(file))
    except (OSError, ValueError, RecursionError, UserError) as error:
        raise UserError(
            f"{file}: damaged: {error}; it holds what the training began with: delete it to resume unchecked"
        ) from None


def insist_same_start(run: Path, recipe: Recipe, began: RunRecord, folders: Sequence[Path]) -> None:
    """The recipe and the data files must be those the training began with; a file that is gone may not be needed."""
    now = dict(flat(recipe.table()))
    for key, value in flat(began.recipe):
        if now.get(key) != value and not any(key == free or key.startswith(f"{free}.") for free in CHANGEABLE):
            raise UserError(
                f"{run / RECIPE}: {key} was {value!r} when the training began and is {now.get(key)!r} now; "
                "change it back, or train anew in another folder"
            )
    for name, digest in began.files.items():
        try:
            path = find(name, folders)
        except UserError:
            continue
        if file_digest(path) != digest:
            raise UserError(
                f"{path} has changed since the training in {run} began (its SHA-256 is another); "
                "put the old file back, or train anew in another folder"
            )


def insist_same_settings(run: Path, recipe: Recipe, began: RunRecord, prepared: Prepared) -> None:
    """What the data gives, such as the names of the classes, must be what it gave in the beginning."""
    now = _derived(recipe, prepared)
    for key, digest in began.settings.items():
        if now.get(key, digest) != digest:
            raise UserError(
                f"{run}: the data now gives other {key} than when the training began; "
                "use the data of the beginning, or train anew in another folder"
            )


def _derived(recipe: Recipe, prepared: Prepared) -> dict[str, str]:
    """Digests of the settings that come from the data and not from the recipe."""
    found = {key: value for key, value in prepared.settings.items() if key not in type(recipe).model_fields}
    return {key: hashlib.sha256(json.dumps(value).encode()).hexdigest() for key, value in found.items()}

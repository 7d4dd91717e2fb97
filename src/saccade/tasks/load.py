"""Names -> tasks, recipes and loaded models."""

import difflib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.decode.packed import How
from saccade.errors import UserError, WrongUse
from saccade.folder import read_folder
from saccade.tasks.table import TASKS, TaskRow

if TYPE_CHECKING:
    from saccade.tasks.contract import Task

PACKAGE = Path(__file__).parent.parent
ZOO = PACKAGE / "zoo"
RECIPES = PACKAGE / "recipes"


def row_named(name: str) -> TaskRow:
    """What the table says of the task of that name; the registry is closed."""
    if name not in TASKS:
        raise UserError(f"unknown task {name!r}; this version knows {', '.join(TASKS)}")
    return TASKS[name]


def task_named(name: str) -> "Task":
    """The task of that name."""
    task: Task = _named(row_named(name).home)()
    return task


def _named(home: str) -> Any:
    module, _, attribute = home.partition(":")
    return getattr(import_module(module), attribute)


def bundled_models() -> list[Path]:
    """The folders of the models that come with Saccade."""
    return sorted(path.parent for path in ZOO.glob("*/config.json"))


def model_path(model: str | Path) -> Path:
    """A bundled model's name or a model folder's path -> the folder."""
    names = [path.name for path in bundled_models()]
    if str(model) in names:
        return ZOO / str(model)
    if Path(model).exists():
        return Path(model)
    raise WrongUse(
        f"no model {str(model)!r}{_nearest(str(model), names)}; "
        f"give a model folder or a bundled model: {', '.join(names)}"
    )


def load(model: str | Path, how: How | None = None) -> Any:
    """A bundled model by name, or a model folder by path, ready to be called.

    `how` its weights are packed: "exact", "int16", "fp16" or "int8"; by default the fastest near-lossless
    way on this machine, which `saccade doctor` shows.

    >>> translator = saccade.load("en-es")
    >>> translator("this cat is very large").text
    """
    folder = read_folder(model_path(model))
    row = row_named(folder.config["task"])
    return _named(row.pipeline).open(folder, how) if row.pipeline else task_named(row.name).load(folder, how)


def recipe_path(name: str) -> Path:
    """A recipe file's path, or the name of one that comes with Saccade."""
    if Path(name).suffix == ".toml":
        if not Path(name).is_file():
            raise UserError(f"{name}: no such recipe file")
        return Path(name)
    names = sorted(path.stem for path in RECIPES.glob("*.toml"))
    if name not in names:
        known = f"the recipes are {', '.join(names)}; the tasks for your own files {', '.join(TASKS)}"
        raise WrongUse(f"no recipe {name!r}{_nearest(name, names)}; {known}")
    return RECIPES / f"{name}.toml"


def _nearest(name: str, names: list[str]) -> str:
    found = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {found[0]}?" if found else ""

"""Names -> tasks and recipes."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.errors import UserError, WrongUse, did_you_mean
from saccade.pipelines.load import row_named
from saccade.pipelines.table import TASKS
from saccade.presets.rows import PRESETS

if TYPE_CHECKING:
    from saccade.tasks.contract import Task

RECIPES = Path(__file__).parent.parent / "recipes"


def task_named(name: str) -> "Task":
    """The task of that name."""
    module, _, attribute = row_named(name).home.partition(":")
    task: Task = getattr(import_module(module), attribute)()
    return task


def is_recipe(name: str) -> bool:
    """Whether a recipe of that name comes with Saccade."""
    return (RECIPES / f"{name}.toml").is_file()


def recipe_path(name: str) -> Path:
    """A recipe file's path, or the name of one that comes with Saccade."""
    if Path(name).suffix == ".toml":
        if not Path(name).is_file():
            raise UserError(f"{name}: no such recipe file")
        return Path(name)
    names = sorted(path.stem for path in RECIPES.glob("*.toml"))
    if name not in names:
        known = f"the recipes are {', '.join(names)}; the tasks for your own files {', '.join(TASKS)}"
        hint = did_you_mean(name, [*names, *PRESETS])
        raise WrongUse(f"no recipe {name!r}{hint}; {known}; `saccade plan` lists the presets")
    return RECIPES / f"{name}.toml"

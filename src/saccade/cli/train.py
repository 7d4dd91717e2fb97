"""Commands that make models: train, resume."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from saccade.cli.output import make_folder
from saccade.cli.progress import progress_bar, status_report
from saccade.errors import UserError, WrongUse
from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from saccade.config import Table
    from saccade.tasks.contract import Recipe, Task


def train(
    recipe: str,
    /,
    *files: Path,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    set_: Annotated[list[str], Parameter(name="--set", negative="")] = [],  # noqa: B006
    data: Path | None = None,
    quiet: bool = False,
) -> int:
    """Train a model by a recipe, or from your own files without a recipe.

    For example:

        saccade train translation my.en my.es --out my-model
        saccade train translation pairs.tsv --out my-model
        saccade train en-es --data ~/data
        saccade train en-es --set train.steps=500 --set model.encoder.layers=2 --out runs/small
        saccade train my-recipe.toml

    Ctrl-C saves and stops; `saccade resume DIR` continues from there.

    Parameters
    ----------
    recipe:
        Name of a recipe, a recipe file (.toml), or a task (such as translation) followed by your files.
    files:
        For a task: its files. For translation, a TSV of source and target, or two aligned files.
    out:
        Output folder, which becomes the model folder. Default: runs/NAME.
    set_:
        Change a key of the recipe: dotted.key=value. May be repeated.
    data:
        Folder of the recipe's data. Default: $SACCADE_DATA, then ./data.
    quiet:
        Print no progress.
    """
    from saccade.config import override, read_toml
    from saccade.data.text import data_folders
    from saccade.tasks.recipes import recipe_path, task_named

    folders = data_folders(data)
    if recipe in TASKS:
        if not files:
            raise WrongUse(f"saccade train {recipe} needs files: {TASKS[recipe].files}")
        out = out or Path("runs") / files[0].stem
        task = task_named(recipe)
        _make(out)
        with _cleared_on_failure(out):
            chosen, told = task.recipe_for(files, out)
            table = chosen.table()
    else:
        if files:
            raise WrongUse(f"a recipe names its own data; files go with a task: saccade train translation {files[0]} …")
        path = recipe_path(recipe)
        table, told = read_toml(path), []
        task = task_named(str(table.get("task", "missing")))
        out = out or Path("runs") / path.stem
        task.recipe.read(table, where=str(path))
        _make(out)
    notes: list[str] = []
    with _cleared_on_failure(out):
        settled = task.recipe.read(override(table, set_, task.recipe), where="recipe", notes=notes)
        for note in notes:
            print(f"saccade: {recipe}: {note}", file=sys.stderr)
        for line in told:
            print(line, file=sys.stderr)
        return _run(task, settled, folders, out, quiet=quiet, again=False)


def train_by_table(table: "Table", folders: list[Path], out: Path, *, quiet: bool) -> int:
    """Train by the table of a recipe."""
    from saccade.tasks.recipes import task_named

    """Train by a recipe that is read already."""

    task = task_named(str(table.get("task", "missing")))
    recipe = task.recipe.read(table, where="recipe")
    _make(out)
    with _cleared_on_failure(out):
        return _run(task, recipe, folders, out, quiet=quiet, again=False)


def resume(run: Path, /, *, data: Path | None = None, quiet: bool = False) -> int:
    """Continue an interrupted training from its last checkpoint.

    For example:

        saccade resume runs/en-es

    Parameters
    ----------
    run:
        Folder of the training, made by `saccade train`.
    data:
        Folder of the data, if it was moved.
    quiet:
        Print no progress.
    """
    return go_on(run, [data] if data else [], quiet=quiet)


def go_on(run: Path, folders: list[Path], *, quiet: bool) -> int:
    """Continue the training in a folder; its data is searched in `folders`, then in its former place."""
    from saccade.config import read_toml
    from saccade.tasks.recipes import task_named

    if not (run / "recipe.toml").is_file():
        raise WrongUse(f"{run}: no training to resume there: it has no recipe.toml")
    table = read_toml(run / "recipe.toml")
    task = task_named(str(table.get("task", "missing")))
    recipe = task.recipe.read(table, where=str(run / "recipe.toml"))
    folders = [*folders, *map(Path, _told(run).get("data", []))]
    return _run(task, recipe, folders, run, quiet=quiet, again=True)


def _run(task: "Task", recipe: "Recipe", folders: list[Path], out: Path, *, quiet: bool, again: bool) -> int:
    from rich.console import Console

    from saccade.config import to_toml
    from saccade.train.log import Log
    from saccade.train.loop import train as run_loop

    console = Console(stderr=True, quiet=quiet, highlight=False)
    with console.status("reading the data and learning the vocabulary …") as status:
        report = status_report(console, status, "encoding the training data")
        work, told = task.prepare(recipe, folders, out, resume=again, report=report)
    for line in told:
        console.print(line, soft_wrap=True, markup=False)
    if not again:
        # recipe.toml makes a folder resumable, so it is written last, just before step 1.
        (out / "run.json").write_text(json.dumps({"data": [str(folder.resolve()) for folder in folders]}) + "\n")
        aside = out / ".writing-recipe.toml"
        aside.write_text(to_toml(recipe.table()), encoding="utf-8")
        aside.rename(out / "recipe.toml")
    outcome = run_loop(work, recipe.train, out, Log(out, quiet=quiet), resume=again)
    if not outcome.finished:
        print(f"stopped after step {outcome.step} and saved; go on with: saccade resume {out}", file=sys.stderr)
        return 130
    console.print(f"kept {outcome.chosen}", soft_wrap=True, markup=False)
    with progress_bar("scoring the test part", quiet=quiet) as report:
        scores = task.finish(recipe, work, outcome, folders, out, report)
    for score in scores:
        print(score)
    console.print(f"the model is in {out}: saccade run {out} …", soft_wrap=True, markup=False)
    return 0


def _make(out: Path) -> None:
    if (out / "recipe.toml").exists():
        raise WrongUse(f"{out} holds a training already: saccade resume {out}, or choose another --out")
    if out.is_dir() and any(out.iterdir()):
        raise WrongUse(f"{out} is not empty; choose another --out")
    make_folder(out)


@contextmanager
def _cleared_on_failure(out: Path) -> Iterator[None]:
    """If the training fails before step 1, remove its files, so that the command can be repeated."""
    try:
        yield
    except BaseException as error:
        if not (out / "recipe.toml").exists():
            for name in ("train.tsv", "valid.tsv", "test.tsv", "tokenizer.json", "run.json", ".writing-recipe.toml"):
                (out / name).unlink(missing_ok=True)
            shutil.rmtree(out / "prepared", ignore_errors=True)
            if out.is_dir() and not any(out.iterdir()):
                out.rmdir()
        if isinstance(error, OSError):
            raise UserError(f"could not write in {out}: {error.strerror or error}") from None
        raise


def _told(run: Path) -> dict[str, Any]:
    try:
        told = json.loads((run / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}

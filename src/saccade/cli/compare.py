"""The command that compares: recipes on the same data for the same time, or the parts models are made of."""

import re
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from saccade.cli.names import RecipeName
from saccade.cli.output import make_folder
from saccade.cli.train import ended
from saccade.errors import UserError, WrongUse

if TYPE_CHECKING:
    from saccade.study.compare import Comparison, Entry

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
EXPERIMENTS = ("anatomy", "bottleneck", "pooling")


def compare(
    *recipes: RecipeName,
    budget: str = "10m",
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    set_: Annotated[list[str], Parameter(name="--set", negative="")] = [],  # noqa: B006
    data: Path | None = None,
    sentence: str = "",
    anatomy: Annotated[bool, Parameter(negative="")] = False,
    bottleneck: Annotated[bool, Parameter(negative="")] = False,
    pooling: Annotated[bool, Parameter(negative="")] = False,
    quiet: bool = False,
) -> int:
    """Train several recipes for the same time and write a report, or run an experiment on model parts.

    For example:

        saccade compare multi30k-de-en-gru multi30k-de-en-gru-attention --budget 10m --data ~/data
        saccade compare a.toml b.toml --budget 1h -o runs/mine
        saccade compare --anatomy -o anatomy
        saccade compare --bottleneck --budget 5m
        saccade compare --pooling

    Run the same command again to continue an interrupted comparison; trained models are reused. If a recipe
    fails, the others are still trained.

    Parameters
    ----------
    recipes:
        Names of recipes, or recipe files (.toml).
    budget:
        Training time per recipe: 90s, 10m, 1.5h. It is converted to a number of steps before training.
    out:
        Folder of the report. Default: runs/compare, or runs/ and the name of the experiment.
    set_:
        Change a key of every recipe: dotted.key=value. May be repeated.
    data:
        Folder of the data. Default: $SACCADE_DATA, then ./data.
    sentence:
        Sentence whose attention is drawn. Default: the first of the test part.
    anatomy:
        Measure time, memory and gradients of recurrent, convolutional and self-attention layers by length.
    bottleneck:
        Reverse longer and longer sequences, through one vector and with attention; the budget is for each.
    pooling:
        Draw attention pooling: kernel regression with and without a query.
    quiet:
        Print no progress.
    """
    asked = [name for name, wanted in zip(EXPERIMENTS, (anatomy, bottleneck, pooling), strict=True) if wanted]
    if len(asked) + bool(recipes) != 1:
        raise WrongUse("give two or more recipes, or one of " + ", ".join(f"--{name}" for name in EXPERIMENTS))
    if len(recipes) == 1:
        raise WrongUse(f"a comparison takes two recipes or more; only {recipes[0]} was given")
    seconds = read_budget(budget)
    out = out or Path("runs") / (asked[0] if asked else "compare")
    make_folder(out)
    if asked:
        return _experiment(asked[0], out, seconds, quiet=quiet)
    return _compare(recipes, seconds, out, set_, data, sentence, quiet=quiet)


def read_budget(text: str) -> float:
    """90s, 10m, 1.5h -> seconds"""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text.strip())
    if not found or not 0 < float(found[1]) * UNITS[found[2]] <= 1e7:
        raise WrongUse(f"--budget {text!r}: write it as 90s, 10m or 1.5h")
    return float(found[1]) * UNITS[found[2]]


def _experiment(name: str, out: Path, seconds: float, *, quiet: bool) -> int:
    from rich.console import Console

    console = Console(stderr=True, quiet=quiet, highlight=False)

    def say(text: str) -> None:
        console.print(text, soft_wrap=True, markup=False)

    if name == "anatomy":
        from saccade.study.anatomy import write_anatomy

        path = write_anatomy(out, say)
    elif name == "bottleneck":
        from saccade.study.bottleneck import write_bottleneck

        path = write_bottleneck(out, seconds, say)
    else:
        from saccade.study.pooling import write_pooling

        path = write_pooling(out)
    print(path)
    return 0


def _compare(
    recipes: tuple[str, ...],
    budget: float,
    out: Path,
    settings: list[str],
    data: Path | None,
    sentence: str,
    *,
    quiet: bool,
) -> int:
    from saccade.data.text import data_folders
    from saccade.study.compare import Comparison, measure, write_report

    folders = data_folders(data)
    comparison = Comparison.read(out) or Comparison(budget)
    if comparison.budget != budget:
        raise WrongUse(f"{out} holds a comparison with a budget of {comparison.budget:g} s; choose another --out")
    _plan(comparison, recipes, settings, folders, out, quiet=quiet)
    results = []
    for entry in comparison.entries.values():
        run = out / entry.name
        if not (run / "config.json").exists():
            if entry.failure:
                continue
            code = _train_apart(entry, run, folders, quiet=quiet)
            comparison.save(out)
            if code == 130:
                print("stopped and saved; the same command goes on", file=sys.stderr)
                return 130
        if not entry.failure:
            try:
                results.append(measure(entry, run, folders, sentence))
            except UserError as error:
                entry.failure = str(error)
                comparison.save(out)
    path = write_report(comparison, results, out)
    for entry in comparison.entries.values():
        if entry.failure:
            print(f"saccade: {entry.name} failed: {entry.failure}", file=sys.stderr)
    print(path)
    return 1 if len(results) < len(comparison.entries) else 0


def _plan(
    comparison: "Comparison",
    recipes: tuple[str, ...],
    settings: list[str],
    folders: list[Path],
    out: Path,
    *,
    quiet: bool,
) -> None:
    """Measure the number of steps of every recipe once, and store it for a resumed comparison."""
    from rich.console import Console

    from saccade.config import override, read_toml
    from saccade.pipelines.table import TASKS
    from saccade.study.compare import Entry, plan
    from saccade.tasks.recipes import recipe_path, task_named

    console = Console(stderr=True, quiet=quiet, highlight=False)
    tables = {}
    for recipe in recipes:
        path = recipe_path(recipe)
        if path.stem in tables:
            raise WrongUse(f"two recipes are called {path.stem}")
        table = read_toml(path)
        task = table.get("task")
        tables[path.stem] = override(table, settings, task_named(str(task)).recipe if task in TASKS else None)
    for name, table in tables.items():
        if name in comparison.entries:
            continue
        notes: list[str] = []
        try:
            with console.status(f"{name}: measuring its pace …"):
                entry = plan(name, table, folders, comparison.budget, notes)
            console.print(f"{name}: {entry.seconds_per_step:.3f} s a step, so {entry.steps:,} steps", markup=False)
        except UserError as error:
            entry = Entry(name, table, 0, 0.0, failure=str(error))
        for note in notes:
            print(f"saccade: {name}: {note}", file=sys.stderr)
        comparison.entries[name] = entry
        comparison.save(out)


def _train_apart(entry: "Entry", run: Path, folders: list[Path], *, quiet: bool) -> int:
    """Train in a separate process, to measure its memory and to survive its crash."""
    import multiprocessing
    import signal

    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe(duplex=False)
    child = spawn.Process(target=_train_one, args=(entry.table, run, folders, quiet, sender))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the child, which saves
    try:
        child.start()
        sender.close()
        try:
            told: dict[str, Any] = receiver.recv()
        except EOFError:
            told = {}
        child.join()
    finally:
        signal.signal(signal.SIGINT, before)
    code = int(told.get("code", 1))
    entry.peak_bytes = max(entry.peak_bytes, int(told.get("peak", 0)))
    if code not in (0, 130):
        entry.failure = str(told.get("failure") or f"its process ended with exit code {child.exitcode}")
    return code


def _train_one(table: dict[str, Any], run: Path, folders: list[Path], quiet: bool, told: Connection) -> None:
    import signal

    from saccade.native.allocator import most_memory
    from saccade.tasks.training import Show, go_on, train_by_table

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout = sys.stderr  # stdout is for the report
    failure = ""
    try:
        going = (run / "recipe.toml").exists()
        fitted = go_on(run, folders, Show(quiet)) if going else train_by_table(table, folders, run, Show(quiet))
        code = ended(fitted, run, quiet)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # the other recipes are still trained
        code, failure = 1, str(error) if isinstance(error, UserError) else repr(error)
    told.send({"code": code, "failure": failure, "peak": most_memory()})

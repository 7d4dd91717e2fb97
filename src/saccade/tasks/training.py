"""Trainings by name, by table and by folder, as the commands start them; and `saccade.train`."""

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.config import Table, changed, flat, read_toml
from saccade.data.text import data_folders
from saccade.errors import UserError, WrongUse
from saccade.pipelines.load import load, model_path
from saccade.pipelines.table import TASKS
from saccade.presets.rows import PRESETS
from saccade.tasks.contract import Recipe, StartingTask, Task
from saccade.tasks.fit import Fitted, fit
from saccade.tasks.preset_recipe import insist_it_can_be_held, preset_recipe
from saccade.tasks.recipes import is_recipe, recipe_path, task_named
from saccade.tasks.run import RECIPE, insist_same_start, read_run
from saccade.tasks.start import SCRATCH, automatic_start, named_start
from saccade.train.checkpoint import checkpoints
from saccade.train.device import Device
from saccade.train.leftovers import is_finished
from saccade.train.lock import LOCK, alone_in
from saccade.train.log import Log, SilentLog
from saccade.train.metrics import TENSORBOARD
from saccade.train.parallel import ParallelConfig
from saccade.train.ranks import is_first, is_restarted, joined, started

Change = tuple[str, Any]
"""A dotted key of a recipe and its new value."""


@dataclass(frozen=True)
class Show:
    """What is told while a model trains."""

    quiet: bool = False
    tensorboard: bool = False

    def log(self, out: Path) -> Log:
        """A run that has written for TensorBoard goes on with it. Of several processes only the first one tells."""
        if not is_first():
            return SilentLog(out)
        return Log(out, quiet=self.quiet, tensorboard=self.tensorboard or (out / TENSORBOARD).is_dir())


def train(
    recipe: str | Path,
    files: str | Path | Iterable[str | Path] | None = None,
    *,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    init: str | Path = "",
    data: str | Path | None = None,
    device: Device | None = None,
    resume: bool = False,
    tensorboard: bool = False,
    quiet: bool = False,
) -> Any:
    """Train a model and return it, as `saccade.load` does. What the command `saccade train` does.

        classifier = saccade.train("classification", "reviews.tsv", out="my-model")
        classifier("what a film").text
        saccade.train("en-es", out="small", data="~/data", settings={"train.steps": 500, "model.encoder.layers": 2})

    - `recipe`: a task, such as "translation", with your own `files`; a preset, such as "gpt2", with files; or the name
      or file of a recipe, which names its data.
    - `files`: the task's files; for classification a TSV with a column of texts and one of labels.
    - `out`: the output folder, which becomes the model folder. Default: runs/NAME.
    - `settings`: changes of the recipe by dotted key, as `--set` has them; tables in it are taken apart, so that
      {"train": {"steps": 500}} means the same as {"train.steps": 500}.
    - `init`: a model to start from, for tasks with an encoder; its vocabulary and sizes replace those of the recipe.
      "none": from scratch. By default, own English texts start from the bundled English encoder.
    - `data`: the folder of the recipe's data. Default: $SACCADE_DATA, then ./data.
    - `device`: "cpu", "cuda" or "mps"; by default the recipe's, which is "auto": a GPU if there is one.
    - `resume`: go on with the training in `out`, if there is one. Ctrl-C (KeyboardInterrupt) saves after the step under
      way; the same call with resume=True goes on from there, bit for bit.
    - `tensorboard`: also write the curves for TensorBoard, to OUT/tensorboard.
    - `quiet`: print no progress.
    """
    given = [files] if isinstance(files, str | Path) else list(files or [])
    paths = [Path(file).expanduser() for file in given]
    changes = list(flat(settings or {}))
    folder = run_folder(str(recipe), paths, Path(out).expanduser() if out is not None else None)
    searched = data_folders(Path(data).expanduser() if data is not None else None)
    show = Show(quiet, tensorboard)
    if resume and (folder / RECIPE).exists():
        _insist_same_request(folder, str(recipe), changes)
        fitted = go_on(folder, searched[:1] if data is not None else [], show, device=device)
    else:
        changes += [("train.device", device)] if device else []
        fitted = train_named(str(recipe), paths, folder, searched, changes, init=str(init), show=show)
    if not fitted.outcome.finished:
        raise KeyboardInterrupt(f"stopped after step {fitted.outcome.step} and saved; resume=True goes on")
    if not quiet:
        for score in fitted.scores:
            print(score, file=sys.stderr)
    return load(folder)


def train_named(
    name: str,
    files: Sequence[Path],
    out: Path,
    folders: Sequence[Path],
    changes: Sequence[Change] = (),
    *,
    init: str = "",
    show: Show,
) -> Fitted:
    """Train by a recipe, or by a task or a preset and files, in a new folder. Processes that torchrun starts again
    after one was lost go on with what is there."""
    if is_restarted() and (out / RECIPE).exists():
        return go_on(out, folders, show)
    with joined():
        return _train_anew(name, files, out, folders, changes, init, show)


def _train_anew(
    name: str,
    files: Sequence[Path],
    out: Path,
    folders: Sequence[Path],
    changes: Sequence[Change],
    init: str,
    show: Show,
) -> Fitted:
    preset = PRESETS.get(name)
    # A name may be that of a task and of a recipe: files go with the task.
    if preset is not None or (name in TASKS and (files or not is_recipe(name))):
        task, table = task_named(preset.task if preset else name), None
        if not files:
            raise WrongUse(f"saccade train {name} needs files: {TASKS[task.name].files}")
    else:
        if files:
            raise WrongUse(f"a recipe names its own data; files go with a task: saccade train translation {files[0]} …")
        path = recipe_path(name)
        table = read_toml(path)
        task = task_named(str(table.get("task", "missing")))
        task.recipe.read(table, where=str(path))
    _insist_on_an_encoder(task, init)
    with _new_run(out):
        messages: list[str] = []
        if preset is not None:
            table, messages = preset_recipe(preset, task, files, out, init)
        elif table is None:
            table, messages = _own_table(task, files, out, changes, init)
        elif init:
            start = "" if init == SCRATCH else named_start(init)
            table = _started(table, start, changes)
        notes: list[str] = []
        settled = task.recipe.read(changed(table, changes, task.recipe), where="recipe", notes=notes)
        for note in notes if is_first() else ():
            print(f"saccade: {name}: {note}", file=sys.stderr)
        insist_it_can_be_held(name, settled.table())
        log = show.log(out)
        for line in messages:
            log.say(line)
        return fit(task, settled, folders, log)


def train_by_table(table: Table, folders: Sequence[Path], out: Path, show: Show) -> Fitted:
    """Train by the table of a recipe, in a new folder."""
    task = task_named(str(table.get("task", "missing")))
    recipe = task.recipe.read(table, where="recipe")
    with _new_run(out):
        return fit(task, recipe, folders, show.log(out))


def go_on(run: Path, folders: Sequence[Path], show: Show, *, device: Device | None = None) -> Fitted:
    """Continue the training in a folder; its data is searched in `folders`, then in its former place."""
    task, recipe, began = read_run(run)
    if device:
        recipe = recipe.model_copy(update={"train": recipe.train.model_copy(update={"device": device})})
    if started() == 1 and recipe.train.parallel.is_divided:
        recipe = _in_one_process(recipe)
    with joined(), alone_in(run) if is_first() else nullcontext():
        if is_finished(run) and not checkpoints(run / "checkpoints"):
            raise UserError(f"{run}: the training is finished and its checkpoints are gone; there is nothing to resume")
        searched = [*folders, *map(Path, began.data)]
        insist_same_start(run, recipe, began, searched)
        return fit(task, recipe, searched, show.log(run), began)


def run_folder(name: str, files: Sequence[Path], out: Path | None) -> Path:
    """Where a training goes by default."""
    named = files[0].stem if name in TASKS and files else name if name in PRESETS else Path(name).stem
    return out or Path("runs") / named


def _insist_on_an_encoder(task: Task, init: str) -> None:
    if init and "init" not in task.recipe.model_fields:
        known = ", ".join(name for name in TASKS if "init" in task_named(name).recipe.model_fields)
        raise WrongUse(f"a model for {task.name} does not start from another one; these do: {known}")
    if init and init != SCRATCH:
        model_path(init)  # or say that there is none, before the data is read


def _started(table: Table, start: str, changes: Sequence[Change]) -> Table:
    """The table of a recipe that starts from this model, which brings sizes, and a vocabulary unless it has its own."""
    own = dict(changes).get("own_vocabulary", table.get("own_vocabulary"))
    brought = ("model",) if own else ("model", "tokens")
    return {key: value for key, value in table.items() if key not in brought} | {"init": start}


def _own_table(
    task: Task, files: Sequence[Path], out: Path, changes: Sequence[Change], init: str
) -> tuple[Table, list[str]]:
    """The recipe for the user's own files, and what it starts from."""
    if not isinstance(task, StartingTask):
        recipe, messages = task.recipe_for(files, out)
        if init in ("", SCRATCH):
            return recipe.table(), messages
        return _started(recipe.table(), named_start(init), changes), [
            line for line in messages if not line.startswith("model: ")
        ]
    why: list[str] = []
    own = next((key for key, _ in changes if key.split(".")[0] in ("model", "tokens", "init")), None)
    if init:
        start = "" if init == SCRATCH else named_start(init)
    elif own:  # sizes or a vocabulary of one's own go with no start
        start = ""
    else:
        start, told = automatic_start(task.texts_of(files))
        why = [told]
    recipe, messages = task.recipe_from(files, out, start)
    return recipe.table(), [*why, *messages]


def _insist_same_request(run: Path, name: str, changes: Sequence[Change]) -> None:
    task, recipe, _ = read_run(run)
    if name in TASKS and name != task.name:
        raise WrongUse(f"{run} holds a training for {task.name}, not for {name}; choose another folder")
    table = recipe.table()
    asked = dict(flat(task.recipe.read(changed(table, changes, task.recipe), where="settings").table()))
    for key, value in flat(table):
        if asked.get(key) != value:
            raise WrongUse(f"{run}: the training there has {key} = {value!r}; resume it without that setting")


@contextmanager
def _new_run(out: Path) -> Iterator[None]:
    """An empty folder for a training, which has it to itself. If the training fails before step 1, what it wrote is
    removed, so that the command can be repeated. Of several processes the first one does all that."""
    if not is_first():
        yield
        return
    if is_restarted():
        _remove_unfinished(out)
    if (out / LOCK).exists():
        with alone_in(out):  # or say that another training is at work there
            pass
    if (out / RECIPE).exists():
        raise WrongUse(f"{out} holds a training already: saccade resume {out}, or choose another --out")
    if out.is_dir() and any(path.name != LOCK for path in out.iterdir()):
        raise WrongUse(f"{out} is not empty; choose another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {out}: {error.strerror}") from None
    with alone_in(out):
        try:
            yield
        except BaseException as error:
            _remove_unfinished(out)
            if isinstance(error, OSError):
                raise UserError(f"could not write in {out}: {error.strerror or error}") from None
            raise


def _in_one_process(recipe: Recipe) -> Recipe:
    """What several processes began goes on in one, which needs no layout."""
    alone = ParallelConfig(checkpointing=recipe.train.parallel.checkpointing)
    return recipe.model_copy(update={"train": recipe.train.model_copy(update={"parallel": alone})})


def _remove_unfinished(out: Path) -> None:
    """What a training wrote that did not come to its first step."""
    if (out / RECIPE).exists():
        return
    for name in ("train.tsv", "valid.tsv", "test.tsv", "tokenizer.json", "run.json", LOCK):
        (out / name).unlink(missing_ok=True)
    for path in out.glob(".writing-*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    shutil.rmtree(out / "prepared", ignore_errors=True)
    if out.is_dir() and not any(out.iterdir()):
        out.rmdir()

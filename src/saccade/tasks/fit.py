"""From a recipe to a finished model folder: prepare, train, store, score, card; for every command and for Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade.data.prepared import just_verified
from saccade.errors import UserError, WrongUse
from saccade.evaluate.metrics import Score
from saccade.pipelines.pipeline import Report
from saccade.tasks.contract import Prepared, Recipe, Task
from saccade.tasks.divided import insist_it_can_be_divided
from saccade.tasks.run import RunRecord, insist_same_settings, write_run
from saccade.tasks.store import store
from saccade.tasks.trials import run_trials
from saccade.train.device import choose_device
from saccade.train.log import Log
from saccade.train.loop import Outcome, train
from saccade.train.progress import preparing, scoring
from saccade.train.ranks import here


@dataclass(frozen=True)
class Fitted:
    """How a training ended."""

    outcome: Outcome
    scores: Sequence[Score]
    """On the test part; none without one, or if the training was stopped."""


def fit(task: Task, recipe: Recipe, folders: Sequence[Path], log: Log, resumed: RunRecord | None = None) -> Fitted:
    """Train in the folder of the log, which becomes the model folder. `resumed`: what the training
    in it began with, if it goes on."""
    out, resume = log.folder, resumed is not None
    choose_device(recipe.train.device)  # one that is not there is told before the data is read
    ranks = here()
    insist_it_can_be_divided(recipe)
    with preparing(log.console) as report:
        prepared = _prepared_in_turn(task, recipe, folders, out, resume, report)
    if recipe.card.carry_test and prepared.carried is None:
        raise WrongUse(f"card.carry_test: a model for {recipe.task} on this data has no test part to carry")
    for line in prepared.messages:
        log.say(line)
    if resumed is None:
        if ranks.first:
            write_run(out, recipe, prepared, folders)
    else:
        insist_same_settings(out, recipe, resumed, prepared)
    tried: list[str] = []
    if recipe.trials:
        ended = run_trials(task, recipe, folders, log)
        if isinstance(ended, Outcome):
            return Fitted(ended, [])
        recipe, tried = ended
        with preparing(log.console) as report:
            prepared = task.prepare(recipe, folders, out, resume=True, report=report)
    # After trials its checkpoints are those of the best, which is at its end.
    outcome = train(prepared.work, recipe.train, out, log, resume=resume or bool(tried))
    if not outcome.finished or not ranks.first:
        return Fitted(outcome, [])
    log.say(f"kept {outcome.chosen}")
    with scoring(log.console) as report:
        stored = store(recipe, prepared, outcome, out, report, tried)
    for remark in stored.remarks:
        log.say(remark)
    return Fitted(outcome, stored.scores)


def _prepared_in_turn(
    task: Task, recipe: Recipe, folders: Sequence[Path], out: Path, resume: bool, report: Report
) -> Prepared:
    """Of several processes the first one reads the data and keeps what it makes of it; the others map that."""
    ranks = here()
    if not ranks.first:
        ranks.wait()
        if not out.is_dir():
            raise UserError(f"{out}: the first process has made it, but it is not here: --out must be a shared folder")
        with just_verified():
            return task.prepare(recipe, folders, out, resume=True, report=report)
    prepared = task.prepare(recipe, folders, out, resume=resume, report=report)
    ranks.wait()
    return prepared

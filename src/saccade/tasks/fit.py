"""From a recipe to a finished model folder: prepare, train, store, score, card; for every command and for Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade.errors import WrongUse
from saccade.evaluate.metrics import Score
from saccade.tasks.contract import Recipe, Task
from saccade.tasks.run import RunRecord, insist_same_settings, write_run
from saccade.tasks.store import store
from saccade.tasks.trials import run_trials
from saccade.train.device import choose_device
from saccade.train.log import Log
from saccade.train.loop import Outcome, train
from saccade.train.progress import preparing, scoring


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
    with preparing(log.console) as report:
        prepared = task.prepare(recipe, folders, out, resume=resume, report=report)
    if recipe.card.carry_test and prepared.carried is None:
        raise WrongUse(f"card.carry_test: a model for {recipe.task} on this data has no test part to carry")
    for line in prepared.messages:
        log.say(line)
    if resumed is None:
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
    if not outcome.finished:
        return Fitted(outcome, [])
    log.say(f"kept {outcome.chosen}")
    with scoring(log.console) as report:
        stored = store(recipe, prepared, outcome, out, report, tried)
    for remark in stored.remarks:
        log.say(remark)
    return Fitted(outcome, stored.scores)

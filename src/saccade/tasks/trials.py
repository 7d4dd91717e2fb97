"""The best of a few trainings of one recipe that differ in seed and learning rate; for small data, where both matter.

Each is a training of its own in OUT/trials/N, resumed from its own checkpoints. What they reached is kept in
OUT/trials.json. In the end the best one's checkpoints become those of OUT, as if it had been trained there.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from saccade.config import Record
from saccade.errors import UserError
from saccade.folder import replace_file
from saccade.tasks.contract import Recipe, Task, TrialConfig
from saccade.train.checkpoint import checkpoints
from saccade.train.log import Log
from saccade.train.loop import Outcome, judge, train

FOLDER, RESULTS = "trials", "trials.json"
AnyRecipe = TypeVar("AnyRecipe", bound=Recipe)


class TrialResult(TrialConfig):
    """What a training reached."""

    figure: float
    """By train.select_by, so that larger is better."""
    scores: dict[str, float]
    """On the validation part."""
    seconds: float = Field(ge=0)

    def __str__(self) -> str:
        scores = ", ".join(f"{name} {value:.4g}" for name, value in self.scores.items())
        return f"seed {self.seed}, rate {self.rate:g}: {scores}"


class Trials(Record):
    """Of the trainings that came to their end, in order."""

    results: list[TrialResult] = Field(default_factory=list)

    @property
    def best(self) -> int:
        """Which of them; of equals the first."""
        return max(range(len(self.results)), key=lambda place: self.results[place].figure)


def run_trials(
    task: Task, recipe: AnyRecipe, folders: Sequence[Path], log: Log
) -> tuple[AnyRecipe, list[str]] | Outcome:
    """The recipe of the best one, whose checkpoints are now in the folder of the log, and what was tried; the outcome
    of the one under way if that was interrupted."""
    out = log.folder
    trials = _read(out / RESULTS)
    for number, trial in enumerate(recipe.trials):
        if number < len(trials.results):
            continue
        log.say(f"training {number + 1} of {len(recipe.trials)}: seed {trial.seed}, rate {trial.rate:g}")
        own = with_trial(recipe, trial)
        outcome = _train(task, own, folders, _home(out, number), log)
        if not outcome.finished:
            return outcome
        figure = judge(outcome.scores, own.train)
        found = TrialResult(**trial.table(), figure=figure, scores=outcome.scores, seconds=outcome.seconds)
        trials = Trials(results=[*trials.results, found])
        replace_file(out / RESULTS, (json.dumps(trials.table(), indent=1) + "\n").encode())
        for place in range(len(trials.results)):
            if place != trials.best:  # only the best one's weights may still be needed
                shutil.rmtree(_home(out, place) / "checkpoints", ignore_errors=True)
    _take_over(_home(out, trials.best), out)
    chosen = recipe.trials[trials.best]
    told = [
        f"tried, on the validation part: {'; '.join(map(str, trials.results))}",
        f"kept of these: seed {chosen.seed}, rate {chosen.rate:g}",
    ]
    return with_trial(recipe, chosen), told


def with_trial(recipe: AnyRecipe, trial: TrialConfig) -> AnyRecipe:
    """The recipe of one of the trainings."""
    adam = recipe.train.adam.model_copy(update={"rate": trial.rate})
    settings = recipe.train.model_copy(update={"seed": trial.seed, "adam": adam})
    return recipe.model_copy(update={"trials": [], "train": settings})


def _train(task: Task, recipe: Recipe, folders: Sequence[Path], home: Path, log: Log) -> Outcome:
    home.mkdir(parents=True, exist_ok=True)
    # Killed before its first checkpoint, it starts anew: what it wrote till then may be half written.
    begun = bool(checkpoints(home / "checkpoints"))
    prepared = task.prepare(recipe, folders, home, resume=begun)
    return train(prepared.work, recipe.train, home, Log(home, quiet=log.quiet), resume=begun)


def _take_over(home: Path, out: Path) -> None:
    """The checkpoints come last: once they are there, nothing is left to do but to delete the rest."""
    if (home / "checkpoints").is_dir():
        for name in ("metrics.jsonl", "metrics.csv", "curve.png"):
            if (home / name).exists():
                (home / name).replace(out / name)
        (home / "checkpoints").rename(out / "checkpoints")
    shutil.rmtree(out / FOLDER, ignore_errors=True)


def _home(out: Path, number: int) -> Path:
    return out / FOLDER / str(number + 1)


def _read(file: Path) -> Trials:
    if not file.exists():
        return Trials()
    try:
        return Trials.read(json.loads(file.read_bytes()), where=str(file))
    except (OSError, ValueError, RecursionError, UserError) as error:
        raise UserError(f"{file}: damaged: {error}; delete it to train all of its trainings again") from None

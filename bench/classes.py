"""Classes: Saccade's encoder from scratch and from a model trained before, beside TF-IDF with logistic regression.

Trainings are those of `saccade transfer` on all examples, by the same functions, and are kept beside one another in
`OUT/classes/RECIPE`: what is there, also by `saccade transfer RECIPE --examples all -o OUT/classes/RECIPE`, is not
trained again. A study of that command keeps one figure of each training; the others are then left open.
"""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.console import installed, say
from bench.machine import Machine
from bench.process import EngineError, measure_apart
from bench.report import Report, Values
from bench.settings import Settings
from saccade.config import Table, read_toml
from saccade.data.text import data_folders
from saccade.evaluate.classes import Classified, class_scores
from saccade.evaluate.metrics import Score
from saccade.pipelines.load import model_path
from saccade.study.transfer import SCRATCH, Transfer, Trial, train_trial
from saccade.tasks.recipes import recipe_path

RECIPES = {"sentiment": "SST-2", "acceptability": "CoLA", "entailment": "RTE 1–3"}
FIGURES = {"accuracy": 2, "macro F1": 2, "F1 of '1'": 2, "Matthews": 4}
"""The columns of the table, and their decimals."""
SEEDS = 5
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""How many standard errors hold 95 %, by the number of seeds (Student's t)."""
MANY = 1.96

Found = dict[str, dict[str, float]]
"""All figures of each training, by the trial's key."""


def compare_classes(settings: Settings, init: str = "bert-mini") -> Report:
    model_path(init)
    seeds = range(1, settings.rounds(SEEDS) + 1)
    folders = data_folders(settings.data)
    rows: list[list[str]] = []
    panels: dict[str, Values] = {}
    told: list[str] = []
    for recipe, name in RECIPES.items():
        values: Values = {}
        if installed("TF-IDF", "sklearn"):
            peer = measure_apart("bench.engines.tfidf", recipe, *folders, threads=settings.threads)
            scores = class_scores(Classified(peer["gold"], peer["predicted"], peer["classes"]))
            say(f"{name}  TF-IDF, {peer['setting']}: {scores[0]}")
            told.append(f"{name} {peer['setting']} ({peer['valid']:.2f} where it was chosen)")
            rows.append([name, peer["engine"], "1", *peer_cells(scores)])
            values["TF-IDF"] = [scores[0].value]
        found = run_trials(recipe, ["", init], seeds, folders, settings.out / "classes" / recipe)
        for start in ("", init):
            trials = [found[Trial(start, 0, seed).key] for seed in seeds]
            rows.append([name, f"saccade {_began(start)}", str(len(trials)), *own_cells(trials)])
            values[f"saccade {_began(start)}"] = [trial["accuracy"] for trial in trials]
        panels[name] = values
    machine = Machine(settings.threads).look("after")
    return Report(
        title="Classes",
        about=[*_about(len(seeds), init, told), str(machine)],
        header=["task", "engine", "runs", *FIGURES],
        rows=rows,
        unit="percent right on the test part",
        panels=panels,
        digits=2,
    )


def _began(init: str) -> str:
    return f"from {init}" if init else SCRATCH


# Trainings


@dataclass(frozen=True)
class Kept:
    """What was trained before: the study of `saccade transfer`, and beside it the figures it does not keep."""

    study: Transfer
    figures: Found
    folder: Path

    @classmethod
    def read(cls, folder: Path, table: Table) -> "Kept":
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "figures.json"
        figures: Found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return cls(Transfer.read(folder, table), figures, folder)

    def get(self, trial: Trial) -> dict[str, float] | None:
        if trial.key not in self.study.found:
            return None
        first = {self.study.figure: self.study.found[trial.key]}
        kept = self.figures.get(trial.key, {})
        # Figures of another training than the study's do not belong to it.
        return kept if kept.items() >= first.items() else first

    def add(self, trial: Trial, scores: Sequence[Score]) -> None:
        self.study.figure, self.study.found[trial.key] = scores[0].name, scores[0].value
        self.figures[trial.key] = {score.name: score.value for score in scores}
        text = json.dumps(self.figures, indent=2) + "\n"
        (self.folder / "figures.json").write_text(text, encoding="utf-8")
        self.study.save(self.folder)


def run_trials(recipe: str, inits: Sequence[str], seeds: Sequence[int], folders: Sequence[Path], out: Path) -> Found:
    """Every training that is not there yet, from each of the models, with each of the seeds."""
    table = read_toml(recipe_path(recipe))
    kept = Kept.read(out, table)
    found: Found = {}
    for trial in [Trial(init, 0, seed) for seed in seeds for init in inits]:
        figures = kept.get(trial)
        if figures is None:
            scores = train_trial(table, trial, folders)
            if scores is None:
                raise KeyboardInterrupt
            kept.add(trial, scores)
            figures = kept.figures[trial.key]
        if "accuracy" not in figures:
            raise EngineError(f"{out}: {trial.key} has no accuracy; delete transfer.json there to train again")
        say(f"{recipe}  {trial.key}: accuracy {figures['accuracy']:.2f}")
        found[trial.key] = figures
    return found


# The table


def peer_cells(scores: Sequence[Score]) -> list[str]:
    """One training, which comes out the same each time: its interval is of drawings of test examples."""
    by_name = {score.name: score for score in scores}
    cells = []
    for name, digits in FIGURES.items():
        score = by_name.get(name)
        half = f" ± {score.interval:.{digits}f}" if score and score.interval is not None else ""
        cells.append(f"{score.value:.{digits}f}{half}" if score else "–")
    return cells


def own_cells(trials: Sequence[dict[str, float]]) -> list[str]:
    """Mean, standard deviation in brackets, and half of the 95 % interval of the mean."""
    cells = []
    for name, digits in FIGURES.items():
        values = [trial[name] for trial in trials if name in trial]
        cells.append(seeds_cell(values, digits) if len(values) == len(trials) else "–")
    return cells


def seeds_cell(values: Sequence[float], digits: int) -> str:
    mean = f"{statistics.mean(values):.{digits}f}"
    if len(values) < 2:
        return mean
    deviation = statistics.stdev(values)
    return f"{mean} ± {half_interval(values):.{digits}f} ({deviation:.{digits}f})"


def half_interval(values: Sequence[float]) -> float:
    """t · s / √n"""
    return STUDENT.get(len(values), MANY) * statistics.stdev(values) / math.sqrt(len(values))


def _about(seeds: int, init: str, told: list[str]) -> list[str]:
    work = (
        "The recipes sentiment (SST-2), acceptability (CoLA, tested out of domain) and entailment (RTE 1 to 3): all "
        "train on the same training part, choose by the same part and are scored on the same test part, which decides "
        f"nothing. Saccade: the trainings of `saccade transfer --examples all`, from scratch and from {init}, seeds 1 "
        f"to {seeds}: the mean, ± half of the 95 % interval of the mean by Student's t, and in brackets the standard "
        "deviation of the seeds. F1 of '1' is that of positive, acceptable and entailed."
    )
    if not told:
        return [work]
    peer = (
        "TF-IDF: words and pairs of words, or 2 to 5 characters inside words, sublinear counts, logistic regression; "
        "features and C are those with the most right where Saccade, too, is chosen: "
        f"{'; '.join(told)}. Pairs are two rows and their product. It comes out the same each time, so it has no "
        "seeds: ± is half of the middle 95 % of 1,000 drawings of test examples, another interval than that of seeds."
    )
    return [work, peer]

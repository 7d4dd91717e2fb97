"""What pre-training is worth: the same labelled examples, from scratch and from a pre-trained model."""

import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from saccade.config import Table
from saccade.errors import UserError
from saccade.evaluate.metrics import Score
from saccade.study.plots import Panel, draw_panels, markdown_table
from saccade.tasks.contract import Recipe
from saccade.tasks.encoder import EncoderRecipe
from saccade.tasks.fit import fit
from saccade.tasks.recipes import task_named
from saccade.train.log import Log

Say = Callable[[str], None]
SCRATCH = "from scratch"
FEWEST_STEPS = 150
"""Smallest number of steps, however few the examples are."""


@dataclass(frozen=True)
class Trial:
    """One training."""

    init: str
    examples: int
    """0 is all."""
    seed: int

    @property
    def key(self) -> str:
        return f"{self.init or SCRATCH}, {self.examples or 'all'} examples, seed {self.seed}"


@dataclass
class Transfer:
    """All trainings of a study, and what they scored."""

    recipe: Table
    figure: str = ""
    found: dict[str, float] = field(default_factory=dict)
    """By trial."""

    def save(self, folder: Path) -> None:
        aside = folder / ".writing-transfer.json"
        aside.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        aside.rename(folder / "transfer.json")

    @classmethod
    def read(cls, folder: Path, recipe: Table) -> "Transfer":
        path = folder / "transfer.json"
        if not path.exists():
            return cls(recipe)
        try:
            stored = cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise UserError(f"{path} cannot be read; delete it to measure again") from None
        if stored.recipe != recipe and _settled(stored.recipe) != _settled(recipe):
            raise UserError(f"{folder} holds a study of another recipe; choose another --out")
        return stored

    def scores(self, init: str, examples: int, seeds: Sequence[int]) -> list[float]:
        keys = [Trial(init, examples, seed).key for seed in seeds]
        return [self.found[key] for key in keys if key in self.found]


def study_transfer(
    table: Table,
    inits: Sequence[str],
    counts: Sequence[int],
    seeds: Sequence[int],
    folders: Sequence[Path],
    out: Path,
    say: Say,
) -> Path | None:
    """Every trial that was not done yet, then the report; None if it was interrupted."""
    task = task_named(str(table.get("task", "missing")))
    if not issubclass(task.recipe, EncoderRecipe):
        raise UserError(f"a recipe for {task.name} has no encoder that could be trained before")
    study = Transfer.read(out, table)
    trials = [Trial(init, count, seed) for seed in seeds for count in counts for init in inits]
    for number, trial in enumerate(trials, 1):
        if trial.key not in study.found:
            scores = train_trial(table, trial, folders)
            if scores is None:
                return None
            study.figure, study.found[trial.key] = scores[0].name, scores[0].value
            study.save(out)
        say(f"{number}/{len(trials)}  {trial.key}: {study.figure} {study.found[trial.key]:.2f}")
    return write_transfer(study, inits, counts, seeds, out)


def _settled(table: Table) -> Recipe:
    """The recipe of a table. Tables with old and new keys may be the same recipe."""
    return task_named(str(table.get("task", "missing"))).recipe.read(table, where="recipe")


def train_trial(table: Table, trial: Trial, folders: Sequence[Path]) -> Sequence[Score] | None:
    """Train once, and score on the test part; None after Ctrl-C."""
    task = task_named(str(table["task"]))
    recipe = task.recipe.read(fitted(table, trial), where="recipe")
    with tempfile.TemporaryDirectory() as scratch:
        trained = fit(task, recipe, folders, Log(Path(scratch), quiet=True))
    if not trained.outcome.finished:
        return None
    if not trained.scores:
        raise UserError("the recipe names no test part to score on")
    return trained.scores


def fitted(table: Table, trial: Trial) -> Table:
    """The recipe for one trial; fewer examples get fewer steps."""
    settings = {name: value for name, value in table.items() if not (trial.init and name in ("model", "tokens"))}
    settings.pop("most", None)  # examples_limit, in recipes of earlier versions
    before = dict(settings["train"])
    steps = int(before["steps"])
    if trial.examples:
        steps = min(steps, max(FEWEST_STEPS, steps * trial.examples // 4000))
    every = max(1, steps // 5)
    train_table = before | {"steps": steps, "seed": trial.seed, "warmup": max(1, steps // 10), "validate_every": every}
    return settings | {"init": trial.init, "examples_limit": trial.examples, "train": train_table | {"patience": 0}}


def write_transfer(
    study: Transfer, inits: Sequence[str], counts: Sequence[int], seeds: Sequence[int], out: Path
) -> Path:
    """A table of means and spreads, and the curve."""
    rows, lines = [], {}
    most = 2 * max([count for count in counts if count], default=1)
    for init in inits:
        name = init or SCRATCH
        cells, points = [name], []
        for count in counts:
            found = study.scores(init, count, seeds)
            spread = f" ± {statistics.stdev(found):.2f}" if len(found) > 1 else ""
            cells.append(f"{statistics.mean(found):.2f}{spread}")
            points.append((float(count or most), statistics.mean(found)))
        rows.append(cells)
        lines[name] = points
    header = ["", *(f"{count:,} examples" if count else "all" for count in counts)]
    panel = Panel(
        title=f"{study.recipe.get('name', '')}: {study.figure} on the test part",
        across="labelled examples (the last point: all)",
        lines=lines,
        up=study.figure,
        logarithmic=(True, False),
    )
    draw_panels([panel], out / "transfer.png", columns=1)
    text = [
        f"# {study.recipe.get('name', '')}: with and without training before\n",
        f"{study.figure} on the test part, mean and standard deviation over {len(seeds)} seeds, which also draw the "
        "examples.\n",
        markdown_table(header, rows),
        "![score against the number of examples](transfer.png)\n",
    ]
    path = out / "transfer.md"
    path.write_text("\n".join(text), encoding="utf-8")
    return path

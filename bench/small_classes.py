"""Five small sets of labelled texts, as of a stranger: `saccade train classification`, beside a linear model.

Everything is chosen on validation parts. With `--tests` the test parts are opened too, which is done once, at the end.
Trainings are kept in `OUT/small-classes/SET/START` and not repeated; one that was interrupted goes on. The linear model
(TF-IDF of words 1-2 and letters 2-5, logistic regression; features and C by the validation part) reads the same rows.
"""

import csv
import io
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from bench.console import say
from bench.machine import Machine
from bench.report import Report, Values
from bench.settings import Settings
from saccade.data.table import Columns, Examples, read_table
from saccade.data.text import data_folders, find, read_lines
from saccade.evaluate.metrics import Score
from saccade.pipelines.load import load, model_path
from saccade.pipelines.pipeline import unreported
from saccade.tasks.classification import scores
from saccade.tasks.linear import fit_linear
from saccade.tasks.start import english_start
from saccade.tasks.training import RECIPE, Show, go_on, train_named
from saccade.train.leftovers import is_finished

Row = tuple[str, str]
"""A text and its class."""
Parts = dict[str, list[Row]]
MOST_VALID = 1_000
"""Validation rows: few sets of a stranger have more."""
OF_AN_INTENT = 20


def _columns(path: Path, text: int, label: int, *, header: bool) -> list[Row]:
    rows = [line.split("\t") for line in read_lines(path)]
    return [(row[text], row[label]) for row in rows[header:]]


def read_sst2(folders: Sequence[Path]) -> Parts:
    files = {"train": "train", "valid": "dev", "test": "test"}
    return {part: _columns(find(f"sst2/{name}.tsv", folders), 1, 0, header=True) for part, name in files.items()}


def read_cola(folders: Sequence[Path]) -> Parts:
    files = {"train": "train", "valid": "dev_in_domain", "test": "dev_out_of_domain"}
    return {part: _columns(find(f"cola/{name}.tsv", folders), 1, 0, header=True) for part, name in files.items()}


def read_clinc(folders: Sequence[Path]) -> Parts:
    """The first twenty training examples of each intent."""
    files = {"train": "train", "valid": "val", "test": "test"}
    parts = {
        part: _columns(find(f"clinc150/{name}.tsv.gz", folders), 1, 0, header=True) for part, name in files.items()
    }
    by_intent: dict[str, list[Row]] = defaultdict(list)
    for row in parts["train"]:
        by_intent[row[1]].append(row)
    return parts | {"train": [row for rows in by_intent.values() for row in rows[:OF_AN_INTENT]]}


def read_massive(folders: Sequence[Path]) -> Parts:
    files = {"train": "train", "valid": "dev", "test": "test"}
    return {
        part: _columns(find(f"massive/en_es.{name}.tsv.gz", folders), 0, 2, header=False)
        for part, name in files.items()
    }


def read_news(folders: Sequence[Path]) -> Parts:
    """Title and text; 5,600 to train on, 1,000 to choose by, 1,000 to test with, drawn with a fixed seed."""
    lines = "\n".join(read_lines(find("ag_news_cut/ag_news.csv.gz", folders)))
    rows = [(f"{title} {text}", label) for label, title, text in csv.reader(io.StringIO(lines))]
    random.Random(1).shuffle(rows)
    return {"train": rows[:5600], "valid": rows[5600:6600], "test": rows[6600:]}


SETS: dict[str, Callable[[Sequence[Path]], Parts]] = {
    "sst2": read_sst2,
    "cola": read_cola,
    "clinc150": read_clinc,
    "massive": read_massive,
    "ag_news": read_news,
}


@dataclass(frozen=True)
class Result:
    """Accuracies in percent; those of the test part only where it was opened."""

    linear: dict[str, float]
    own: dict[str, float]
    told: str


def compare_small_classes(settings: Settings, model: str = "") -> Report:
    """`model` is what to start from; by default the bundled English encoder."""
    start = model or english_start()
    model_path(start)
    folders = data_folders(settings.data)
    results = {
        name: measure(name, folders, start, settings.out / "small-classes" / name, tests=settings.tests)
        for name in SETS
    }
    header = ["set", "linear, valid", "saccade, valid"]
    header += ["linear, test", "saccade, test", "difference", "calibration error"] if settings.tests else []
    rows = [[name, *_cells(result, tests=settings.tests)] for name, result in results.items()]
    if settings.tests:
        gain = mean(result.own["accuracy"] - result.linear["test"] for result in results.values())
        rows.append(["mean", "", "", "", "", f"{gain:+.2f}", ""])
    key = "test" if settings.tests else "valid"
    panels: dict[str, Values] = {
        name: {"linear": [one.linear[key]], "saccade": [one.own["accuracy" if settings.tests else "valid"]]}
        for name, one in results.items()
    }
    return Report(
        title="Small sets of classes",
        about=[
            __doc__ or "",
            f"Started from {start}.",
            *(f"{name}: {result.told}" for name, result in results.items()),
            str(Machine(settings.threads).look("after")),
        ],
        header=header,
        rows=rows,
        unit="percent right",
        panels=panels,
        digits=2,
    )


def measure(name: str, folders: Sequence[Path], start: str, home: Path, *, tests: bool) -> Result:
    """Train where that was not done, and score."""
    files = _written(SETS[name](folders), home)
    out = home / Path(start).name
    trained(files, out, start, folders)
    train, valid, *test = _examples(files, tests=tests)
    linear = _linear(train, valid, test, home / "linear.json")
    pipeline = load(out)
    own = {"valid": _by_name(scores(pipeline, valid, unreported))["accuracy"]}
    if test:
        own |= _by_name(scores(pipeline, test[0], unreported))
    say(f"{name}: linear {linear}, saccade {own}")
    return Result(linear, own, str(pipeline.mixture.settings))


def trained(files: dict[str, Path], out: Path, start: str, folders: Sequence[Path]) -> None:
    """As `saccade train classification train.tsv valid.tsv test.tsv --from START`, the test part left closed."""
    if is_finished(out):
        return
    if (out / RECIPE).exists():
        fitted = go_on(out, folders, Show(quiet=True))
    else:
        changes = [("data.test", [])]
        paths = list(files.values())
        fitted = train_named("classification", paths, out, folders, changes, init=start, show=Show(quiet=True))
    if not fitted.outcome.finished:
        raise KeyboardInterrupt


def _written(parts: Parts, home: Path) -> dict[str, Path]:
    """The parts as tables, without classes that training does not see, and of validation a part."""
    home.mkdir(parents=True, exist_ok=True)
    known = {label for _, label in parts["train"]}
    files = {}
    for part, rows in parts.items():
        kept = [(" ".join(text.split()), label) for text, label in rows if label in known and text.strip()]
        if part == "valid" and len(kept) > MOST_VALID:
            kept = random.Random(1).sample(kept, MOST_VALID)
        files[part] = home / f"{part}.tsv"
        content = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in kept)
        files[part].write_text(content, encoding="utf-8")
    return files


def _examples(files: dict[str, Path], *, tests: bool) -> list[Examples]:
    train = read_table([files["train"]], Columns())
    others = ["valid", "test"] if tests else ["valid"]
    return [train, *(read_table([files[part]], Columns(), train.classes) for part in others)]


def _linear(train: Examples, valid: Examples, test: Sequence[Examples], kept: Path) -> dict[str, float]:
    """Its accuracies, which are kept: fitting takes minutes where there are many classes."""
    found: dict[str, float] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if not found or (test and "test" not in found):
        linear = fit_linear(train, valid, unreported)
        found = {"valid": linear.accuracy(valid)}
        if test:
            found["test"] = linear.accuracy(test[0])
        kept.write_text(json.dumps(found) + "\n", encoding="utf-8")
    return found


def _by_name(found: Sequence[Score]) -> dict[str, float]:
    return {score.name: score.value for score in found}


def _cells(result: Result, *, tests: bool) -> list[str]:
    cells = [f"{result.linear['valid']:.2f}", f"{result.own['valid']:.2f}"]
    if tests:
        linear, own = result.linear["test"], result.own["accuracy"]
        cells += [f"{linear:.2f}", f"{own:.2f}", f"{own - linear:+.2f}", f"{result.own['calibration error']:.2f}"]
    return cells

"""Several recipes on the same data for the same time, and one report on all of them."""

import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saccade.config import Table
from saccade.data.text import read_pairs
from saccade.errors import UserError, WrongUse
from saccade.evaluate.metrics import bleu
from saccade.folder import read_folder
from saccade.look.alignment import Alignment
from saccade.look.picture import draw
from saccade.pipelines.load import open_folder
from saccade.pipelines.pipeline import Request
from saccade.study.plots import Panel, draw_panels, markdown_table
from saccade.tasks.contract import Recipe, Task
from saccade.tasks.recipes import task_named
from saccade.tasks.sequence import by_source
from saccade.tasks.translation import TranslationTask
from saccade.train.loop import equip
from saccade.train.step import take_step

WARM_STEPS, LEAST_STEPS, LEAST_SECONDS = 3, 10, 8.0
BUCKETS = 5


@dataclass
class Entry:
    """One recipe of a comparison."""

    name: str
    table: Table
    """The recipe as it is trained: with the steps its budget allows."""
    steps: int
    seconds_per_step: float
    """As measured before step 1."""
    tokens_per_step: float = 0.0
    """Target tokens, on average over the steps that were measured."""
    peak_bytes: int = 0
    failure: str = ""
    """Error message, if the recipe failed."""


@dataclass
class Comparison:
    """The plan of a comparison and its results, stored in compare.json."""

    budget: float
    """Training seconds for each recipe, as steps at the measured pace."""
    entries: dict[str, Entry] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        aside = folder / ".writing-compare.json"
        aside.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        aside.rename(folder / "compare.json")

    @classmethod
    def read(cls, folder: Path) -> "Comparison | None":
        path = folder / "compare.json"
        if not path.exists():
            return None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            entries = {name: Entry(**entry) for name, entry in stored["entries"].items()}
            return cls(float(stored["budget"]), entries)
        except (ValueError, TypeError, KeyError):
            raise UserError(f"{path} cannot be read; delete it to measure again") from None


def pace(task: Task, recipe: Recipe, folders: Sequence[Path]) -> tuple[float, float]:
    """Seconds and target tokens of a step, measured on a few steps of a temporary model."""
    with tempfile.TemporaryDirectory() as scratch:
        work = task.prepare(recipe, folders, Path(scratch), resume=False).work
        optimizer, gradients = equip(work.model, work.objective, recipe.train)
        work.model.train()
        times: list[float] = []
        tokens: list[int] = []
        while len(times) < WARM_STEPS + LEAST_STEPS or sum(times[WARM_STEPS:]) < LEAST_SECONDS:
            began = time.perf_counter()
            chosen = [part for _ in range(recipe.train.accumulate) for part in gradients.split(next(work.sampler))]
            batches = [work.batch(indices) for indices in chosen]
            take_step(gradients, optimizer, batches, recipe.train.clip)
            times.append(time.perf_counter() - began)
            tokens.append(sum(work.objective.count(batch) for batch in batches))
    return statistics.mean(times[WARM_STEPS:]), statistics.mean(tokens[WARM_STEPS:])


def plan(name: str, table: Table, folders: Sequence[Path], budget: float, notes: list[str] | None = None) -> Entry:
    """The recipe with as many steps as the budget allows, its warm-up and validations in proportion.

    `notes` collects which keys have a new name."""
    task = task_named(str(table.get("task", "missing")))
    recipe = task.recipe.read(table, where=name, notes=notes)
    seconds, tokens = pace(task, recipe, folders)
    steps = max(1, round(budget / seconds))
    before = recipe.train
    share = steps / before.steps
    train = dict(table.get("train", {})) | {
        "steps": steps,
        "warmup": min(before.warmup, max(1, steps // 4)) if share < 1 else before.warmup,
        "validate_every": max(1, steps // 10),
        "patience": 0,
    }
    return Entry(name, table | {"train": train}, steps, seconds, tokens)


@dataclass(frozen=True)
class Result:
    """What the report says of a trained recipe."""

    entry: Entry
    parameters: int
    bleu: float
    interval: float
    training: float
    """Target tokens per second, at the pace measured before step 1: a long run may share the cores with others."""
    decoding: float
    """Target tokens per second on the test part, beam search as the recipe sets it."""
    curve: list[tuple[float, float]]
    """Share of the budget, validation BLEU."""
    by_length: list[tuple[float, float]]
    """Mean source words of a bucket of test sentences, their BLEU."""
    alignment: Alignment | None


def measure(entry: Entry, run: Path, folders: Sequence[Path], sentence: str) -> Result:
    folder = read_folder(run)
    task = task_named(folder.config.task)
    if not isinstance(task, TranslationTask):
        raise WrongUse(f"{entry.name}: recipes for translation can be compared, not for {task.name}")
    pipeline = open_folder(folder)
    sources, references = by_source(read_pairs(task.test_files(folder, folders)))
    pipeline.answer(sources[:64], Request())  # first calls pack weights and start threads
    began = time.perf_counter()
    answers = pipeline.answer(sources, Request())
    seconds = time.perf_counter() - began
    outputs: list[Any] = [answer for answer in answers if not isinstance(answer, UserError)]
    if len(outputs) < len(answers):
        raise UserError(f"{entry.name}: {len(answers) - len(outputs)} test sentences could not be read")
    lowercase = bool(folder.config.settings.get("lowercase", False))
    texts = [output.text for output in outputs]
    score = bleu(texts, references, lowercase=lowercase, bootstrap=1000)
    lengths = np.array([len(source.split()) for source in sources])
    by_length = []
    for chosen in np.array_split(np.argsort(lengths, kind="stable"), BUCKETS):
        part = bleu([texts[i] for i in chosen], [references[i] for i in chosen], lowercase=lowercase)
        by_length.append((float(lengths[chosen].mean()), part.value))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    curve = [(line["step"] / entry.steps, line["validation"]["bleu"]) for line in lines if "validation" in line]
    answer: Any = pipeline.answer([sentence or sources[0]], Request())[0]
    try:
        alignment = answer.looks.alignment()
    except WrongUse:
        alignment = None  # no attention, nothing to draw
    return Result(
        entry=entry,
        parameters=sum(weight.size for weight in folder.weights.values()),
        bleu=score.value,
        interval=score.interval or 0.0,
        training=entry.tokens_per_step / entry.seconds_per_step,
        decoding=sum(len(output.target_ids) + 1 for output in outputs) / seconds,
        curve=curve,
        by_length=by_length,
        alignment=alignment,
    )


def write_report(comparison: Comparison, results: Sequence[Result], folder: Path) -> Path:
    """report.md with its pictures, and the same numbers in report.json."""
    draw_panels(
        [
            Panel(
                "learning", "share of the training time", {r.entry.name: r.curve for r in results}, "validation BLEU"
            ),
            Panel("by length", "words in the source", {r.entry.name: r.by_length for r in results}, "test BLEU"),
        ],
        folder / "curves.png",
    )
    looking = [result for result in results if result.alignment is not None]
    if looking:
        _draw_alignments(looking, folder / "attention.png")
    header = ["recipe", "BLEU", "parameters", "steps", "training tokens/s", "decoding tokens/s", "peak memory"]
    rows = [
        [
            r.entry.name,
            f"{r.bleu:.2f} ± {r.interval:.2f}",
            f"{r.parameters:,}",
            f"{r.entry.steps:,}",
            f"{r.training:,.0f}",
            f"{r.decoding:,.0f}",
            f"{r.entry.peak_bytes / 2**20:,.0f} MB",
        ]
        for r in sorted(results, key=lambda r: r.bleu)
    ]
    lengths = [f"{length:.1f}" for length, _ in results[0].by_length] if results else []
    by_length = [[r.entry.name, *(f"{score:.1f}" for _, score in r.by_length)] for r in results]
    minutes = comparison.budget / 60
    parts = [
        "# Compared\n",
        f"Every recipe was trained for {minutes:g} minutes on {torch.get_num_threads()} threads: as many steps as fit, "
        "at the pace measured before its first step; validations come on top. BLEU is that of the test part, with its "
        "95 % bootstrap interval; tokens are target tokens, those of training per second at that pace; peak memory is "
        "that of the training process.\n",
        markdown_table(header, rows),
        "![learning curves, and BLEU by source length](curves.png)\n",
        "BLEU by the mean number of words in the source, a fifth of the test part each:\n",
        markdown_table(["recipe", *lengths], by_length) if results else "",
    ]
    if looking:
        parts.append("Where each looked while it wrote one sentence:\n\n![attention side by side](attention.png)\n")
    failed = [entry for entry in comparison.entries.values() if entry.failure]
    parts += [f"{entry.name} failed: {entry.failure}\n" for entry in failed]
    (folder / "report.md").write_text("\n".join(parts), encoding="utf-8")
    numbers = [_numbers(result) for result in results]
    (folder / "report.json").write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    return folder / "report.md"


def _numbers(result: Result) -> Table:
    return {
        "recipe": result.entry.name,
        "bleu": result.bleu,
        "interval": result.interval,
        "parameters": result.parameters,
        "steps": result.entry.steps,
        "seconds_per_step": result.entry.seconds_per_step,
        "training_tokens_per_second": result.training,
        "decoding_tokens_per_second": result.decoding,
        "peak_bytes": result.entry.peak_bytes,
        "curve": result.curve,
        "by_length": result.by_length,
    }


def _draw_alignments(results: Sequence[Result], path: Path) -> None:
    found = ((result.entry.name, result.alignment) for result in results)
    draw([replace(one, title=f"{name}: {one.title}") for name, one in found if one is not None], path)

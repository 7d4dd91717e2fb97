"""Training speed: real target tokens per second on Multi30k en→de, the same batches for every engine."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from bench.console import installed, say
from bench.engines.contract import SIZE
from bench.engines.saccade import build_model
from bench.machine import Machine
from bench.multi30k import Corpus, read_multi30k
from bench.process import MALLOC, measure_apart
from bench.report import Report, spread
from bench.settings import Settings
from saccade.data.batches import SequencePairs
from saccade.data.ragged import Ragged
from saccade.data.sampler import Sampler
from saccade.models.encdec import EncoderDecoder
from saccade.train.objective import SequenceObjective

NEEDS = {"saccade": "saccade", "torch": "torch", "marian": "transformers"}
"""The engines in the order of a round, and the package each needs."""
OWN_LOOP = "joeynmt"
"""The one engine that is not a model in our loop but a program with a loop and batches of its own."""
BUDGET = 4096


@dataclass(frozen=True)
class Load:
    """The work given to every engine."""

    path: Path
    lines: Path
    """The corpus as lines of subwords, for the engine that makes its own batches."""
    vocabulary: int
    flops: float
    """Useful floating-point operations of the steps on the clock: padding not counted."""
    tokens: int
    """Real target tokens of the same steps."""
    fill: float
    """The share of target positions that are real."""


def compare_training(settings: Settings) -> Report:
    engines = [name for name, package in NEEDS.items() if installed(name, package)]
    if settings.joeynmt:
        engines.append(OWN_LOOP)
    else:
        say(f"{OWN_LOOP}: skipped; give the Python of an environment that has it with --joeynmt PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        load = prepare(settings, Path(folder))
        say(
            f"rounds: {settings.rounds()}, engines: {len(engines)}, threads: {settings.threads}; "
            f"{settings.warmup} + {settings.steps} steps each: {load.tokens:,} real target tokens on the clock"
        )
        machine, runs = measure(settings, engines, load)
    return describe(settings, load, machine, runs)


def prepare(settings: Settings, folder: Path, build: Callable[[int], EncoderDecoder] = build_model) -> Load:
    """Make the batches once, as Saccade makes them, and save them for the engines."""
    corpus = read_multi30k(settings)
    vocabulary, marks = len(corpus.vocabulary), corpus.vocabulary.marks
    examples = SequencePairs(Ragged.of(corpus.sources), Ragged.of(corpus.targets), marks)
    sampler = Sampler(*examples.sizes(), budget=BUDGET, seed=1)
    batches = [examples.batch(next(sampler)) for _ in range(settings.warmup + settings.steps)]
    torch.save(
        {
            "vocabulary": vocabulary,
            "marks": marks.table(),
            "batches": [(b.source, b.source_mask, b.target_BT, b.labels_BT) for b in batches],
        },
        folder / "batches.pt",
    )
    write_lines(corpus, folder)
    objective = SequenceObjective()
    with torch.device("meta"):
        model = build(vocabulary)
    timed = batches[settings.warmup :]
    tokens = sum(objective.count(batch) for batch in timed)
    return Load(
        path=folder / "batches.pt",
        lines=folder,
        vocabulary=vocabulary,
        flops=sum(objective.flops(model, batch) for batch in timed),
        tokens=tokens,
        fill=tokens / sum(batch.labels_BT.numel() for batch in timed),
    )


def write_lines(corpus: Corpus, folder: Path) -> None:
    """Every subword as a word of its own, named by its number, so that a reader of words sees our subwords."""
    for name, side in (("train.en", corpus.sources), ("train.de", corpus.targets)):
        text = "".join(" ".join(f"w{i}" for i in ids) + "\n" for ids in side)
        (folder / name).write_text(text, encoding="utf-8")
    words = [f"w{i}" for i in corpus.vocabulary.text_ids]
    (folder / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


def measure(settings: Settings, engines: list[str], load: Load) -> tuple[Machine, dict[str, list[Any]]]:
    """Every engine once a round, so that a slow minute of the machine meets all of them alike."""
    machine = Machine(settings.threads)
    runs: dict[str, list[Any]] = {engine: [] for engine in engines}
    for number in range(1, settings.rounds() + 1):
        place = f"round {number}/{settings.rounds()}"
        machine.look(place)
        for engine in engines:
            run = _run(settings, engine, load)
            runs[engine].append(run)
            speed, loss = run["tokens"] / run["seconds"], run["loss"]
            say(f"{place}  {engine:8} {speed:,.0f} tokens/s in {run['seconds']:.1f} s, loss {loss:.2f} at the end")
    return machine, runs


def _run(settings: Settings, engine: str, load: Load) -> dict[str, Any]:
    clock = ("--warmup", settings.warmup, "--steps", settings.steps)
    module = f"bench.engines.{engine}"
    if engine == OWN_LOOP and settings.joeynmt:
        arguments = (load.lines, *clock, "--budget", BUDGET)
        return measure_apart(module, *arguments, threads=settings.threads, environment=MALLOC, python=settings.joeynmt)
    return measure_apart(module, load.path, *clock, threads=settings.threads, environment=MALLOC)


def describe(settings: Settings, load: Load, machine: Machine, runs: dict[str, list[Any]]) -> Report:
    values = {engine: [run["tokens"] / run["seconds"] for run in measured] for engine, measured in runs.items()}
    own = median(values["saccade"])
    rows = []
    for engine, speeds in values.items():
        middle = median(speeds)
        gigaflops = middle * load.flops / load.tokens / 1e9
        share = f"{gigaflops / machine.gigaflops:.0%}"
        title = runs[engine][0]["engine"]
        rows.append([title, f"{middle:,.0f}", spread(speeds), f"{own / middle:.2f}×", f"{gigaflops:.1f}", share])
    return Report(
        title="Training speed",
        about=[*_about(settings, load, runs), str(machine)],
        header=["engine", "tokens/s", "min–max", "saccade is", "GFLOP/s", "of peak"],
        rows=rows,
        unit="real target tokens/s",
        panels={"": values},
    )


def _about(settings: Settings, load: Load, runs: dict[str, list[Any]]) -> list[str]:
    parameters = ", ".join(f"{engine} {measured[0]['parameters']:,}" for engine, measured in runs.items())
    size = (
        f"Multi30k en→de, joint byte-level BPE of {load.vocabulary:,}, batches of at most {BUDGET} tokens bucketed by "
        f"length ({load.fill:.1%} of the target positions are real); {SIZE.layers}+{SIZE.layers} layers, width "
        f"{SIZE.width}, {SIZE.heads} heads, feed-forward {SIZE.feedforward}; one matrix embeds both sides and writes. "
        f"Weights: {parameters}."
    )
    work = (
        "Every engine does the same work on the same batches: forward, loss on real positions only with label "
        f"smoothing {SIZE.smoothing}, backward, clipping at {SIZE.clip}, fused AdamW; dropout {SIZE.dropout} after the "
        "embedding and each sub-layer. Each runs in a process of its own, in turn, with the same malloc settings "
        f"(rounds: {settings.rounds()}; threads: {settings.threads}; steps: {settings.warmup} unmeasured, then "
        f"{settings.steps} on the clock). tokens/s counts real target tokens; GFLOP/s counts the useful operations in "
        f"weight matrices ({load.flops / load.tokens / 1e6:.1f} million per target token), padding and attention "
        "scores left out."
    )
    if OWN_LOOP not in runs:
        return [size, work]
    own_loop = (
        "JoeyNMT is a program with a training loop of its own: the same subwords, sizes and token budget, but its own "
        f"batches, not bucketed by length ({runs[OWN_LOOP][0]['fill']:.0%} of the target positions are real), its own "
        "loss and its own Adam."
    )
    return [size, work, own_loop]

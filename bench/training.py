"""Training speed: real target tokens per second on Multi30k en→de, the same batches for every engine."""

import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch

from bench.engines.contract import SIZE
from bench.engines.saccade import build_model
from bench.process import measure_apart
from bench.report import Report
from bench.settings import Settings
from saccade.data.batches import Ragged, SequencePairs
from saccade.data.sampler import Sampler
from saccade.data.text import data_folders, find, read_pairs
from saccade.tokens.bpe import PAD, BpeConfig, train_bpe
from saccade.train.objective import SequenceObjective

NEEDS = {"saccade": "saccade", "torch": "torch", "marian": "transformers"}
"""The engines in the order of a round, and the package each needs."""
FILES = ("multi30k/train.en.gz", "multi30k/train.de.gz")
VOCABULARY = 8000
BUDGET = 4096


@dataclass(frozen=True)
class Load:
    """The work given to every engine."""

    path: Path
    vocabulary: int
    flops: float
    """Useful floating-point operations of the steps on the clock: padding not counted."""
    tokens: int
    """Real target tokens of the same steps."""
    fill: float
    """The share of target positions that are real."""


def compare_training(settings: Settings) -> Report:
    engines = [name for name, package in NEEDS.items() if _installed(name, package)]
    with tempfile.TemporaryDirectory() as folder:
        _say(f"reading {' and '.join(FILES)}, learning {VOCABULARY:,} subwords")
        load = prepare(settings, Path(folder) / "batches.pt")
        _say(
            f"rounds: {settings.repeats}, engines: {len(engines)}, threads: {settings.threads}; "
            f"{settings.warmup} + {settings.steps} steps each: {load.tokens:,} real target tokens on the clock"
        )
        limits, runs = measure(settings, engines, load)
    return describe(settings, load, limits, runs)


def prepare(settings: Settings, path: Path) -> Load:
    """Make the batches once, as Saccade makes them, and save them for the engines."""
    folders = data_folders(settings.data)
    pairs = read_pairs([find(name, folders) for name in FILES])
    vocabulary = train_bpe(BpeConfig(vocabulary=VOCABULARY), (text for pair in pairs for text in pair))
    sources, targets = (Ragged(vocabulary.encode(side)) for side in zip(*pairs, strict=True))
    examples = SequencePairs(sources, targets)
    sampler = Sampler(*examples.sizes(), budget=BUDGET, seed=1)
    batches = [examples.batch(next(sampler)) for _ in range(settings.warmup + settings.steps)]
    torch.save(
        {
            "vocabulary": len(vocabulary),
            "pad": PAD,
            "batches": [(b.source_BS, b.source_mask_BS, b.target_BT, b.labels_BT) for b in batches],
        },
        path,
    )
    objective = SequenceObjective()
    with torch.device("meta"):
        model = build_model(len(vocabulary))
    timed = batches[settings.warmup :]
    tokens = sum(objective.count(batch) for batch in timed)
    return Load(
        path=path,
        vocabulary=len(vocabulary),
        flops=sum(objective.flops(model, batch) for batch in timed),
        tokens=tokens,
        fill=tokens / sum(batch.labels_BT.numel() for batch in timed),
    )


def measure(settings: Settings, engines: list[str], load: Load) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Every engine once a round, so that a slow minute of the machine meets all of them alike."""
    limits: dict[str, Any] = {"gigaflops": 0.0}
    runs: dict[str, list[Any]] = {engine: [] for engine in engines}
    for number in range(1, settings.repeats + 1):
        place = f"round {number}/{settings.repeats}"
        found = measure_apart("bench.limits", threads=settings.threads)
        limits = max(limits, found, key=lambda one: one["gigaflops"])
        _say(f"{place}  limits   {found['gigaflops']:.0f} GFLOP/s matmul, {found['gigabytes']:.1f} GB/s memory")
        for engine in engines:
            arguments = (load.path, "--warmup", settings.warmup, "--steps", settings.steps)
            run = measure_apart(f"bench.engines.{engine}", *arguments, threads=settings.threads)
            runs[engine].append(run)
            speed, loss = run["tokens"] / run["seconds"], run["loss"]
            _say(f"{place}  {engine:8} {speed:,.0f} tokens/s in {run['seconds']:.1f} s, loss {loss:.2f} at the end")
    return limits, runs


def describe(settings: Settings, load: Load, limits: dict[str, Any], runs: dict[str, list[Any]]) -> Report:
    values = {engine: [run["tokens"] / run["seconds"] for run in measured] for engine, measured in runs.items()}
    own = median(values["saccade"])
    rows = []
    for engine, speeds in values.items():
        middle = median(speeds)
        gigaflops = middle * load.flops / load.tokens / 1e9
        spread = f"{min(speeds):,.0f}–{max(speeds):,.0f}"
        share = f"{gigaflops / limits['gigaflops']:.0%}"
        rows.append(
            [runs[engine][0]["engine"], f"{middle:,.0f}", spread, f"{middle / own:.2f}", f"{gigaflops:.1f}", share]
        )
    parameters = ", ".join(f"{engine} {measured[0]['parameters']:,}" for engine, measured in runs.items())
    size = (
        f"Multi30k en→de, joint byte-level BPE of {load.vocabulary:,}, batches of at most {BUDGET} tokens bucketed by "
        f"length ({load.fill:.1%} of the target positions are real); {SIZE.layers}+{SIZE.layers} layers, width "
        f"{SIZE.width}, {SIZE.heads} heads, feed-forward {SIZE.hidden}; one matrix embeds both sides and writes. "
        f"Weights: {parameters}."
    )
    work = (
        "Every engine does the same work on the same batches: forward, loss on real positions only with label "
        f"smoothing {SIZE.smoothing}, backward, clipping at {SIZE.clip}, fused AdamW; dropout {SIZE.dropout} after the "
        "embedding and each sub-layer. Each runs in a process of its own, in turn, with the same malloc settings "
        f"(rounds: {settings.repeats}; threads: {settings.threads}; steps: {settings.warmup} unmeasured, then "
        f"{settings.steps} on the clock). tokens/s counts real target tokens; GFLOP/s counts the useful operations in "
        f"weight matrices ({load.flops / load.tokens / 1e6:.1f} million per target token), padding and attention "
        "scores left out."
    )
    machine = (
        f"Limits of this machine in the same run, {limits['instructions']}, torch {limits['torch']}: "
        f"{limits['gigaflops']:.0f} GFLOP/s (best fp32 matmul), {limits['gigabytes']:.1f} GB/s (memory)."
    )
    return Report(
        title="Training speed",
        about=[size, work, machine],
        header=["engine", "tokens/s", "min–max", "of saccade", "GFLOP/s", "of peak"],
        rows=rows,
        unit="real target tokens/s",
        values=values,
    )


def _installed(engine: str, package: str) -> bool:
    if find_spec(package) is not None:
        return True
    _say(f"{engine}: skipped, {package} is not installed (pip install '.[bench]')")
    return False


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

"""Time to a good model: training seconds until 30 BLEU on the development part of Multi30k en→de.

A run takes many minutes, so each is stored when it ends and not repeated: delete its file to run it again.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from bench.console import say
from bench.engines.contract import SIZE
from bench.machine import Machine
from bench.multi30k import DEVELOPMENT, read_multi30k
from bench.process import MALLOC, measure_apart
from bench.race import BEHIND, PATIENCE, Plan
from bench.report import Report
from bench.settings import Settings

GOAL = 30.0
OWN = Plan(rate=1e-3, schedule="linear", warmup=150, steps=1600, budget=512, dropout=0.0, positions="rotary")
"""What the search in docs/training.md found."""
PLAIN = Plan(rate=1e-3, schedule="inverse-square-root", warmup=400, steps=100_000, budget=2048)
"""Vaswani et al. 2017, 5.3, whose schedule needs no end; the batches are the same, the warm-up fits the small task."""
RATES = (2e-3, 1e-3, 5e-4)
"""Peak rates of which the peer's best counts; the one that was fastest before goes first, so that others may stop."""

Runs = dict[str, tuple[str, Plan]]


def contestants() -> Runs:
    peers = {f"torch-{rate:g}": ("torch", replace(PLAIN, rate=rate)) for rate in RATES}
    return {"saccade": ("saccade", OWN)} | peers


def compare_time_to_bleu(settings: Settings) -> Report:
    folder = settings.out / "time-to-bleu"
    folder.mkdir(parents=True, exist_ok=True)
    runs = {}
    most = float(settings.most)
    ahead: list[Any] = []
    for name, (engine, plan) in contestants().items():
        path = folder / f"{name}.json"
        stored = _stored(path, plan, most)
        if stored is not None:
            say(f"{name}: as stored in {path}")
        runs[name] = stored or _run(settings, name, engine, plan, path, most, ahead)
        if name != "saccade" and runs[name]["reached"] and runs[name]["seconds"] <= most:
            most = runs[name]["seconds"]  # of the peer's rates the fastest counts: a slower one may stop
            ahead = runs[name]["curve"]
    return describe(settings, Machine(settings.threads).look("after"), runs)


def _stored(path: Path, plan: Plan, most: float) -> dict[str, Any] | None:
    """An earlier run, if it trained in the same way and reached the goal, or was decided without it."""
    if not path.exists():
        return None
    run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    decided = run["reached"] or run.get("hopeless") or run["most"] >= most
    return run if run["plan"] == asdict(plan) and decided else None


def _run(
    settings: Settings, name: str, engine: str, plan: Plan, path: Path, most: float, ahead: list[Any]
) -> dict[str, Any]:
    say(f"{name}: {plan}")
    data = path.with_name("data.pt")
    if not data.exists():
        corpus = read_multi30k(settings)
        torch.save(
            {
                "tokenizer": corpus.vocabulary.tokenizer.to_str(),
                "sources": corpus.sources,
                "targets": corpus.targets,
                "development": corpus.development,
            },
            data,
        )
    every = max(1, settings.every * PLAIN.budget // plan.budget)  # after as many tokens, whatever the batches
    limits = ("--every", every, "--most", most, "--goal", GOAL, "--ahead", json.dumps(ahead))
    run = measure_apart(
        "bench.race",
        engine,
        data,
        "--plan",
        json.dumps(asdict(plan)),
        *limits,
        threads=settings.threads,
        environment=MALLOC,
        watched=True,
    )
    path.write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    return run


def describe(settings: Settings, machine: Machine, runs: dict[str, dict[str, Any]]) -> Report:
    own = runs["saccade"]
    rows = []
    for run in runs.values():
        both = run["reached"] and own["reached"]
        rows.append(
            [
                f"{run['engine']}, {Plan(**run['plan'])}",
                f"{run['seconds']:,.0f}" if run["reached"] else f"not in {run['seconds']:,.0f}",
                f"{run['step']:,}",
                f"{run['best']:.2f}",
                f"{run['seconds'] / own['seconds']:.2f}" if both else "–",
            ]
        )
    work = (
        f"Multi30k en→de, {SIZE.layers}+{SIZE.layers} layers, width {SIZE.width}, {SIZE.heads} heads, feed-forward "
        f"{SIZE.feedforward}, label smoothing {SIZE.smoothing}, one joint vocabulary; the same maker of batches. After "
        f"every {settings.every * PLAIN.budget:,} tokens the development part ({DEVELOPMENT[0]}, whole) is "
        "translated greedily, the clock standing still, and scored by BLEU, lower-cased, 13a; training stops at "
        f"{GOAL:.0f}. torch.nn.Transformer is decoded by Saccade's search, with its weights in Saccade's modules, "
        "after a check that both give the same loss. One seed. Of the peer's rates the fastest counts; another stops "
        f"when it has taken as long, or is {BEHIND:g} BLEU behind it at the same step, {PATIENCE} or later. "
        "“times saccade”: above 1, Saccade is faster."
    )
    return Report(
        title=f"Training time to {GOAL:.0f} BLEU",
        about=[work, str(machine)],
        header=["engine", "training seconds", "steps", "best BLEU", "times saccade"],
        rows=rows,
        unit="training seconds",
        panels={"": {name: [run["seconds"]] for name, run in runs.items()}},
    )

"""Training speed of GRU + additive attention: real target tokens per second on Multi30k en→de, beside JoeyNMT's."""

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from bench.console import say
from bench.engines.contract import RECURRENT, SIZE
from bench.engines.recurrent import build_model
from bench.machine import Machine
from bench.process import MALLOC, measure_apart
from bench.report import Report, spread
from bench.settings import Settings
from bench.training import BUDGET, Load, prepare


def compare_recurrent(settings: Settings) -> Report:
    if not settings.joeynmt:
        say("joeynmt: skipped; give the Python of an environment that has it with --joeynmt PYTHON")
    machine = Machine(settings.threads)
    runs: dict[str, list[Any]] = {"saccade": []} | ({"joeynmt": []} if settings.joeynmt else {})
    with tempfile.TemporaryDirectory() as folder:
        load = prepare(settings, Path(folder), build_model)
        for number in range(1, settings.rounds() + 1):
            machine.look(f"round {number}/{settings.rounds()}")
            for engine, measured in runs.items():
                measured.append(_run(settings, engine, load))
                speed = measured[-1]["tokens"] / measured[-1]["seconds"]
                say(f"round {number}/{settings.rounds()}  {engine:8} {speed:,.0f} tokens/s")
    return describe(settings, load, machine, runs)


def _run(settings: Settings, engine: str, load: Load) -> dict[str, Any]:
    clock = ("--warmup", settings.warmup, "--steps", settings.steps)
    if engine == "saccade":
        return measure_apart("bench.engines.recurrent", load.path, *clock, threads=settings.threads, environment=MALLOC)
    assert settings.joeynmt is not None
    return measure_apart(
        "bench.engines.joeynmt",
        *(load.lines, *clock, "--budget", BUDGET, "--family", "recurrent"),
        threads=settings.threads,
        environment=MALLOC,
        python=settings.joeynmt,
    )


def describe(settings: Settings, load: Load, machine: Machine, runs: dict[str, list[Any]]) -> Report:
    values = {engine: [run["tokens"] / run["seconds"] for run in measured] for engine, measured in runs.items()}
    own = median(values["saccade"])
    rows = [
        [
            runs[engine][0]["engine"],
            f"{runs[engine][0]['parameters']:,}",
            f"{median(speeds):,.0f}",
            spread(speeds),
            f"{own / median(speeds):.2f}×",
        ]
        for engine, speeds in values.items()
    ]
    work = (
        f"Multi30k en→de, joint byte-level BPE of {load.vocabulary:,}; token vectors of {RECURRENT.embed}, a "
        f"bidirectional GRU of {RECURRENT.width // 2} a side, a GRU of {RECURRENT.width} with additive attention, "
        f"dropout {SIZE.dropout}; batches of at most {BUDGET} tokens, Saccade's bucketed by length, JoeyNMT's its own. "
        "JoeyNMT feeds its output into the next step, and its output layer is not tied. tokens/s counts real target "
        f"tokens (rounds: {settings.rounds()}; steps: {settings.warmup} unmeasured, {settings.steps} on the clock)."
    )
    return Report(
        title="Training speed, GRU + attention",
        about=[work, str(machine)],
        header=["engine", "weights", "tokens/s", "min–max", "saccade is"],
        rows=rows,
        unit="real target tokens/s",
        panels={"": values},
    )

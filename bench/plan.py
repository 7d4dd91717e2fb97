"""The planner against this machine: time of a step and memory of five small models, planned and measured."""

from statistics import median

from bench.console import say
from bench.machine import Machine
from bench.planned import CASES
from bench.process import measure_apart
from bench.report import Report
from bench.settings import Settings

WANTED = 0.2
"""Largest error that is wanted."""


def compare_plan(settings: Settings) -> Report:
    """Each model in a process of its own; the peak of products is that of this run."""
    machine = Machine(settings.threads).look("before")
    rows, values = [], {}
    for family in CASES:
        found = [
            measure_apart("bench.planned", family, settings.steps, machine.gigaflops, threads=settings.threads)
            for _ in range(settings.rounds(3))
        ]
        seconds, size = (median(one[name] for one in found) for name in ("seconds", "bytes"))
        planned, planned_size = found[0]["planned_seconds"], found[0]["planned_bytes"]
        values[family] = [1000 * one["seconds"] for one in found]
        rows.append(
            [
                family, f"{found[0]['weights']:,}", f"{1000 * seconds:.0f}", f"{1000 * planned:.0f}",
                f"{planned / seconds - 1:+.0%}", f"{size / 1e6:.0f}", f"{planned_size / 1e6:.0f}",
                f"{planned_size / size - 1:+.0%}",
            ]
        )  # fmt: skip
        say(f"{family}: {rows[-1]}")
    work = (
        f"Steps of training in float32, dropout 0.1, no padding; planned with the peak of products of this run and the "
        f"share of it that `saccade plan` assumes for a CPU. Errors within {WANTED:.0%} are wanted."
    )
    return Report(
        title="Plans against measured steps",
        about=[work, str(machine)],
        header=["model", "weights", "ms a step", "planned", "error", "MB", "planned", "error"],
        rows=rows,
        unit="ms a step",
        panels={"": values},
        digits=1,
    )

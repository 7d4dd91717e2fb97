"""The memory of attention over a long text: a whole process with one multi-head layer of Saccade in it."""

from bench.console import say
from bench.layer import HEADS, PADDED, WIDTH
from bench.machine import Machine
from bench.process import EngineError, measure_apart
from bench.report import Report
from bench.settings import Settings

LIMIT = 1.5
"""Gigabytes that the largest of the sizes may take."""


def compare_memory(settings: Settings) -> Report:
    """Two sizes, so that one sees whether memory grows with the tokens or with their square."""
    machine = Machine(settings.threads).look("before")
    rows, values = [], {}
    for tokens in (settings.tokens // 4, settings.tokens):
        found = measure_apart("bench.layer", tokens, threads=settings.threads)
        if not found["finite"]:
            raise EngineError(f"the layer's output on {tokens:,} tokens is not finite")
        peak = found["bytes"] / 1e9
        say(f"{tokens:,} tokens: {peak:.2f} GB, {found['seconds']:.1f} s")
        values[f"{tokens:,} tokens"] = [peak]
        rows.append([f"{tokens:,}", f"{peak:.2f}", f"{found['seconds']:.1f}", f"{tokens**2 * 4 / 1e9:,.1f}"])
    work = (
        f"One multi-head layer of Saccade, {HEADS} heads of {WIDTH // HEADS}, forward over one text of which "
        f"{PADDED:.0%} are padding. Peak memory is the whole process's, Python and torch included; at most {LIMIT} GB "
        "are wanted for 65,536 tokens. The last column is what one head's weights would take, written out."
    )
    return Report(
        title="Memory of one attention layer",
        about=[work, str(machine)],
        header=["tokens", "peak GB", "seconds", "GB of one T × T table"],
        rows=rows,
        unit="GB",
        panels={"": values},
        digits=2,
    )

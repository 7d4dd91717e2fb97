"""Language models that write on: GPT-2's shape and Llama's, against CTranslate2 and Hugging Face at their best."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.console import installed, say
from bench.contest import (
    CTRANSLATE2,
    DEFAULT,
    HUGGING_FACE,
    OWN,
    WHY_DEFAULT,
    Best,
    Contestant,
    Measured,
    best_settings,
    cells,
    measure,
    own_settings,
    peer_settings,
    share,
    thread_counts,
)
from bench.machine import Machine
from bench.process import measure_apart
from bench.report import Report, Values
from bench.roofline import Numbers, least_milliseconds
from bench.settings import Settings
from bench.writers.contract import BATCH, FEW, LONG_PROMPT, MANY, MEMORIES, PROMPT, SHAPES, SPEEDS, Shape
from saccade.runtime.contract import How

NEEDS = {CTRANSLATE2: "ctranslate2", HUGGING_FACE: "transformers"}
HOWS: tuple[How, ...] = (DEFAULT, "int16")


def compare_gpt(settings: Settings) -> Report:
    peers = {name: package for name, package in NEEDS.items() if installed(name, package)}
    with tempfile.TemporaryDirectory() as room:
        folders = {shape: Path(room) / shape for shape in SHAPES}
        proofs = [_same_weights(settings, shape, folder, list(peers.values())) for shape, folder in folders.items()]
        contestants = {shape: list(_contestants(settings, shape, peers, folders[shape])) for shape in SHAPES}
        machine, measured = measure(settings, contestants)
    return describe(settings, machine, measured, proofs)


def _contestants(settings: Settings, shape: str, peers: dict[str, str], folder: Path) -> Iterator[Contestant]:
    asked, threads = ("--folder", str(folder)), settings.threads
    yield from own_settings("bench.writers.saccade", SHAPES[shape].config, HOWS, asked, threads)
    if CTRANSLATE2 in peers:
        yield from peer_settings(CTRANSLATE2, "bench.writers.ctranslate2", asked, threads)
    if HUGGING_FACE in peers:
        for count in thread_counts(threads):
            yield Contestant(HUGGING_FACE, f"threads: {count}", "bench.writers.generate", asked, count)


def _same_weights(settings: Settings, shape: str, folder: Path, packages: list[str]) -> str:
    """Writes the models too: without it there is nothing to measure."""
    asked = ("--folder", folder, "--peers", ",".join(packages))
    found = measure_apart("bench.writers.same", shape, *asked, threads=settings.threads)
    each = [
        f"{name} {peer['agreement']:.0%} of the greedy tokens, log-probabilities within {peer['difference']:.1e}"
        for name, peer in found["peers"].items()
    ]
    proof = f"{shape}, beside exact Saccade ({found['variety']} different tokens occur): {'; '.join(each) or 'no peer'}"
    say(f"same weights, {proof}")
    return proof


def describe(settings: Settings, machine: Machine, measured: Measured, proofs: list[str]) -> Report:
    rows: list[list[str]] = []
    panels: dict[str, Values] = {}
    for name, shape in SHAPES.items():
        for cell in (*SPEEDS, *MEMORIES):
            best = best_settings(measured, name, cell)
            panels[f"{name}, {cell}"] = {program: taken for program, (_, taken) in best.items()}
            rows += _rows(f"{name}, {cell}", shape, cell, best, machine)
    return Report(
        title="Language models that write on",
        about=[*_about(settings), *(f"Same weights, {proof}." for proof in proofs), str(machine)],
        header=["work", "engine", "best setting", "measured", "min–max", "times saccade", "of the limit"],
        rows=rows,
        unit="ms, or MB of memory",
        panels=panels,
        digits=1,
    )


def _rows(work: str, shape: Shape, cell: str, best: Best, machine: Machine) -> list[list[str]]:
    own = best[OWN][1]
    return [
        [work, program, one.setting, *cells(taken, own), share(least(shape, cell, one.numbers, machine), taken)]
        for program, (one, taken) in best.items()
    ]


def least(shape: Shape, cell: str, numbers: Numbers, machine: Machine) -> float | None:
    """The least that a kind of work can take, in milliseconds or megabytes."""
    if cell in MEMORIES:
        return shape.least_megabytes(numbers)
    return least_milliseconds(shape.work(cell), numbers, machine)


def _about(settings: Settings) -> list[str]:
    shapes = "; ".join(f"{name}: {shape}" for name, shape in SHAPES.items())
    work = (
        f"Shapes: {shapes}. gpt2 has learned positions, layer norms and GELU (the exact one, not its tanh form), llama "
        "rotary positions, RMSNorm and SwiGLU; both are pre-norm, their output layer is their token vectors, and their "
        "weights are random. Greedy; the end mark is forbidden in every engine, so that all write as much. A token's "
        f"time is the difference between writing {MANY} and {FEW} tokens after a prompt of {PROMPT}, divided by those "
        f"between; a step writes one token in each of {BATCH} rows. A prompt's time is that to the first token after "
        f"{LONG_PROMPT}. Loading and packing are not timed."
    )
    memory = (
        f"Memory is what the process has in RAM, less what it had before the model was loaded, after {MANY} tokens "
        "were written at batch 1: at most since its start, loading included, and then."
    )
    limit = (
        "“of the limit”: of a time, the larger of reading all weight matrices, as that engine keeps them, with keys "
        "and values in float32, at the machine's memory speed, and multiplying them at its peak for such numbers (for "
        "int8 on a processor that does not multiply bytes, Saccade's peak is that of 16-bit integers), divided by what "
        "was measured; attention is not counted. Of memory, weights as that engine keeps them, each once, with keys "
        "and values, divided by what was measured."
    )
    rounds = (
        f"Each engine runs in a process of its own, in turn (rounds: {settings.rounds()}; in each, the median of at "
        f"least {settings.calls} calls after warm-up). A peer counts with its best setting in each kind of work: "
        f"CTranslate2 of float32 and int8, both of 1 and {settings.threads} threads. “times saccade” compares with "
        f"Saccade in {DEFAULT}: above 1, Saccade is better. {WHY_DEFAULT}"
    )
    return [work, memory, limit, rounds]

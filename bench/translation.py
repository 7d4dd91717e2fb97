"""Translation speed: one length, two sizes of model, against CTranslate2 and Hugging Face at their best."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.console import installed, say
from bench.machine import Machine
from bench.process import measure_apart
from bench.report import Report, Values, spread
from bench.settings import Settings
from bench.translators.contract import CELLS, SIZES, SOURCE, TARGET, Cell

OWN, OWN_INT8, CTRANSLATE2, HUGGING_FACE = "saccade", "saccade int8", "CTranslate2", "Hugging Face"
NEEDS = {CTRANSLATE2: "ctranslate2", HUGGING_FACE: "transformers"}
DEFAULT = "int16"
"""How Saccade packs weights unless it is told otherwise: what the ratios are counted from."""


@dataclass(frozen=True)
class Contestant:
    """A program with settings; of the settings of one program the fastest counts, in each cell anew."""

    program: str
    setting: str
    module: str
    arguments: tuple[str, ...]
    threads: int


Key = tuple[str, str, Contestant]
"""Size, cell, contestant."""
Best = dict[str, tuple[str, list[float]]]
"""Of every program its fastest setting in a cell, and what it took, in milliseconds."""


def compare_translation(settings: Settings) -> Report:
    peers = {name for name, package in NEEDS.items() if installed(name, package)}
    with tempfile.TemporaryDirectory() as folder:
        contestants = {size: list(_contestants(settings, peers, Path(folder) / size)) for size in SIZES}
        proofs = [_same_weights(settings, size, Path(folder) / size) for size in SIZES if CTRANSLATE2 in peers]
        machine, milliseconds = measure(settings, contestants)
    return describe(settings, machine, milliseconds, proofs)


def _contestants(settings: Settings, peers: set[str], folder: Path) -> Iterator[Contestant]:
    yield Contestant(OWN, DEFAULT, "saccade", ("--how", DEFAULT), settings.threads)
    yield Contestant(OWN_INT8, "int8", "saccade", ("--how", "int8"), settings.threads)
    counts = sorted({1, settings.threads})
    if CTRANSLATE2 in peers:
        for compute in ("float32", "int8"):
            for threads in counts:
                asked = ("--folder", str(folder), "--compute", compute)
                yield Contestant(CTRANSLATE2, f"{compute}, threads: {threads}", "ctranslate2", asked, threads)
    if HUGGING_FACE in peers:
        for threads in counts:
            yield Contestant(HUGGING_FACE, f"threads: {threads}", "generate", (), threads)


def _same_weights(settings: Settings, size: str, folder: Path) -> str:
    found = measure_apart("bench.translators.same", size, "--folder", folder, threads=settings.threads)
    proof = (
        f"{size}: {found['agreement']:.1%} of the greedy tokens are the same in fp32 ({found['variety']} different "
        f"tokens occur), log-probabilities differ by at most {found['difference']:.1e}"
    )
    say(f"CTranslate2 with Saccade's weights, {proof}")
    return proof


def measure(settings: Settings, contestants: dict[str, list[Contestant]]) -> tuple[Machine, dict[Key, list[float]]]:
    """Every contestant once a round, in turn, each in a process of its own."""
    machine = Machine(settings.threads)
    milliseconds: dict[Key, list[float]] = {}
    for number in range(1, settings.rounds() + 1):
        place = f"round {number}/{settings.rounds()}"
        machine.look(place)
        for size, ours in contestants.items():
            for one in ours:
                found = _run(settings, size, one)
                for cell, taken in found["milliseconds"].items():
                    milliseconds.setdefault((size, cell, one), []).append(taken)
                figures = " / ".join(f"{taken:,.0f}" for taken in found["milliseconds"].values())
                say(f"{place}  {size} {found['engine']}: {figures} ms")
    return machine, milliseconds


def _run(settings: Settings, size: str, one: Contestant) -> dict[str, Any]:
    module = f"bench.translators.{one.module}"
    return measure_apart(module, size, "--calls", settings.calls, *one.arguments, threads=one.threads)


def best_settings(milliseconds: dict[Key, list[float]], size: str, cell: Cell) -> Best:
    best: Best = {}
    for (measured_size, measured_cell, one), taken in milliseconds.items():
        if (measured_size, measured_cell) != (size, str(cell)):
            continue
        if one.program not in best or median(taken) < median(best[one.program][1]):
            best[one.program] = (one.setting, taken)
    return best


def describe(settings: Settings, machine: Machine, milliseconds: dict[Key, list[float]], proofs: list[str]) -> Report:
    rows: list[list[str]] = []
    panels: dict[str, Values] = {}
    for size in SIZES:
        for cell in CELLS:
            best = best_settings(milliseconds, size, cell)
            panels[f"{size}, {cell}"] = {program: taken for program, (_, taken) in best.items()}
            rows += _rows(f"{size}, {cell}", best)
    sizes = "; ".join(f"{name}: {size}" for name, size in SIZES.items())
    work = (
        f"{SOURCE} source tokens are read and exactly {TARGET} target tokens written, the end mark being forbidden in "
        f"every engine. Sizes: {sizes}; pre-norm, ReLU, sinusoidal positions. Weights are random and the same in "
        "Saccade and CTranslate2; Hugging Face's Marian has the same sizes and weights of its own. Loading and packing "
        f"are not timed. Each engine runs in a process of its own, in turn (rounds: {settings.rounds()}; in each, the "
        f"median of at least {settings.calls} calls after warm-up). A peer counts with its fastest setting in each "
        f"cell: CTranslate2 of float32 and int8, both of 1 and {settings.threads} threads. “times saccade” compares "
        f"with Saccade's default ({DEFAULT}): above 1, Saccade is faster."
    )
    return Report(
        title="Translation speed",
        about=[work, *(f"Same weights, {proof}." for proof in proofs), str(machine)],
        header=["work", "engine", "fastest setting", "ms", "min–max", "times saccade"],
        rows=rows,
        unit="ms per call",
        panels=panels,
        digits=1,
    )


def _rows(work: str, best: Best) -> list[list[str]]:
    own = median(best[OWN][1])
    return [
        [work, program, setting, f"{median(taken):,.1f}", spread(taken, 1), f"{median(taken) / own:.2f}"]
        for program, (setting, taken) in best.items()
    ]

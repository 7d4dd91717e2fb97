"""Translation speed: one length, two sizes of model, against CTranslate2 and Hugging Face at their best."""

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
    peer_settings,
    thread_counts,
)
from bench.machine import Machine
from bench.process import measure_apart
from bench.report import Report, Values
from bench.settings import Settings
from bench.translators.contract import CELLS, SIZES, SOURCE, TARGET

OWN_INT16 = "saccade int16"
NEEDS = {CTRANSLATE2: "ctranslate2", HUGGING_FACE: "transformers"}


def compare_translation(settings: Settings) -> Report:
    peers = {name for name, package in NEEDS.items() if installed(name, package)}
    with tempfile.TemporaryDirectory() as folder:
        contestants = {size: list(_contestants(settings, peers, Path(folder) / size)) for size in SIZES}
        proofs = [_same_weights(settings, size, Path(folder) / size) for size in SIZES if CTRANSLATE2 in peers]
        machine, measured = measure(settings, contestants)
    return describe(settings, machine, measured, proofs)


def _contestants(settings: Settings, peers: set[str], folder: Path) -> Iterator[Contestant]:
    own = "bench.translators.saccade"
    yield Contestant(OWN, DEFAULT, own, ("--how", DEFAULT), settings.threads)
    yield Contestant(OWN_INT16, "int16", own, ("--how", "int16"), settings.threads)
    if CTRANSLATE2 in peers:
        asked = ("--folder", str(folder))
        yield from peer_settings(CTRANSLATE2, "bench.translators.ctranslate2", asked, settings.threads)
    if HUGGING_FACE in peers:
        for threads in thread_counts(settings.threads):
            yield Contestant(HUGGING_FACE, f"threads: {threads}", "bench.translators.generate", (), threads)


def _same_weights(settings: Settings, size: str, folder: Path) -> str:
    found = measure_apart("bench.translators.same", size, "--folder", folder, threads=settings.threads)
    proof = (
        f"{size}: {found['agreement']:.1%} of the greedy tokens are the same in fp32 ({found['variety']} different "
        f"tokens occur), log-probabilities differ by at most {found['difference']:.1e}"
    )
    say(f"CTranslate2 with Saccade's weights, {proof}")
    return proof


def describe(settings: Settings, machine: Machine, measured: Measured, proofs: list[str]) -> Report:
    rows: list[list[str]] = []
    panels: dict[str, Values] = {}
    for size in SIZES:
        for cell in CELLS:
            best = best_settings(measured, size, str(cell))
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
        f"with Saccade in {DEFAULT}: above 1, Saccade is faster. {WHY_DEFAULT}"
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
    own = best[OWN][1]
    return [[work, program, one.setting, *cells(taken, own)] for program, (one, taken) in best.items()]

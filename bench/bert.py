"""Encoders that read: BERT's shape, against onnxruntime, CTranslate2 and Hugging Face at their best."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

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
from bench.readers.contract import CELLS, LONGEST, MIDDLE, MIXED, SHORTEST, SIZES, SORTED, VOCABULARY, work
from bench.report import Report, Values
from bench.roofline import least_milliseconds
from bench.settings import Settings
from saccade.arch.bert import BertConfig
from saccade.runtime.contract import How

ONNXRUNTIME = "onnxruntime"
NEEDS = {HUGGING_FACE: "transformers", ONNXRUNTIME: "onnxruntime", CTRANSLATE2: "ctranslate2"}
HOWS: tuple[How, ...] = (DEFAULT, "int16")


def compare_bert(settings: Settings) -> Report:
    peers = {name: package for name, package in NEEDS.items() if installed(name, package)}
    if ONNXRUNTIME in peers and HUGGING_FACE not in peers:
        say(f"{ONNXRUNTIME}: skipped, its graph is exported from Hugging Face's model")
        del peers[ONNXRUNTIME]
    with tempfile.TemporaryDirectory() as room:
        folders = {size: Path(room) / size for size in SIZES}
        proofs = [_same_weights(settings, size, folder, peers) for size, folder in folders.items()]
        contestants = {size: list(_contestants(settings, size, peers, folders[size])) for size in SIZES}
        machine, measured = measure(settings, contestants)
    return describe(settings, machine, measured, proofs)


def _contestants(settings: Settings, size: str, peers: dict[str, str], folder: Path) -> Iterator[Contestant]:
    asked, threads = ("--folder", str(folder)), settings.threads
    yield from own_settings("bench.readers.saccade", SIZES[size], HOWS, asked, threads)
    if ONNXRUNTIME in peers:
        yield from peer_settings(ONNXRUNTIME, "bench.readers.onnx", asked, threads)
    if CTRANSLATE2 in peers:
        yield from peer_settings(CTRANSLATE2, "bench.readers.ctranslate2", asked, threads)
    if HUGGING_FACE in peers:
        for count in thread_counts(threads):
            yield Contestant(HUGGING_FACE, f"threads: {count}", "bench.readers.hugging_face", asked, count)


def _same_weights(settings: Settings, size: str, folder: Path, peers: dict[str, str]) -> str:
    """Writes the models too: without it there is nothing to measure."""
    asked = ("--folder", folder, "--peers", ",".join(peers.values()))
    found = measure_apart("bench.readers.same", size, *asked, threads=settings.threads)
    each = [
        f"{name} {engine['difference']:.1e} (cosine {engine['cosine']:.4f})"
        for name, engine in found["engines"].items()
    ]
    oracle = f"{HUGGING_FACE} in float32" if HUGGING_FACE in peers else "exact Saccade"
    proof = f"the largest difference from {oracle} in {found['tokens']} tokens, and the least cosine: {'; '.join(each)}"
    say(f"same weights, {proof}")
    return proof


def describe(settings: Settings, machine: Machine, measured: Measured, proofs: list[str]) -> Report:
    rows: list[list[str]] = []
    panels: dict[str, Values] = {}
    for size, config in SIZES.items():
        for cell in CELLS:
            best = best_settings(measured, size, cell)
            panels[cell] = {program: taken for program, (_, taken) in best.items()}
            rows += _rows(config, cell, best, machine)
    return Report(
        title="Encoders that read",
        about=[*_about(settings), *(f"Same weights, {proof}." for proof in proofs), str(machine)],
        header=[
            "texts × tokens",
            "engine",
            "best setting",
            "ms",
            "min–max",
            "times saccade",
            "tokens/s",
            "of the limit",
        ],
        rows=rows,
        unit="ms per call",
        panels=panels,
        digits=1,
    )


def _rows(config: BertConfig, cell: str, best: Best, machine: Machine) -> list[list[str]]:
    own, tokens = best[OWN][1], sum(CELLS[cell])
    rows = []
    for program, (one, taken) in best.items():
        least = least_milliseconds(work(config, cell), one.numbers, machine)
        speed = f"{tokens / median(taken) * 1000:,.0f}"
        rows.append([cell, program, one.setting, *cells(taken, own), speed, share(least, taken)])
    return rows


def _about(settings: Settings) -> list[str]:
    (config,) = SIZES.values()
    work_done = (
        f"BERT-base: {config.layers} layers, width {config.width}, {config.heads} heads, feed-forward "
        f"{config.feedforward}, vocabulary {VOCABULARY:,}, learned positions, segments, post-norm, GELU, without a "
        "pooler; random weights, the same in every engine. What is computed are the states of the last layer of every "
        "token. Loading, packing and exporting are not timed."
    )
    mixed = (
        f"{MIXED}: lengths are log-normal, half at most {MIDDLE}, held between {SHORTEST} and {LONGEST}, "
        f"{sum(CELLS[MIXED]):,} tokens in all. Every engine reads them all in one padded batch, and sorted by length "
        f"in batches of {', '.join(map(str, SORTED))}; its fastest way counts. Tokens are real ones, without padding."
    )
    limit = (
        "“of the limit”: multiplying all weight matrices with the real tokens at the machine's peak for such numbers, "
        "or reading them at its memory speed, whichever is longer, divided by what was measured; attention is not "
        "counted. Saccade's int8 on a processor that does not multiply bytes multiplies 16-bit integers."
    )
    rounds = (
        f"Each engine runs in a process of its own, in turn (rounds: {settings.rounds()}; in each, the median of at "
        f"least {settings.calls} calls after warm-up). A peer counts with its fastest setting in each kind of work: "
        f"onnxruntime (its own fused graph) and CTranslate2 of float32 and int8, all of 1 and {settings.threads} "
        f"threads. “times saccade” compares with Saccade in {DEFAULT}: above 1, Saccade is faster. {WHY_DEFAULT}"
    )
    return [work_done, mixed, limit, rounds]

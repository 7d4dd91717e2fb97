"""Spelling: Saccade's corrector beside pyspellchecker and symspellpy, on sentences and on words alone.

The test is `bench.spelling_test`'s: misspelt sentences, the same sentences left clean, and misspellings of Norvig's
list by themselves; none of them was trained on. Of a peer's ways to correct the one with the most words right counts.
"""

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.console import installed, say
from bench.engines.words import CANDIDATES, TIMED
from bench.machine import Machine
from bench.process import EngineError, measure_apart, time_command
from bench.report import Report, spread
from bench.settings import Settings
from saccade.data.text import read_pairs
from saccade.evaluate.metrics import Score
from saccade.evaluate.spelling import Corrected, accuracy_at, correction_rate, introduction_rate, word_accuracy
from saccade.pipelines.load import model_path

OWN, PYSPELLCHECKER, SYMSPELL, NOTHING = "saccade", "pyspellchecker", "symspellpy", "doing nothing"
NEEDS = {PYSPELLCHECKER: "spellchecker", SYMSPELL: "symspellpy"}
WAYS = {
    "words": "every plain word it does not know",
    "names": "the same, names inside sentences left alone",
    "compound": "lookup_compound of the words between punctuation",
}
ROUNDS = 3
SAME_ORDER = {"PYTHONHASHSEED": "0"}
"""pyspellchecker chooses between equally frequent words by the order of a set."""

ACCURACY, ABOVE, CORRECTED, INTRODUCED, SHARE = 0.94, 0.05, 0.75, 0.005, 1 / 3
"""Wanted: words right, and so many more than either peer; misspellings mended; right words spoilt; of its time."""


@dataclass(frozen=True)
class Material:
    noisy: list[str]
    clean: list[str]
    """The same sentences as they should be."""
    words: list[str]
    """Misspellings alone."""
    accepted: list[list[str]]
    """What each of these may stand for."""
    told: list[str]
    """What the test is made of, as its maker says."""

    def work(self) -> dict[str, list[str]]:
        return {"noisy": self.noisy, "clean": self.clean, "words": self.words}


@dataclass(frozen=True)
class Contestant:
    """A program with one of its ways to correct."""

    program: str
    way: str
    module: str
    arguments: tuple[str, ...]
    suggests: bool = True
    """Whether it is asked about words alone: ways of one program would all say the same of them."""


@dataclass(frozen=True)
class Figures:
    """Of sentences."""

    accuracy: Score
    corrected: Score
    introduced: Score
    spoilt: Score
    """The introduction rate on the sentences that were left clean."""


@dataclass
class Run:
    """What came of a contestant."""

    title: str
    figures: Figures
    at: dict[int, Score] = field(default_factory=dict)
    """Accuracy at 1 and at 5 on words alone."""
    seconds: list[float] = field(default_factory=list)
    """Of every round."""


Runs = dict[Contestant, Run]


def compare_spelling(settings: Settings, model: str = "speller") -> Report:
    contestants = list(_contestants(str(model_path(model))))
    with tempfile.TemporaryDirectory() as name:
        test = make_test(settings, Path(name))
        work = Path(name) / "work.json"
        work.write_text(json.dumps(test.work()), encoding="utf-8")
        machine, runs = measure(settings, contestants, test, work)
    return describe(settings, test, machine, runs)


def _contestants(model: str) -> Iterator[Contestant]:
    yield Contestant(OWN, "", "corrector", ("--model", model))
    modules = {PYSPELLCHECKER: ("pyspellchecker", ("words", "names")), SYMSPELL: ("symspell", tuple(WAYS))}
    for program, (module, ways) in modules.items():
        if installed(program, NEEDS[program]):
            for number, way in enumerate(ways):
                yield Contestant(program, way, module, ("--way", way), suggests=number == 0)


def make_test(settings: Settings, folder: Path) -> Material:
    """By the program that makes it, so that it is the same test as anybody's."""
    sentences, isolated = folder / "sentences.tsv", folder / "isolated.tsv"
    data = ["--data", str(settings.data)] if settings.data else []
    out = ["--out", str(sentences), "--isolated", str(isolated)]
    made = time_command([sys.executable, "-m", "bench.spelling_test", *data, *out], threads=settings.threads)
    pairs, words = read_pairs([sentences]), read_pairs([isolated])
    return Material(
        noisy=[noisy for noisy, _ in pairs],
        clean=[clean for _, clean in pairs],
        words=[wrong for wrong, _ in words],
        accepted=[rights.split("|") for _, rights in words],
        told=made.output.splitlines(),
    )


def measure(
    settings: Settings, contestants: Sequence[Contestant], test: Material, work: Path
) -> tuple[Machine, dict[Contestant, Run]]:
    """All answer in the first round; those that count are timed again in the others, in turn."""
    machine, rounds = Machine(settings.threads), settings.rounds(ROUNDS)
    runs: Runs = {}
    for number in range(1, rounds + 1):
        place = f"round {number}/{rounds}"
        machine.look(place)
        for one in contestants if number == 1 else best_ways(runs):
            asked = ["--answers", *["--suggestions"] * one.suggests] if number == 1 else []
            module = f"bench.engines.{one.module}"
            found = measure_apart(
                module, work, *one.arguments, *asked, threads=settings.threads, environment=SAME_ORDER
            )
            if number == 1:
                runs[one] = judge(test, found)
            runs[one].seconds.append(found["seconds"])
            say(f"{place}  {one.program} {one.way}: {found['seconds']:.2f} s, {runs[one].figures.accuracy}")
    return machine, runs


def judge(test: Material, found: dict[str, Any]) -> Run:
    run = Run(found["engine"], sentence_figures(test, found["noisy"], found["clean"], found["engine"]))
    if "words" in found:
        if len(found["words"]) != len(test.words):
            raise EngineError(
                f"{run.title} was asked about {len(test.words)} words, and answered {len(found['words'])}"
            )
        run.at.update({count: accuracy_at(found["words"], test.accepted, count) for count in (1, CANDIDATES)})
    return run


def sentence_figures(test: Material, noisy: list[str], clean: list[str], title: str) -> Figures:
    for outputs, asked in ((noisy, test.noisy), (clean, test.clean)):
        if len(outputs) != len(asked):
            raise EngineError(f"{title} was given {len(asked)} sentences, and gave back {len(outputs)}")
    mended = Corrected.of(test.noisy, noisy, test.clean)
    left = Corrected.of(test.clean, clean, test.clean)
    return Figures(word_accuracy(mended), correction_rate(mended), introduction_rate(mended), introduction_rate(left))


def best_ways(runs: Runs) -> list[Contestant]:
    """Of every program the way with the most words right, the earlier one of two that are equal."""
    best: dict[str, Contestant] = {}
    for one, run in runs.items():
        leader = best.get(one.program)
        if leader is None or run.figures.accuracy.value > runs[leader].figures.accuracy.value:
            best[one.program] = one
    return list(best.values())


def describe(settings: Settings, test: Material, machine: Machine, runs: Runs) -> Report:
    best = {one.program: one for one in best_ways(runs)}
    at = {one.program: run.at for one, run in runs.items() if run.at}
    base = median(runs[best[PYSPELLCHECKER]].seconds) if PYSPELLCHECKER in best else None
    rows = []
    for program, one in best.items():
        rows.append(_row(runs[one].title, runs[one].figures, at[program], runs[one].seconds, base))
    nothing = sentence_figures(test, test.noisy, test.clean, NOTHING)
    rows.append(_row(NOTHING, nothing, {}, [], base))
    own = runs[best[OWN]]
    peers = {program: runs[one] for program, one in best.items() if program != OWN}
    wanted = "; ".join(f"{what}: {'reached' if there else 'NOT reached'}" for what, there in goals(own, peers))
    return Report(
        title="Spelling",
        about=[*_about(settings, test, runs, best), f"Wanted of Saccade: {wanted}.", str(machine)],
        header=[
            "engine",
            "word accuracy",
            "correction rate",
            "introduction rate",
            "on clean text",
            "accuracy at 1",
            f"at {CANDIDATES}",
            "seconds",
            "min–max",
            "of pyspellchecker's",
        ],
        rows=rows,
        unit=f"seconds for {min(TIMED, len(test.noisy)):,} sentences",
        panels={"": {runs[one].title: runs[one].seconds for one in best.values()}},
        digits=2,
    )


def _row(title: str, figures: Figures, at: dict[int, Score], seconds: list[float], base: float | None) -> list[str]:
    sentences = [figures.accuracy, figures.corrected, figures.introduced, figures.spoilt]
    time = [f"{median(seconds):.2f}", spread(seconds, 2)] if seconds else ["–", "–"]
    share = f"{median(seconds) / base:.3f}" if seconds and base else "–"
    return [title, *map(cell, sentences), *(cell(at.get(count)) for count in (1, CANDIDATES)), *time, share]


def cell(score: Score | None) -> str:
    """A figure with half of its interval."""
    if score is None:
        return "–"
    half = "" if score.interval is None else f" ± {score.interval:.{score.digits}f}"
    return f"{score.value:.{score.digits}f}{half}"


def goals(own: Run, peers: dict[str, Run]) -> list[tuple[str, bool]]:
    """What is wanted, with what there is, and whether that is enough."""
    figures = own.figures
    accuracy, corrected = figures.accuracy.value, figures.corrected.value
    found = [(f"word accuracy at least {ACCURACY} ({accuracy:.4f})", accuracy >= ACCURACY)]
    for program, run in peers.items():
        above = accuracy - run.figures.accuracy.value
        found.append((f"{100 * ABOVE:.0f} points above {program} ({100 * above:+.2f})", above >= ABOVE))
    found.append((f"correction rate at least {CORRECTED} ({corrected:.4f})", corrected >= CORRECTED))
    for where, score in (("", figures.introduced), (" on clean text", figures.spoilt)):
        value = score.value
        found.append((f"introduction rate{where} at most {INTRODUCED} ({value:.4f})", value <= INTRODUCED))
    if PYSPELLCHECKER in peers:
        share = median(own.seconds) / median(peers[PYSPELLCHECKER].seconds)
        found.append((f"at most {SHARE:.2f} of pyspellchecker's time ({share:.3f})", share <= SHARE))
    return found


def _about(settings: Settings, test: Material, runs: Runs, best: dict[str, Contestant]) -> list[str]:
    work = (
        f"{len(test.noisy):,} sentences with held-out misspellings (`python -m bench.spelling_test`; "
        f"{'; '.join(test.told)}), and the same sentences left clean. A word is what stands between spaces, "
        "punctuation and case included. Accuracy at 1 and at "
        f"{CANDIDATES} is of {len(test.words):,} held-out misspellings of Norvig's list alone, case aside: Saccade's "
        f"{CANDIDATES} best corrections of the bare word, pyspellchecker's candidates by frequency, symspellpy's by "
        "slips and then frequency. Intervals: half of the middle 95 % of 1,000 drawings of sentences or words."
    )
    clock = (
        f"Seconds are those of the first {min(TIMED, len(test.noisy)):,} misspelt sentences, loading not included, the "
        f"median of {settings.rounds(ROUNDS)} rounds, each engine in a process of its own, in turn. Saccade may use "
        f"{settings.threads} threads; the peers are plain Python and use one."
    )
    ways = (
        "The peers are asked about plain words alone, as Saccade's corrector is: numbers, addresses, code and "
        "punctuation are kept from them, and their answers get the case of what was typed. Of a peer's ways the one "
        "with the most words right counts. "
    )
    tried = [
        f"{one.program}, {WAYS[one.way]}: {cell(run.figures.accuracy)}{' (counts)' if best[one.program] is one else ''}"
        for one, run in runs.items()
        if one.program != OWN
    ]
    return [work, clock, ways + "; ".join(tried) + "."]

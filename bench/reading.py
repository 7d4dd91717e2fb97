"""Reading words cut from photographs: Saccade beside Tesseract, on IIIT5K and ICDAR 2013."""

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from bench.console import installed, say
from bench.machine import Machine
from bench.process import EngineError, measure_apart
from bench.report import Report, spread
from bench.settings import Settings
from bench.spelling import cell
from saccade.data.text import data_folders, find
from saccade.data.word_sets import read_photographs
from saccade.evaluate.metrics import Score
from saccade.evaluate.reading import words_right
from saccade.pipelines.load import model_path

SETS = {"iiit5k": "IIIT5K", "ic13": "IC13, 857"}
TIMED = 1000
"""Words that are on the clock, of the first set."""
OWN, PEER = "saccade", "tesseract"
Runs = dict[str, list[dict[str, Any]]]


def compare_reading(settings: Settings, model: str = "reader") -> Report:
    engines: dict[str, tuple[str, ...]] = {OWN: ("bench.engines.word_reader", "--model", str(model_path(model)))}
    if installed(PEER, "tesserocr"):
        engines[PEER] = ("bench.engines.tesseract",)
    folder = find("scene_text", data_folders(settings.data))
    machine, rounds = Machine(settings.threads), settings.rounds()
    scores: dict[str, list[Score]] = {engine: [] for engine in engines}
    runs: Runs = {engine: [] for engine in engines}
    with tempfile.TemporaryDirectory() as room:
        work = Path(room) / "work.json"

        def run(engine: str, name: str, limit: int) -> dict[str, Any]:
            work.write_text(json.dumps({"folder": str(folder), "set": name, "limit": limit}), encoding="utf-8")
            module, *asked = engines[engine]
            return measure_apart(module, work, *asked, threads=settings.threads)

        for name, title in SETS.items():
            right = [word.text for word in read_photographs(folder, name)]
            for engine in engines:
                scores[engine].append(judge(run(engine, name, 0), right, title))
                say(f"{engine:10} {scores[engine][-1]}")
        for number in range(1, rounds + 1):
            machine.look(f"round {number}/{rounds}")
            for engine in engines:
                runs[engine].append(run(engine, "iiit5k", TIMED))
                say(f"round {number}/{rounds}  {engine:10} {runs[engine][-1]['seconds']:.2f} s")
    return describe(settings, machine, runs, scores)


def judge(run: dict[str, Any], right: list[str], name: str) -> Score:
    """Words right, letters and digits, case ignored."""
    if len(run["texts"]) != len(right):
        raise EngineError(f"{run['engine']} was given {len(right)} pictures, and read {len(run['texts'])}")
    return words_right(run["texts"], right, name, exact=False)


def describe(settings: Settings, machine: Machine, runs: Runs, scores: dict[str, list[Score]]) -> Report:
    seconds = {measured[0]["engine"]: [run["seconds"] for run in measured] for measured in runs.values()}
    own = median(next(iter(seconds.values())))
    rows = [
        [title, *map(cell, scores[engine]), f"{median(taken):.2f}", spread(taken, 2), f"{median(taken) / own:.2f}"]
        for engine, (title, taken) in zip(runs, seconds.items(), strict=True)
    ]
    work = (
        "Words cut from photographs: IIIT5K's 3,000 test pictures, and the 857 of ICDAR 2013 that have at least three "
        "letters or digits and nothing else. Right are words whose letters and digits are, case ignored, in percent, "
        "with half of the middle 95 % of 1,000 drawings of words. Saccade's reader was trained on drawn words alone. "
        f"Seconds are those of the first {TIMED:,} words of IIIT5K, loading not included, the median of "
        f"{settings.rounds()} rounds, each engine in a process of its own, in turn (threads: {settings.threads})."
    )
    return Report(
        title="Reading words in photographs",
        about=[work, str(machine)],
        header=["engine", *SETS.values(), "seconds", "min–max", "times saccade"],
        rows=rows,
        unit=f"seconds for {TIMED:,} words",
        panels={"": seconds},
        digits=2,
    )

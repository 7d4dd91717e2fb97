"""Pronunciation: Saccade beside the network of g2p-en, on the words of CMUdict's test part."""

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from bench.console import installed, say
from bench.engines.words import TIMED
from bench.machine import Machine
from bench.process import EngineError, measure_apart
from bench.report import Report, spread
from bench.settings import Settings
from bench.spelling import cell
from saccade.data.phonemes import read_dictionary
from saccade.data.text import data_folders, find
from saccade.evaluate.metrics import Score
from saccade.evaluate.pronunciation import accepted_pronunciations, pronunciation_scores
from saccade.pipelines.load import model_path

TEST = "cmudict_g2p/test.tsv.gz"
OWN, PEER = "saccade", "g2p-en"

Scores = dict[str, list[Score]]


def compare_pronunciation(settings: Settings, model: str = "pronouncer") -> Report:
    engines: dict[str, tuple[str, ...]] = {OWN: ("bench.engines.pronouncer", "--model", str(model_path(model)))}
    if installed(PEER, "g2p_en"):
        engines[PEER] = ("bench.engines.g2p_en",)
    accepted = read_test(find(TEST, data_folders(settings.data)))
    machine, rounds = Machine(settings.threads), settings.rounds()
    runs: dict[str, list[dict[str, Any]]] = {engine: [] for engine in engines}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work.json"
        work.write_text(json.dumps({"words": list(accepted)}), encoding="utf-8")
        for number in range(1, rounds + 1):
            place = f"round {number}/{rounds}"
            machine.look(place)
            for engine, (module, *asked) in engines.items():
                answers = ["--answers"] if number == 1 else []
                runs[engine].append(measure_apart(module, work, *asked, *answers, threads=settings.threads))
                say(f"{place}  {engine:8} {runs[engine][-1]['seconds']:.2f} s")
    scores = {engine: judge(measured[0], accepted) for engine, measured in runs.items()}
    return describe(settings, accepted, machine, runs, scores)


def read_test(path: Path) -> dict[str, list[str]]:
    """Each word once, as it is spelt, with all its pronunciations."""
    return accepted_pronunciations([(word, phonemes) for _, word, phonemes in read_dictionary(path)])


def judge(run: dict[str, Any], accepted: dict[str, list[str]]) -> list[Score]:
    """Word and phoneme error rate."""
    if len(run["words"]) != len(accepted):
        raise EngineError(f"{run['engine']} was given {len(accepted)} words, and pronounced {len(run['words'])}")
    return pronunciation_scores(run["words"], list(accepted.values()))


def describe(
    settings: Settings,
    accepted: dict[str, list[str]],
    machine: Machine,
    runs: dict[str, list[dict[str, Any]]],
    scores: Scores,
) -> Report:
    seconds = {measured[0]["engine"]: [run["seconds"] for run in measured] for measured in runs.values()}
    own = median(next(iter(seconds.values())))
    rows = [
        [title, *map(cell, scores[engine]), f"{median(taken):.2f}", spread(taken, 2), f"{median(taken) / own:.2f}"]
        for engine, (title, taken) in zip(runs, seconds.items(), strict=True)
    ]
    timed = min(TIMED, len(accepted))
    work = (
        f"The {len(accepted):,} words of {TEST}, none of which Saccade was trained on, each with all pronunciations "
        "the dictionary accepts, without stress. WER: the share of words, in percent, that are said in no accepted "
        "way; PER: wrong phonemes over the phonemes of the nearest accepted way, in percent; with half of the middle "
        f"95 % of 1,000 drawings of words. Seconds are those of the first {timed:,} words, loading not included, the "
        f"median of {settings.rounds()} rounds, each engine in a process of its own, in turn (threads: "
        f"{settings.threads}). “times saccade”: above 1, Saccade is faster."
    )
    about = [work, *([_about_peer()] if PEER in runs else []), str(machine)]
    return Report(
        title="Pronunciation",
        about=about,
        header=["engine", "WER", "PER", "seconds", "min–max", "times saccade"],
        rows=rows,
        unit=f"seconds for {timed:,} words",
        panels={"": seconds},
        digits=2,
    )


def _about_peer() -> str:
    return (
        "g2p-en is asked by `predict`, its network alone, digits of stress left out: as a whole it first looks a word "
        "up in CMUdict, out of which this test part is. Nor were these words kept from the network, as far as can be "
        "known: its documentation names none that were, and the training script in its repository, written for an "
        "earlier network, takes all words of nltk's copy of CMUdict of up to 19 letters and 19 phonemes but the last "
        "128, with the first pronunciation of each; for the weights that are shipped no script is published. So its "
        "figures are, but for words that cannot be named, those of words it was trained on, and Saccade's those of "
        "words it never met."
    )

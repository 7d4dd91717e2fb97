"""What engines are asked that correct or pronounce, and how they are timed: the same for all.

`python -m bench.engines.NAME WORK.json` prints one line of JSON: the seconds of the first texts, and, where they are
asked for, all answers. Loading is not timed.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.data.noise import Found, find_words, plainly

TIMED = 1000
"""So many texts, the first, are on the clock."""
WARMUP = 20
"""So many, the last, are answered before it starts."""
CANDIDATES = 5
"""Corrections of a word alone that are looked at."""

Answer = Callable[[Sequence[str]], list[str]]
"""Texts -> what each becomes."""
Change = Callable[[str], str | None]
"""Words -> what is to stand for them; None leaves them as they are."""


@dataclass(frozen=True)
class Speller:
    title: str
    """Name and version, for the table."""
    correct: Answer
    suggest: Callable[[Sequence[str]], list[list[str]]]
    """Words alone -> the corrections of each, best first."""


@dataclass(frozen=True)
class Speaker:
    title: str
    pronounce: Answer
    """Words -> phonemes with spaces between them, without stress."""


def run_speller(build: Callable[[argparse.Namespace], Speller], *own: str) -> None:
    """Read the command line, measure the speller that `build` makes of it, print the result; `own` options are its."""
    given = _read_arguments(*own)
    work = json.loads(given.work.read_text(encoding="utf-8"))
    print(json.dumps(measure_speller(build(given), work, answers=given.answers, suggestions=given.suggestions)))


def run_speaker(build: Callable[[argparse.Namespace], Speaker], *own: str) -> None:
    given = _read_arguments(*own)
    work = json.loads(given.work.read_text(encoding="utf-8"))
    print(json.dumps(measure_speaker(build(given), work, answers=given.answers)))


def _read_arguments(*own: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--answers", action="store_true", help="also answer all that is not on the clock")
    parser.add_argument("--suggestions", action="store_true", help="also correct words alone, in several ways")
    for name in own:
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def measure_speller(speller: Speller, work: dict[str, Any], *, answers: bool, suggestions: bool) -> dict[str, Any]:
    noisy, clean = work["noisy"], work["clean"]
    first, seconds = _time(speller.correct, noisy)
    result: dict[str, Any] = {"engine": speller.title, "seconds": seconds, "timed": len(first)}
    if answers:
        result["noisy"] = [*first, *_rest(speller.correct, noisy)]
        result["clean"] = speller.correct(clean)
    if suggestions:
        # Wednesday is a right answer to wendsday: the lists have no capitals.
        result["words"] = [[plainly(one) for one in some[:CANDIDATES]] for some in speller.suggest(work["words"])]
    return result


def measure_speaker(speaker: Speaker, work: dict[str, Any], *, answers: bool) -> dict[str, Any]:
    first, seconds = _time(speaker.pronounce, work["words"])
    result: dict[str, Any] = {"engine": speaker.title, "seconds": seconds, "timed": len(first)}
    if answers:
        result["words"] = [*first, *_rest(speaker.pronounce, work["words"])]
    return result


def _time(answer: Answer, texts: Sequence[str]) -> tuple[list[str], float]:
    answer(texts[-WARMUP:])
    began = time.perf_counter()
    first = answer(texts[:TIMED])
    return first, time.perf_counter() - began


def _rest(answer: Answer, texts: Sequence[str]) -> list[str]:
    return answer(texts[TIMED:]) if len(texts) > TIMED else []


# Peers know words: they are led through sentences, past what is no plain word, as Saccade goes


def change_words(sentence: str, change: Change, *, names: bool = True) -> str:
    """Every plain word changed; without `names`, those with a capital that no sentence begins with are left alone."""
    return _change(
        sentence,
        ((one.start, one.stop) for one in find_words(sentence) if names or not _is_name(sentence, one)),
        change,
    )


def change_runs(sentence: str, change: Change) -> str:
    """Plain words with one space between them changed together, for a speller that minds neighbours."""
    return _change(sentence, _runs(sentence), change)


def _is_name(sentence: str, word: Found) -> bool:
    letters = sentence[word.start : word.stop]
    first_person = plainly(letters) == "i" or plainly(letters).startswith("i'")
    return letters[0].isupper() and not word.opens and not first_person


def _runs(sentence: str) -> Iterator[tuple[int, int]]:
    start = stop = -1
    for word in find_words(sentence):
        if start >= 0 and sentence[stop : word.start] != " ":
            yield start, stop
            start = -1
        start, stop = word.start if start < 0 else start, word.stop
    if start >= 0:
        yield start, stop


def _change(sentence: str, places: Iterator[tuple[int, int]], change: Change) -> str:
    parts, end = [], 0
    for start, stop in places:
        parts += [sentence[end:start], change(sentence[start:stop]) or sentence[start:stop]]
        end = stop
    return "".join([*parts, sentence[end:]])

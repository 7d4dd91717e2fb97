"""Long recordings cut at pauses, and recordings in which nobody speaks: by the loudness of every ten milliseconds."""

from dataclasses import dataclass

import numpy as np

STEP = 0.01
"""Seconds between two measures of loudness."""
SILENT = -70.0
"""Decibels below full scale: a recording that is nowhere louder is silence."""
STEADY = 5.0
"""Decibels between the loud and the quiet parts: a recording of a second or more with less is noise."""
ABOVE = 0.3
"""Of the way from the quiet to the loud parts: what is louder is taken for speech."""
PAUSE = 0.2
"""Seconds of a pause, at least."""
LONG_PAUSE = 0.5
"""Seconds of a pause that ends a stretch of `BRIEF` seconds or more, so that what is said at once is read at once."""
BRIEF = 1.5
MARGIN = 0.3
"""Seconds that are kept around speech."""
SPOKEN = 0.05
"""Seconds of speech in a stretch, at least."""


@dataclass(frozen=True)
class Stretch:
    """A part of a recording, in samples."""

    start: int
    end: int


def cut_at_pauses(samples: np.ndarray, rate: int, longest: float) -> list[Stretch]:
    """The stretches in which somebody may speak, of at most `longest` seconds. A shorter recording is one stretch."""
    levels = loudness(samples, rate)
    loud, quiet = np.percentile(levels, 97), np.percentile(levels, 10)
    if loud < SILENT or (len(levels) * STEP >= 1 and loud - quiet < STEADY):
        return []
    if len(samples) <= longest * rate:
        return [Stretch(0, len(samples))]
    spoken = levels > quiet + ABOVE * (loud - quiet)
    found = []
    for first, after in _pieces(spoken, levels, int(longest / STEP)):
        places = np.flatnonzero(spoken[first:after])
        if len(places) * STEP < SPOKEN:
            continue
        margin = int(MARGIN / STEP)
        start, end = max(first, first + places[0] - margin), min(after, first + places[-1] + 1 + margin)
        found.append(Stretch(int(start * STEP * rate), min(len(samples), int(end * STEP * rate))))
    return found


def loudness(samples: np.ndarray, rate: int) -> np.ndarray:
    """Decibels below full scale of every ten milliseconds."""
    step = max(1, int(STEP * rate))
    count = max(1, len(samples) // step)
    frames = np.resize(samples, count * step) if len(samples) < step else samples[: count * step]
    power = np.square(frames.reshape(count, step), dtype=np.float64).mean(axis=1)
    return np.asarray(10 * np.log10(power + 1e-12))


def _pieces(spoken: np.ndarray, levels: np.ndarray, longest: int) -> list[tuple[int, int]]:
    """Cut in the middle of the first long pause; without one, in the middle of the longest pause that the last two
    thirds of a piece hold; without any, where it is quietest."""
    found, first = [], 0
    while True:
        begin, end = first + longest // 3, min(len(spoken), first + longest)
        cut = _first_pause(spoken, first + int(BRIEF / STEP), end)
        if cut is None and len(spoken) - first <= longest:
            break
        cut = _longest_pause(spoken, begin, end) if cut is None else cut
        if cut is None:
            near = np.convolve(levels[begin:end], np.ones(10) / 10, mode="same")
            cut = begin + int(near.argmin())
        found.append((first, cut))
        first = cut
    return [*found, (first, len(spoken))]


def _first_pause(spoken: np.ndarray, begin: int, end: int) -> int | None:
    """The middle of the first long one."""
    long = [(start, after) for start, after in _pauses(spoken, begin, end) if (after - start) * STEP >= LONG_PAUSE]
    return (long[0][0] + long[0][1]) // 2 if long else None


def _longest_pause(spoken: np.ndarray, begin: int, end: int) -> int | None:
    """Its middle."""
    start, after = max(_pauses(spoken, begin, end), key=lambda one: one[1] - one[0], default=(0, 0))
    return (start + after) // 2 if (after - start) * STEP >= PAUSE else None


def _pauses(spoken: np.ndarray, begin: int, end: int) -> list[tuple[int, int]]:
    """Where nobody speaks between the two places: firsts, and those after the lasts."""
    edges = np.diff(np.concatenate([[1], spoken[begin:end].astype(np.int8), [1]]))
    starts, ends = np.flatnonzero(edges == -1), np.flatnonzero(edges == 1)
    return [(begin + int(start), begin + int(after)) for start, after in zip(starts, ends, strict=True)]

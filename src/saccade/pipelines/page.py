"""Cuts a picture of text into lines and words, by ink and gaps: for pages and lines that lie straight.

What it can: one column of level lines, dark on light or light on dark, as screenshots and scanned pages have them. What
it cannot: columns side by side, tables, turned pages, photographs; those are read as the one word that they may be.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

Cut = Literal["auto", "word", "line", "page"]
"""What a picture holds. auto: pages and lines where ink and ground are clearly two, else a word."""
CLEAR = 0.75
"""Share of a clean page's variance that lies between ink and ground."""
SMALLEST_LINE = 6
"""Pixels."""
WIDEST_WORD = 8.0
"""Times its height: what is wider and clear is a line."""


@dataclass(frozen=True)
class WordBox:
    """A part of a picture in pixels."""

    left: int
    top: int
    right: int
    bottom: int


def cut_words(pixels_HW: np.ndarray, how: Cut = "auto") -> list[list[WordBox]]:
    """The words of each line, in reading order; a picture without ink has none."""
    height, width = pixels_HW.shape
    whole = [[WordBox(0, 0, width, height)]]
    if how == "word":
        return whole
    ink_HW, clear = find_ink(pixels_HW)
    if how == "auto" and (clear < CLEAR or min(height, width) < SMALLEST_LINE):
        return whole
    lines = [(0, height)] if how == "line" else line_rows(ink_HW)
    found = [words for top, bottom in lines if (words := _words_of(ink_HW, top, bottom))]
    if how == "auto" and len(found) == 1 and len(found[0]) == 1:
        return whole  # a word: its margins are as the reader knows them
    return found


def find_ink(pixels_HW: np.ndarray) -> tuple[np.ndarray, float]:
    """Which pixels are ink, and how clearly: the share of the variance between the two classes (Otsu 1979). Ink is the
    class that fewer pixels have."""
    counts = np.bincount(pixels_HW.reshape(-1), minlength=256).astype(np.float64)
    shares = counts / counts.sum()
    below, sums = np.cumsum(shares), np.cumsum(shares * np.arange(256))
    middle = sums[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.nan_to_num((middle * below - sums) ** 2 / (below * (1 - below)), posinf=0, neginf=0)
    best = int(between.argmax())
    total = float((shares * (np.arange(256) - middle) ** 2).sum())
    dark_HW = pixels_HW <= best
    ink_HW = dark_HW if dark_HW.mean() <= 0.5 else ~dark_HW
    return ink_HW, float(between[best] / total) if total > 0 else 0.0


def line_rows(ink_HW: np.ndarray) -> list[tuple[int, int]]:
    """Where each line begins and ends: rows with ink between rows without. Dots and accents join the line they are
    nearest to."""
    runs = _runs(np.asarray(ink_HW.any(axis=1)))
    if not runs:
        return []
    usual = float(np.median([stop - start for start, stop in runs if stop - start >= SMALLEST_LINE] or [1]))
    lines: list[tuple[int, int]] = []
    for start, stop in runs:
        small = stop - start < 0.4 * usual
        before_small = bool(lines) and lines[-1][1] - lines[-1][0] < 0.4 * usual
        if lines and (small or before_small) and start - lines[-1][1] < 0.3 * usual:
            lines[-1] = (lines[-1][0], stop)
        else:
            lines.append((start, stop))
    return [line for line in lines if line[1] - line[0] >= max(3, 0.3 * usual)]


def _words_of(ink_HW: np.ndarray, top: int, bottom: int) -> list[WordBox]:
    """The words of a line, where gaps are wide, with a little room around."""
    height, width = ink_HW.shape
    columns = _runs(np.asarray(ink_HW[top:bottom].any(axis=0)))
    if not columns:
        return []
    gaps = np.array([start - stop for (_, stop), (start, _) in pairwise(columns)])
    rows = np.flatnonzero(ink_HW[top:bottom].any(axis=1))
    tall = int(rows[-1] - rows[0]) + 1
    widest = word_gap(gaps, tall)
    words, first = [], columns[0][0]
    for place, (_, stop) in enumerate(columns):
        if place == len(gaps) or gaps[place] >= widest:
            words.append((first, stop))
            first = columns[place + 1][0] if place < len(gaps) else 0
    room, top, bottom = max(1, tall // 10), top + int(rows[0]), top + int(rows[-1]) + 1
    above, below = max(0, top - room), min(height, bottom + room)
    return [WordBox(max(0, left - room), above, min(width, right + room), below) for left, right in words]


def word_gap(gaps: np.ndarray, tall: int) -> float:
    """From which width on a gap stands between words: two clusters, if they are far enough apart; the line's height
    says what is possible."""
    least, most = 0.12 * tall, 0.6 * tall
    usual = 0.28 * tall
    candidates = np.unique(gaps)
    if len(candidates) < 2:
        return usual
    splits = (candidates[1:] + candidates[:-1]) / 2
    inner = [
        sum(float(np.square(side - side.mean()).sum()) for side in (gaps[gaps < s], gaps[gaps >= s])) for s in splits
    ]
    best = float(splits[int(np.argmin(inner))])
    apart = gaps[gaps >= best].mean() / max(gaps[gaps < best].mean(), 0.5)
    return float(np.clip(best, least, most)) if apart > 2 else usual


def _runs(marked: np.ndarray) -> list[tuple[int, int]]:
    """Where stretches of True begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in zip(edges[::2], edges[1::2], strict=True)]

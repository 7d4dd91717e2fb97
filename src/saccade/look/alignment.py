"""One picture's worth of looks: pieces gathered into words, one layer chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from saccade.axes import END_LABEL, Axis, Grid, Pieces
from saccade.look.soundtrack import SoundSheet
from saccade.runtime.contract import Floats

SCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Where the colours of a picture may end."""


@dataclass(frozen=True)
class Alignment:
    """One picture's worth: how much each target word looked at each source word."""

    source: list[str]
    target: list[str]
    weights_TS: Floats
    """Each row sums to 1."""
    title: str
    """Which layer and heads these are."""
    grid: Grid | None = None
    """Of the picture that was looked at, if it was one: its fields are the source words, row after row."""
    sound: SoundSheet | None = None
    """Of a recording that was looked at, with its spectrogram."""
    follows: Literal["", "letters", "words"] = ""
    """What was written one after the other while a picture was looked at: a path joins the looks."""

    @property
    def written(self) -> int:
        """How many looks are of something written: the end is not."""
        return len(self.target) - (self.target[-1:] == [END_LABEL])

    @property
    def steps(self) -> list[int]:
        """The looks on the path: of all letters; of those words that carry the looking."""
        return list(range(self.written)) if self.follows == "letters" else self.carrying

    @property
    def carrying(self) -> list[int]:
        """Words that carry the looking, counted from 0: their looks differ from the mean look of the sentence by more
        than its looks do on average (Kullback-Leibler divergence). Other words, such as "of", look where all do."""
        if self.follows != "words":
            return []
        weights_TS = self.weights_TS[: self.written].astype(np.float64)
        weights_TS = weights_TS / np.maximum(weights_TS.sum(axis=1, keepdims=True), 1e-12)
        mean_S = np.maximum(weights_TS.mean(axis=0), 1e-12)
        apart_T = (weights_TS * np.log(np.maximum(weights_TS, 1e-12) / mean_S)).sum(axis=1)
        return np.flatnonzero(apart_T >= apart_T.mean() - 1e-12).tolist()

    @property
    def top(self) -> float:
        """The weight that is drawn darkest: faint looks spread over a long text would leave a picture blank."""
        largest = float(self.weights_TS.max(initial=0.0))
        return next((scale for scale in SCALES if largest <= scale), SCALES[-1])


def align(weights_TS: Floats, rows: Axis, columns: Axis, title: str) -> Alignment:
    """A target word's look is the mean of its pieces'; a source word collects the sum over its pieces."""
    row_groups, column_groups = rows.groups(), columns.groups()
    gathered = np.stack([weights_TS[:, group].sum(axis=1) for group in column_groups], axis=1)
    joined = np.stack([gathered[group].mean(axis=0) for group in row_groups])
    source, target = [columns.name(group) for group in column_groups], [rows.name(group) for group in row_groups]
    grid = columns if isinstance(columns, Grid) and not isinstance(rows, Grid) else None
    follows: Literal["", "letters", "words"] = ""
    if grid is not None and isinstance(rows, Pieces) and len(rows) > 1:
        follows = "letters" if len(rows.alone) == len(rows) else "words"
    return Alignment(source, target, joined, title, grid, follows=follows)


def clearest(layers: Sequence[Floats]) -> int:
    """The layer, counted from 0, whose rows look at the most different things.

    Measured by the mutual information of row and column, the heads averaged: nothing where all rows look everywhere,
    and nothing where all look at one and the same mark, as whole layers of BERT do (Clark et al. 2019, 3.2).
    """
    return int(np.argmax([_information(weights_NTS.mean(axis=0)) for weights_NTS in layers]))


def _information(weights_TS: Floats) -> float:
    overall_S = weights_TS.mean(axis=0)
    return _entropy(overall_S) - float(np.mean([_entropy(row_S) for row_S in weights_TS]))


def _entropy(chances_S: Floats) -> float:
    some = chances_S[chances_S > 0].astype(np.float64)
    return float(-(some * np.log(some)).sum())

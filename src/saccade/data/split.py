"""Holds out validation and test parts of the user's own pairs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from saccade.data.text import Pair
from saccade.errors import UserError

FEWEST = 20


def hold_out(pairs: Sequence[Pair], seed: int = 1) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Training, validation and test pairs, split by source sentence so that none is in two parts."""
    sources = list(dict.fromkeys(source for source, _ in pairs))
    if len(sources) < FEWEST:
        raise UserError(
            f"only {len(sources)} different source sentences; at least {FEWEST} are needed to train and hold out"
        )
    held = min(1000, max(5, len(sources) // 50))
    order = np.random.default_rng(seed).permutation(len(sources))
    part_of = {sources[i]: 1 if place < held else 2 for place, i in enumerate(order[: 2 * held])}
    parts: tuple[list[Pair], list[Pair], list[Pair]] = ([], [], [])
    for pair in pairs:
        parts[part_of.get(pair[0], 0)].append(pair)
    return parts


def write_pairs(path: Path, pairs: Sequence[Pair]) -> None:
    """A TSV; tabs inside a sentence become spaces, since a tab ends it."""
    lines = ["\t".join(side.replace("\t", " ") for side in pair) + "\n" for pair in pairs]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")

"""What encoders read, in which shape, and how they are timed: the same for every engine.

Imports no PyTorch: engines that do not need it are measured without it.
"""

import json
import random
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import numpy as np

from bench.measuring import repeat, seconds_of
from bench.roofline import Work
from saccade.arch.bert import BertConfig
from saccade.arch.positions import LearnedConfig
from saccade.arch.weights import flops
from saccade.runtime.contract import Booleans, Floats, Ids
from saccade.tokens.marks import Marks

SEED = 1
MARKS = Marks()
VOCABULARY = 30_522
SIZES = {
    "bert-base": BertConfig(
        layers=12, width=768, heads=12, feedforward=3072, context=512, positions=LearnedConfig(length=512)
    )
}
SHORTEST, MIDDLE, LONGEST = 5, 24, 128
"""Tokens of the texts of mixed length; half of them have at most the middle number."""
SPREAD = 1.0
"""Of the logarithm of the lengths."""
SORTED = (16, 8, 4)
"""Texts of a batch, where they are sorted by length."""

Texts = list[list[int]]
Read = Callable[[Ids, Booleans | None], Floats]
"""Padded tokens [B, T], and which of them are real (None: all) -> states of the last layer [B, T, D]."""
ReadTexts = Callable[[Texts], list[Floats]]
"""Texts of any lengths -> states of each [T, D], in their order."""


def draw_lengths(count: int) -> list[int]:
    """Log-normal, as lengths of sentences are: many short texts and a few long ones."""
    draw = random.Random(SEED)
    drawn = (round(MIDDLE * draw.lognormvariate(0, SPREAD)) for _ in range(count))
    return [min(max(length, SHORTEST), LONGEST) for length in drawn]


def draw_texts(lengths: Sequence[int]) -> Texts:
    draw, first = random.Random(SEED), max(MARKS.special) + 1
    return [[draw.randrange(first, VOCABULARY) for _ in range(length)] for length in lengths]


MIXED = f"64 texts of {SHORTEST}–{LONGEST}"
CELLS = {"1 × 32": [32], "8 × 128": [128] * 8, MIXED: draw_lengths(64)}
"""Lengths of the texts of each kind of work."""


def work(config: BertConfig, cell: str) -> Work:
    """What a kind of work cannot do without; padding is not among it."""
    matrices = flops(config.weights(VOCABULARY), {"source": 1}) / 2
    return Work(matrices, matrices * sum(CELLS[cell]))


def pad(texts: Texts) -> tuple[Ids, Booleans | None]:
    """Texts as one array, and which of it is real; None where all is."""
    lengths = np.array([len(text) for text in texts])
    mask_BT = np.arange(lengths.max()) < lengths[:, None]
    tokens_BT = np.full(mask_BT.shape, MARKS.pad, dtype=np.int64)
    tokens_BT[mask_BT] = np.concatenate([np.array(text) for text in texts])
    return tokens_BT, None if mask_BT.all() else mask_BT


def read_padded(read: Read, texts: Texts) -> list[Floats]:
    states_BTD = read(*pad(texts))
    return [states_BTD[row, : len(text)] for row, text in enumerate(texts)]


def read_sorted(read: Read, texts: Texts, batch: int) -> list[Floats]:
    """Sorted by length and read some at a time, so that little is padding."""
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    found: dict[int, Floats] = {}
    for first in range(0, len(order), batch):
        chosen = order[first : first + batch]
        found |= dict(zip(chosen, read_padded(read, [texts[number] for number in chosen]), strict=True))
    return [found[number] for number in range(len(texts))]


def padded_ways(read: Read) -> dict[str, ReadTexts]:
    """How an engine that knows only padded batches may read texts of mixed length; the fastest way counts."""
    ways: dict[str, ReadTexts] = {"in one batch": partial(read_padded, read)}
    return ways | {f"sorted by {batch}": partial(read_sorted, read, batch=batch) for batch in SORTED}


def measure_reader(title: str, read: Read, ways: dict[str, ReadTexts], calls: int) -> None:
    """Time every kind of work, texts of mixed length in each of the engine's ways, and print the medians in ms."""
    figures = {}
    for cell, lengths in CELLS.items():
        texts = draw_texts(lengths)
        played = ways if cell == MIXED else {"": partial(read_padded, read)}
        for way, read_texts in played.items():
            found = [states.shape[0] for states in read_texts(texts)]
            if found != lengths:
                raise SystemExit(f"{title}: read texts of {found} tokens, not {lengths}")
            name = f"{cell}; {way}" if way else cell
            figures[name] = 1000 * median(repeat(partial(seconds_of, partial(read_texts, texts)), calls))
    print(json.dumps({"engine": title, "figures": figures}))

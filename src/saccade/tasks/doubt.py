"""How likely a corrector finds it that a word it would change was right as it was."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from saccade.data.ragged import in_order, pad_sources
from saccade.decode.hypothesis import write_each
from saccade.decode.running import Running, as_array
from saccade.tasks.edits import Edit, apply
from saccade.tokens.marks import BEGIN, END
from saccade.tokens.vocabulary import Vocabulary

BATCH_TOKENS = 4096


class Left(NamedTuple):
    """A text, mended up to a word, and that word as it was typed."""

    source: list[int]
    """The whole text as it was typed."""
    target: list[int]
    begin: int
    """Where the word begins in the target, and where it ends; the end mark is the token behind the last."""
    stop: int


def doubts(
    running: Running, vocabulary: Vocabulary, texts: Sequence[str], changes: Sequence[list[Edit]]
) -> list[list[float]]:
    """For every change of every text, the probability that the word is left as it is, where all before it is mended."""
    rows = [row for text, some in zip(texts, changes, strict=True) if some for row in _left(vocabulary, text, some)]
    found = np.zeros(len(rows))
    lengths = np.array([len(row.source) + len(row.target) + 2 for row in rows], dtype=np.int64)
    for part in in_order(lengths, BATCH_TOKENS):
        with running.at_work():
            found[part] = _chances(running, [rows[i] for i in part])
    probabilities = iter(found.tolist())
    return [[next(probabilities) for _ in some] for some in changes]


def _chances(running: Running, rows: Sequence[Left]) -> list[float]:
    """The probability of each row's word, by the probabilities of its tokens."""
    memory = running.read(*pad_sources([row.source for row in rows]))
    logits_BTV = as_array(write_each(running.decoder, memory, [[BEGIN, *row.target] for row in rows])[0])
    chances = []
    for row, logits_TV in zip(rows, logits_BTV, strict=True):
        logits_WV = logits_TV[row.begin : row.stop].astype(np.float64)
        tokens_W = [*row.target, END][row.begin : row.stop]
        sums_W = np.log(np.exp(logits_WV - logits_WV.max(axis=1, keepdims=True)).sum(axis=1)) + logits_WV.max(axis=1)
        chances.append(float(np.exp((logits_WV[np.arange(len(tokens_W)), tokens_W] - sums_W).sum())))
    return chances


def _left(vocabulary: Vocabulary, text: str, changes: list[Edit]) -> Iterator[Left]:
    befores = [apply(text[: edit.start], changes[:place]) for place, edit in enumerate(changes)]
    # What follows the word, if only the end, belongs to it: "the" may be left where "then" begins. Where words are
    # joined from pieces, the next one begins with its space, and "the" is no beginning of "then".
    more = 0 if vocabulary.speller else 1
    wholes = [f"{before}{edit.wrong}{text[edit.stop :][:more]}" for before, edit in zip(befores, changes, strict=True)]
    [source], encoded = vocabulary.read([text]), vocabulary.encode([*befores, *wholes])
    for before, whole, edit in zip(encoded[: len(changes)], encoded[len(changes) :], changes, strict=True):
        same = zip(before, whole, strict=False)
        begin = next((place for place, (one, other) in enumerate(same) if one != other), len(before))
        yield Left(source, whole, begin, len(whole) + (more and edit.stop == len(text)))

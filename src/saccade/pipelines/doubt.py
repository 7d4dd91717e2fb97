"""How likely a corrector finds a word where it stands: as it was typed, or another in its place."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from saccade.data.ragged import in_order
from saccade.decode.hypothesis import write_each
from saccade.pipelines.edits import TextEdit, apply
from saccade.pipelines.opening import SequenceModel
from saccade.sources.text import pad_sources
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import Vocabulary

BATCH_TOKENS = 4096


class Guess(NamedTuple):
    """A word in a text that is mended up to it."""

    text: str
    """The whole text as it was typed."""
    before: str
    """What stands before the word, mended."""
    word: str
    stop: int
    """Where in the text what was typed for the word ends."""


class GuessRow(NamedTuple):
    """The same in tokens."""

    source: list[int]
    target: list[int]
    begin: int
    """Where the word begins in the target, and where it ends; the end mark is the token behind the last."""
    stop: int


def doubts(
    model: SequenceModel, vocabulary: Vocabulary, texts: Sequence[str], changes: Sequence[list[TextEdit]]
) -> list[list[float]]:
    """For every change of every text, the probability that the word is left as it is, where all before it is mended."""
    guesses = [
        Guess(text, mended_before(text, some, edit.start), edit.wrong, edit.stop)
        for text, some in zip(texts, changes, strict=True)
        for edit in some
    ]
    found = iter(chances(model, vocabulary, guesses))
    return [[next(found) for _ in some] for some in changes]


def mended_before(text: str, changes: Iterable[TextEdit], start: int) -> str:
    """What stands before a place of a text, with the changes made."""
    return apply(text[:start], [edit for edit in changes if edit.stop <= start])


def chances(model: SequenceModel, vocabulary: Vocabulary, guesses: Sequence[Guess]) -> list[float]:
    """The probability of each word where it stands."""
    rows = _rows(vocabulary, guesses)
    found = np.zeros(len(rows))
    # By the length of their sources: so the words of one text come together, and it is read once for all.
    for part in in_order(np.array([2 * len(row.source) + 2 for row in rows], dtype=np.int64), BATCH_TOKENS):
        found[part] = _chances(model, vocabulary.marks, [rows[i] for i in part])
    return found.tolist()


def _chances(model: SequenceModel, marks: Marks, rows: Sequence[GuessRow]) -> list[float]:
    """By the probabilities of the words' tokens."""
    texts = dict.fromkeys(tuple(row.source) for row in rows)
    places = {source: place for place, source in enumerate(texts)}
    memory = model.read(*pad_sources(list(texts), marks))
    memory = memory.rows(np.array([places[tuple(row.source)] for row in rows]))
    logits_BTV, _ = write_each(model.decoder, memory, [[marks.start, *row.target] for row in rows])
    found = []
    for row, logits_TV in zip(rows, logits_BTV, strict=True):
        logits_WV = logits_TV[row.begin : row.stop].astype(np.float64)
        tokens_W = [*row.target, marks.end][row.begin : row.stop]
        most_W = logits_WV.max(axis=1)
        sums_W = np.log(np.exp(logits_WV - most_W[:, None]).sum(axis=1)) + most_W
        found.append(float(np.exp((logits_WV[np.arange(len(tokens_W)), tokens_W] - sums_W).sum())))
    return found


def _rows(vocabulary: Vocabulary, guesses: Sequence[Guess]) -> list[GuessRow]:
    # What follows the word, if only the end, belongs to it: "the" may be left where "then" begins. Where words are
    # joined from pieces, the next one begins with its space, and "the" is no beginning of "then".
    more = 0 if vocabulary.speller else 1
    wholes = [f"{guess.before}{guess.word}{guess.text[guess.stop :][:more]}" for guess in guesses]
    sources = vocabulary.read([guess.text for guess in guesses])
    encoded = vocabulary.encode([*(guess.before for guess in guesses), *wholes])
    rows = []
    for place, (guess, source) in enumerate(zip(guesses, sources, strict=True)):
        before, whole = encoded[place], encoded[place + len(guesses)]
        same = zip(before, whole, strict=False)
        begin = next((place for place, (one, other) in enumerate(same) if one != other), len(before))
        rows.append(GuessRow(source, whole, begin, len(whole) + (more and guess.stop == len(guess.text))))
    return rows

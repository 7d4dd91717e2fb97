"""Documents as sentences, and rows of two texts of which the second may follow the first.

A row is `<s> first </s> second </s>`. The two come from one document, one after the other, or, in half of the rows, the
second from anywhere else (Devlin et al. 2018, 3.1). A document of one sentence has no next sentence: such documents
fill separate rows, which have no next-sentence label.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from saccade.data.ragged import Ragged
from saccade.tokens.vocabulary import Vocabulary

ENDS = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")
CHUNK = 20_000
"""Documents that are encoded at once."""
SHORTER = 0.1
"""Share of the rows that are cut shorter, so that the model also sees short texts."""
UNKNOWN = -1
"""Label of a row without a next-sentence label."""


def sentences_of(document: str) -> list[str]:
    """Sentences, each with what stands between it and the one before; together they are the document."""
    places = [0, *(found.end() for found in ENDS.finditer(document)), len(document)]
    parts = [document[first:last] for first, last in pairwise(places) if last > first]
    # What stands between two sentences goes to the second: a word's space is part of its piece.
    moved, between = [], ""
    for part in parts:
        text = part.rstrip()
        moved.append(between + text)
        between = part[len(text) :].replace("\n", " ")[:1]
    return [text for text in moved if text.strip()]


@dataclass(frozen=True)
class Corpus:
    """All sentences in a row, and where documents begin."""

    sentences: Ragged
    documents: np.ndarray
    """The number of each document's first sentence, and at last the number of all sentences."""

    @classmethod
    def of(cls, vocabulary: Vocabulary, documents: Sequence[str]) -> "Corpus":
        counts, parts = [], []
        # Chunk by chunk: as Python's numbers and the tokenizer's own records, 30 million tokens take 7 GB.
        for start in range(0, len(documents), CHUNK):
            split = [sentences_of(document) for document in documents[start : start + CHUNK]]
            counts += [len(document) for document in split]
            texts = [sentence for document in split for sentence in document]
            parts.append(Ragged.of(vocabulary.encode(texts, continues=True)))
        firsts = np.concatenate([[0], np.cumsum(counts)])
        return cls(Ragged.joined(parts), firsts.astype(np.int64))

    @property
    def tokens(self) -> int:
        return len(self.sentences.flat)


@dataclass(frozen=True)
class Row:
    """Two stretches of a corpus' tokens; the second may be empty."""

    first: tuple[int, int]
    second: tuple[int, int]
    next_sentence: int
    """1: it does; 0: it does not; UNKNOWN."""


def plan_rows(corpus: Corpus, room: int, random: np.random.Generator, *, next_sentence: bool) -> list[Row]:
    """The rows of one epoch: every sentence in one of them, at most `room` tokens in a row, no row across documents
    of several sentences. Without `next_sentence`, a row is one text."""
    starts, documents = corpus.sentences.starts, corpus.documents
    alone = np.diff(documents) == 1
    pairs = [number for number in random.permutation(len(documents) - 1) if not alone[number]]
    rows: list[Row] = []
    for number in pairs:
        begin, end = int(documents[number]), int(documents[number + 1])
        while begin < end:
            wanted = room if random.random() >= SHORTER else int(random.integers(2, room + 1))
            stop = _reach(starts, begin, end, wanted)
            if stop - begin == 1 or not next_sentence:  # too long for two sentences, or the last one
                rows.append(Row(_cut(starts[begin], starts[stop], room), (0, 0), UNKNOWN))
                begin = stop
                continue
            middle = int(random.integers(begin + 1, stop))
            first = _cut(starts[begin], starts[middle], room - 1)
            left = max(1, wanted - (first[1] - first[0]))
            if random.random() < 0.5 or len(pairs) == 1:
                rows.append(Row(first, _cut(starts[middle], starts[stop], left), 1))
                begin = stop
            else:
                rows.append(Row(first, _elsewhere(corpus, pairs, number, left, random), 0))
                begin = middle  # what was pushed aside is met in the next row
    return [*rows, *_gather(corpus, np.flatnonzero(alone), room, random)]


def _elsewhere(
    corpus: Corpus, documents: Sequence[int], but: int, room: int, random: np.random.Generator
) -> tuple[int, int]:
    """The beginning of some sentence of another document, and what follows it there."""
    other = but
    while other == but:
        other = documents[int(random.integers(len(documents)))]
    begin, end = int(corpus.documents[other]), int(corpus.documents[other + 1])
    sentence = int(random.integers(begin, end))
    starts = corpus.sentences.starts
    return _cut(starts[sentence], starts[_reach(starts, sentence, end, room)], room)


def _gather(corpus: Corpus, alone: np.ndarray, room: int, random: np.random.Generator) -> list[Row]:
    """Rows of neighbouring single sentences, as many as fit."""
    starts, documents = corpus.sentences.starts, corpus.documents
    rows: list[Row] = []
    runs = np.split(alone, np.flatnonzero(np.diff(alone) > 1) + 1) if len(alone) else []
    for run in runs:
        place = 0
        # Rows begin elsewhere in every epoch, so that a sentence is not always met with the same others.
        wanted = int(random.integers(1, room + 1))
        while place < len(run):
            begin = int(documents[run[place]])
            stop = _reach(starts, begin, begin + len(run) - place, wanted)
            place += stop - begin
            rows.append(Row(_cut(starts[begin], starts[stop], room), (0, 0), UNKNOWN))
            wanted = room
    return rows


def _reach(starts: np.ndarray, begin: int, end: int, room: int) -> int:
    """Behind which sentence a row ends that begins with `begin`: as many as fit, at least one, none from `end` on."""
    stop = begin + 1
    while stop < end and starts[stop + 1] - starts[begin] <= room:
        stop += 1
    return stop


def _cut(start: int, stop: int, room: int) -> tuple[int, int]:
    return int(start), int(min(stop, start + room))

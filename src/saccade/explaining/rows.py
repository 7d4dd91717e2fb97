"""Which rows of a table of looks an output is written at."""

from collections.abc import Sequence

import numpy as np

from saccade.axes import Pieces
from saccade.pipelines.answer import Answer
from saccade.pipelines.classifier import Class
from saccade.pipelines.completer import Completion
from saccade.pipelines.filler import Filling
from saccade.pipelines.tagger import Tagged


def rows_of(answer: Answer, pieces: Sequence[int] | None) -> list[int] | None:
    """The rows of some pieces of an answer, or of all; None: every row there is."""
    if isinstance(answer, Completion):
        # The look from a position decides the token that comes next.
        first = len(answer.prompt_ids) - 1
        return [first + place for place in (range(len(answer.ids)) if pieces is None else pieces)]
    if isinstance(answer, Class):
        return [0]
    if isinstance(answer, Filling):
        gaps = [place for place, (one, read) in enumerate(zip(answer.ids, answer.read_ids, strict=True)) if one != read]
        return gaps if pieces is None else [gaps[place] for place in pieces]
    if isinstance(answer, Tagged):
        return None if pieces is None else _first_tokens(answer, pieces)
    return None if pieces is None else list(pieces)


def _first_tokens(answer: Tagged, words: Sequence[int]) -> list[int]:
    """Of each word the token that its tag is read from."""
    axis = answer.looks.layers[0].columns
    assert isinstance(axis, Pieces)
    ends = np.cumsum([len("".join(label.split())) for label in axis.labels[1:]])
    starts = np.cumsum([0, *(len(word) for word in answer.sentence.words)])
    return [1 + int(np.searchsorted(ends, starts[word], side="right")) for word in words]

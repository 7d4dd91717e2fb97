"""Documents one after the other as one long row of ids, and windows of it as batches.

Where documents are marked, each begins with <s>, and what follows its last token is </s>. A text that is one document
has no marks: a window of it may begin anywhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade.errors import UserError
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import Vocabulary

LINES_AT_ONCE = 64


@dataclass(frozen=True)
class LanguageBatch:
    """Windows: inputs, and the next tokens as labels."""

    tokens_BT: Tensor
    labels_BT: Tensor
    """Padding past the end of the text."""
    real_BT: Tensor | None
    """True where there is a label; None when no window reaches past the end."""
    documents_BT: Tensor | None
    """The document of each position, if a row holds several isolated documents."""
    starts: np.ndarray
    """Where in the stream the windows begin."""


@dataclass(frozen=True)
class Stream:
    """A row of ids. A marked stream ends with one more <s>."""

    tokens: np.ndarray
    marks: Marks
    isolate_documents: bool = True
    """Documents in the same window do not attend to each other."""

    def __len__(self) -> int:
        """How many tokens are predicted."""
        return max(0, len(self.tokens) - 1)

    def batch(self, starts: np.ndarray, length: int) -> LanguageBatch:
        """The windows of `length` tokens that begin at `starts`; shorter ones at the end are padded."""
        places = starts[:, None] + np.arange(length + 1)
        rows = self.tokens.take(places, mode="clip").astype(np.int64)
        real = None
        if len(starts) and places[:, -1].max() >= len(self.tokens):
            rows[places >= len(self.tokens)] = self.marks.pad
            real = torch.from_numpy(places[:, 1:] < len(self.tokens))
        begin, end = self.marks.begin, self.marks.end
        tokens, labels = rows[:, :-1], np.where(rows[:, 1:] == begin, end, rows[:, 1:])
        documents = None
        if self.isolate_documents and (tokens[:, 1:] == begin).any():
            documents = torch.from_numpy(np.cumsum(tokens == begin, axis=1))
        return LanguageBatch(torch.from_numpy(tokens.copy()), torch.from_numpy(labels), real, documents, starts)

    def windows(self, length: int, stride: int, rows: int) -> Iterator[tuple[LanguageBatch, np.ndarray]]:
        """Batches that together predict every token once, and which positions of each row count: the last `stride`
        of a window, or all of the first one's, so that with stride < length each token has a longer past."""
        if not 1 <= stride <= length:
            raise ValueError(f"a stride of 1 to {length} predicts every token of such windows, not {stride}")
        starts = [0, *range(stride, len(self) - (length - stride), stride)] if len(self) else []
        for first in range(0, len(starts), rows):
            part = np.array(starts[first : first + rows])
            counts = np.ones((len(part), length), dtype=bool)
            counts[part > 0, : length - stride] = False
            yield self.batch(part, length), counts


class Windows:
    """Endless batches of window starts; its whole state is which batch comes next.

    An epoch has no token twice. Each epoch cuts the stream at other places, so that no token is always the first of
    its window. Less than two windows of tokens at the ends are left out of an epoch.
    """

    def __init__(self, stream: Stream, *, length: int, rows: int, seed: int) -> None:
        if len(stream) < 1:
            raise UserError("the training text is shorter than two tokens")
        self.tokens, self.length, self.rows, self.seed = len(stream), length, rows, seed
        self.epoch, self.next = 0, 0
        self.starts = self._plan()

    def __next__(self) -> np.ndarray:
        if self.next >= len(self.starts):
            self.epoch, self.next = self.epoch + 1, 0
            self.starts = self._plan()
        self.next += self.rows
        return self.starts[self.next - self.rows : self.next]

    @property
    def progress(self) -> float:
        """Epochs done, as a fraction."""
        return self.epoch + min(1.0, self.next / len(self.starts))

    @property
    def batches(self) -> int:
        """In an epoch."""
        return -(-len(self.starts) // self.rows)

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "next": self.next}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epoch, self.next = int(state["epoch"]), int(state["next"])
        self.starts = self._plan()

    def _plan(self) -> np.ndarray:
        random = np.random.default_rng([self.seed, self.epoch])
        whole = max(1, self.tokens // self.length - 1)
        first = int(random.integers(max(0, self.tokens - whole * self.length) + 1))
        return random.permutation(first + self.length * np.arange(whole))


def encode_documents(vocabulary: Vocabulary, documents: Sequence[str], *, marked: bool) -> np.ndarray:
    """The stream of ids of the documents; a long one is encoded some lines at a time."""
    kind = kind_of_ids(vocabulary)
    begin = np.array([vocabulary.marks.begin] if marked else [], dtype=kind)
    parts: list[np.ndarray] = []
    for document in documents:
        parts.append(begin)
        first, *rest = pieces_of(document)
        encoded = [*vocabulary.encode([first]), *vocabulary.encode(rest, continues=True)]
        parts += [np.array(ids, dtype=kind) for ids in encoded]
    return np.concatenate([*parts, begin])


def kind_of_ids(vocabulary: Vocabulary) -> type[np.uint16] | type[np.uint32]:
    """The smallest numbers that hold all ids."""
    return np.uint16 if len(vocabulary) <= 2**16 else np.uint32


def pieces_of(document: str) -> list[str]:
    """A document some lines at a time."""
    lines = document.splitlines(keepends=True)
    return ["".join(lines[i : i + LINES_AT_ONCE]) for i in range(0, len(lines), LINES_AT_ONCE)] or [""]

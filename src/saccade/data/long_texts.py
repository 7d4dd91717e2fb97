"""Texts of any size, read in pieces: what is in memory at a time does not grow with them.

The stream of ids is the one that `stream.encode_documents` makes of the same files read at once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from saccade.data.documents import TextFile, split_documents
from saccade.data.stream import LINES_AT_ONCE, kind_of_ids, pieces_of
from saccade.data.text import find, read_lines
from saccade.errors import UserError
from saccade.tokens.vocabulary import Vocabulary

LONG = 256 * 2**20
"""Bytes of files from which they are read in pieces."""
GROUP = 4 * 2**20
"""Characters that are encoded at once, by all cores."""
LEARNT = 200_000_000
"""Characters from which a vocabulary is learnt: pieces from all over a longer text."""


class Piece(NamedTuple):
    """Some lines of a document."""

    text: str
    begins: bool
    """Whether a document begins with it."""


@dataclass(frozen=True)
class LongTexts:
    """Documents of files, in their order; equal ones are read once, as when they are all in memory."""

    files: Sequence[TextFile]
    folders: Sequence[Path]
    lowercase: bool = False

    @property
    def paths(self) -> list[Path]:
        return [
            Path(file.file) if Path(file.file).is_absolute() else find(file.file, self.folders) for file in self.files
        ]

    @property
    def size(self) -> int:
        """Bytes of the files; reading one that is not there says so."""
        return sum(path.stat().st_size for path in self.paths if path.is_file())

    def pieces(self) -> Iterator[Piece]:
        """All documents, piece by piece, each as often as its file says."""
        seen = set[bytes]()
        for file, path in zip(self.files, self.paths, strict=True):
            if file.documents == "whole":
                if file.first < 1:
                    raise UserError(f"{path}: `first` is for texts below {LONG // 2**20} MB: cut the file instead")
                for _ in range(file.repeat):
                    lines = (
                        Piece(self._cased(line) + "\n", number == 0) for number, line in enumerate(read_lines(path))
                    )
                    yield from regrouped(lines)
                continue
            for document in islice(split_documents(file, path), 0, None, file.every):
                text = self._cased(document)
                digest = blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
                if text.strip() and digest not in seen:
                    seen.add(digest)
                    for _ in range(file.repeat):
                        yield from (Piece(part, number == 0) for number, part in enumerate(pieces_of(text)))

    def _cased(self, text: str) -> str:
        return text.lower() if self.lowercase else text


@dataclass(frozen=True)
class Counted:
    """How much text there is."""

    documents: int
    characters: int


def count(texts: LongTexts) -> Counted:
    """One pass over the files."""
    documents = characters = 0
    for piece in texts.pieces():
        documents, characters = documents + piece.begins, characters + len(piece.text)
    if not characters:
        raise UserError(f"{texts.paths[0]}: no text in it")
    return Counted(documents, characters)


def held_out(pieces: Iterator[Piece], counted: Counted, share: float) -> Iterator[tuple[Piece, bool]]:
    """Each piece, and whether it is held out: the last documents, or, of few, the last characters."""
    by_documents = counted.documents * min(share, 1 - share) >= 1
    last = int((counted.documents if by_documents else counted.characters) * (1 - share))
    documents = end = 0
    for piece in pieces:
        documents, start, end = documents + piece.begins, end, end + len(piece.text)
        if by_documents:
            yield piece, documents > last
            continue
        cut = max(0, min(len(piece.text), last - start))
        if cut:
            yield Piece(piece.text[:cut], piece.begins), False
        if cut < len(piece.text):  # what is cut off is a document of its own
            yield Piece(piece.text[cut:], piece.begins or start <= last), True


def regrouped(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Pieces whose lines are counted from where each document begins, also where one was cut."""
    waiting, begins = list[str](), True
    for piece in pieces:
        if piece.begins and waiting:
            yield Piece("".join(waiting), begins)
            waiting, begins = [], True
        begins = begins or piece.begins
        waiting += piece.text.splitlines(keepends=True)
        while len(waiting) >= LINES_AT_ONCE:
            yield Piece("".join(waiting[:LINES_AT_ONCE]), begins)
            waiting, begins = waiting[LINES_AT_ONCE:], False
    if waiting:
        yield Piece("".join(waiting), begins)


def encoded(
    vocabulary: Vocabulary, pieces: Iterator[Piece], *, marked: bool, told: Callable[[int], None]
) -> Iterator[np.ndarray]:
    """The stream of ids, part by part; `told` hears of the characters that are done."""
    kind, marks = kind_of_ids(vocabulary), [vocabulary.marks.begin] if marked else []
    group, size = list[Piece](), 0
    for piece in pieces:
        group.append(piece)
        size += len(piece.text)
        if size >= GROUP:
            yield _encode(vocabulary, group, marks, kind)
            told(size)
            group, size = [], 0
    yield np.concatenate([_encode(vocabulary, group, marks, kind), np.array(marks, dtype=kind)])
    told(size)


def _encode(
    vocabulary: Vocabulary, group: Sequence[Piece], marks: list[int], kind: type[np.unsignedinteger]
) -> np.ndarray:
    firsts = iter(vocabulary.encode([piece.text for piece in group if piece.begins]))
    others = iter(vocabulary.encode([piece.text for piece in group if not piece.begins], continues=True))
    rows = [[*marks, *next(firsts)] if piece.begins else next(others) for piece in group]
    return np.array([each for row in rows for each in row], dtype=kind)


def to_learn_from(pieces: Iterator[Piece], characters: int) -> Iterator[str]:
    """Enough of them, from all over the text, to learn a vocabulary from."""
    every = max(1, -(-characters // LEARNT))
    return (piece.text for piece in islice(pieces, 0, None, every))

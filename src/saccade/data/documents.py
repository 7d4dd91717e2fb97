"""Documents from text files: where one ends and the next begins."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field

from saccade.config import Record
from saccade.data.text import find, read_lines
from saccade.errors import UserError
from saccade.sources.sentences import split_sentences

TEXT = "# text = "
"""Prefix of the line with a CoNLL-U sentence's text."""


class TextFile(Record):
    """A text file, plain, gzip or xz, and how it is divided into documents."""

    file: str
    """Path, absolute or relative to the data folder."""
    documents: Literal["whole", "lines", "separated", "column", "conllu", "sentences", "prose"] = "whole"
    """What a document is. whole: the file; lines: each line; separated: the text up to a separator line; column: each
    cell of a TSV column; conllu: the sentences from one `# newdoc` to the next; sentences: each CoNLL-U sentence;
    prose: each sentence of each line."""
    separator: str = "<|endoftext|>"
    """For separated: the line between two documents."""
    column: int = Field(1, ge=1, le=1000)
    """For column: its number, counted from 1."""
    every: int = Field(1, ge=1, le=1000)
    """Read every n-th document only."""
    repeat: int = Field(1, ge=1, le=100)
    """How often each document is seen in an epoch."""
    first: float = Field(1.0, gt=0, le=1)
    """For whole: read only this share of the file, from its beginning."""


def read_documents(files: Sequence[TextFile], folders: Sequence[Path], *, lowercase: bool = False) -> list[str]:
    """All documents of the files, in order, without empty ones; each as often as the first file with it says."""
    found: dict[str, int] = {}
    for file in files:
        path = Path(file.file) if Path(file.file).is_absolute() else find(file.file, folders)
        before = len(found)
        documents = islice(split_documents(file, path), 0, None, file.every)
        texts = (text.lower() if lowercase else text for text in documents)
        for text in texts:
            if text.strip():
                found.setdefault(text, file.repeat)
        if len(found) == before:
            raise UserError(f"{path}: no text in it that is not already there")
    return [text for text, times in found.items() for _ in range(times)]


def split_documents(file: TextFile, path: Path) -> Iterator[str]:
    """The documents of one file, one after the other."""
    match file.documents:
        case "whole":
            text = "".join(line + "\n" for line in read_lines(path))
            yield text[: int(len(text) * file.first)]
        case "lines":
            yield from read_lines(path)
        case "separated":
            yield from _separated(file.separator, path)
        case "column":
            yield from _column(file.column, path)
        case "conllu":
            yield from _conllu(path)
        case "sentences":
            yield from _sentences(path)
        case "prose":
            yield from (line[a:b] for line in read_lines(path) for a, b in split_sentences(line))


def _separated(separator: str, path: Path) -> Iterator[str]:
    lines: list[str] = []
    for line in read_lines(path):
        if line.strip() == separator.strip():
            yield "\n".join(lines).strip()
            lines = []
        else:
            lines.append(line)
    yield "\n".join(lines).strip()


def _column(column: int, path: Path) -> Iterator[str]:
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if line.strip() and len(cells) < column:
            raise UserError(f"{path}, line {number}: {len(cells)} columns, but column {column} was asked for")
        yield cells[column - 1] if line.strip() else ""


def _sentences(path: Path) -> Iterator[str]:
    for line in read_lines(path):
        if line.startswith(TEXT):
            yield line.removeprefix(TEXT)


def _conllu(path: Path) -> Iterator[str]:
    sentences: list[str] = []
    for line in read_lines(path):
        if line.startswith("# newdoc") and sentences:
            yield " ".join(sentences)
            sentences = []
        elif line.startswith(TEXT):
            sentences.append(line.removeprefix(TEXT))
    yield " ".join(sentences)

"""CoNLL-U in and out: sentences of words with a tag each; plain text becomes the same records."""

import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from saccade.data.text import OPENERS, read_lines
from saccade.data.word_rules import split_words
from saccade.errors import UserError

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""universaldependencies.org/format.html"""
TagColumn = Literal["lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
"""What can be asked of a word: all columns but its number and itself."""
FORM, MISC = 1, 9
NEEDED = ("lemma", "upos", "xpos", "head", "deprel")
"""Columns where `_` says that nobody filled them in; in the others it says that there is none, which is an answer."""
ID = re.compile(r"(?P<word>[1-9]\d*)|(?P<first>[1-9]\d*)-(?P<last>[1-9]\d*)|(?P<empty>\d+\.[1-9]\d*)", re.ASCII)


@dataclass(frozen=True)
class Sentence:
    """Words and their tags. Multiword ranges (1-2) and empty nodes (1.1) are in `lines` alone."""

    words: list[str]
    spaces: list[bool]
    """Whether a space stands before each word."""
    tags: list[str]
    lines: list[str]
    """All the file has of it, with the line ends: comments before, empty lines behind; those of all sentences together
    are the file."""

    @property
    def text(self) -> str:
        return "".join(" " * space + word for word, space in zip(self.words, self.spaces, strict=True))


def read_conllu(path: Path, column: TagColumn = "upos", *, tagged: bool = True) -> list[Sentence]:
    """The sentences of a file, plain, gzip or xz. Unless `tagged`, tags may be missing: they are read as `_`."""
    return list(read_sentences(_whole_lines(path), str(path), column, tagged=tagged))


def read_sentences(
    lines: Iterable[str], where: str, column: TagColumn = "upos", *, tagged: bool = True
) -> Iterator[Sentence]:
    """The sentences of lines that still have their ends; `where` names them in complaints."""
    block: list[str] = []
    number, start, ended = 0, 1, False
    for number, line in enumerate(lines, 1):
        blank = not line.strip()
        if ended and not blank:
            yield _sentence(block, start, where, column, tagged)
            block, start, ended = [], number, False
        block.append(line)
        # Empty lines before the first sentence belong to it.
        ended = blank and any(before.strip() for before in block)
    if not any(line.strip() for line in block):
        raise UserError(f"{where}: no sentences in it")
    yield _sentence(block, start, where, column, tagged)


def retagged(sentence: Sentence, tags: Sequence[str], column: TagColumn = "upos") -> str:
    """The sentence's CoNLL-U with other tags, and everything else byte for byte as it was read."""
    place, left, lines = COLUMNS.index(column), iter(tags), []
    if len(tags) != len(sentence.words):
        raise ValueError(f"{len(tags)} tags for {len(sentence.words)} words")
    for line in sentence.lines:
        body = line.rstrip("\r\n")
        cells = body.split("\t")
        if cells[0].removeprefix("\ufeff").isdecimal():
            cells[place] = next(left)
        lines.append("\t".join(cells) + line[len(body) :])
    return "".join(lines)


def only_column(sentences: Sequence[Sentence], column: TagColumn) -> str:
    """Sentences as CoNLL-U with nothing but their words, spaces and tags: all that a tagger is scored by."""
    lines = []
    for sentence in sentences:
        for place, (word, tag) in enumerate(zip(sentence.words, sentence.tags, strict=True), 1):
            cells = dict.fromkeys(COLUMNS, "_") | {"id": str(place), "form": word, column: tag}
            if column != "misc" and place < len(sentence.words) and not sentence.spaces[place]:
                cells["misc"] = "SpaceAfter=No"
            lines.append("\t".join(cells.values()) + "\n")
        lines.append("\n")
    return "".join(lines)


def write_conllu(
    path: Path, sentences: Sequence[Sentence], tags: Sequence[Sequence[str]], column: TagColumn = "upos"
) -> None:
    """Each sentence with its new tags; gzip where the name says so."""
    pairs = zip(sentences, tags, strict=True)
    content = "".join(retagged(sentence, given, column) for sentence, given in pairs).encode()
    try:
        path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None


def _whole_lines(path: Path) -> Iterator[str]:
    """Lines with their ends, and with the byte order mark if there is one.

    `read_lines` says what is wrong with the file, but trims its lines. A pipe cannot be read again for the ends.
    """
    lines = read_lines(path)
    if not path.is_file():
        yield from (line + "\n" for line in lines)
        return
    for _ in lines:
        pass
    with OPENERS.get(path.suffix, open)(path, "rb") as file:
        yield from (line.decode() for line in file)


def _sentence(lines: list[str], start: int, where: str, column: TagColumn, tagged: bool) -> Sentence:
    words: list[str] = []
    tags: list[str] = []
    after: list[bool] = []
    ranges: list[tuple[str, int, int, list[str]]] = []
    for number, line in enumerate(lines, start):
        body = line.rstrip("\r\n").removeprefix("\ufeff")
        if body.startswith("#") or not body.strip():
            continue
        here = f"{where}, line {number}"
        cells = body.split("\t")
        if len(cells) != len(COLUMNS):
            found = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
            begins = f"{body[:40]!r}{'…' if len(body) > 40 else ''}"
            raise UserError(f"{here}: {found}, but CoNLL-U has {len(COLUMNS)} (tab separated); it begins {begins}")
        match = ID.fullmatch(cells[0])
        if match is None:
            raise UserError(f"{here}: {cells[0]!r} is no word's number; that is written 3, or 3-4 for a range, or 3.1")
        if match["first"]:
            ranges.append((here, int(match["first"]), int(match["last"]), cells))
        if match["word"]:
            if int(cells[0]) != len(words) + 1:
                raise UserError(
                    f"{here}: word {cells[0]} where word {len(words) + 1} is due; is an empty line missing before it?"
                )
            words.append(cells[FORM])
            tags.append(_tag(cells, column, here, tagged))
            after.append(_space_after(cells))
    if not words:
        raise UserError(f"{where}, line {start}: a sentence without words")
    for here, first, last, cells in ranges:
        if not first <= last <= len(words):
            raise UserError(f"{here}: the range {cells[0]} in a sentence of {len(words)} words")
        # don't = do + n't stays together; words that do not spell their range (au = à + le) are read with spaces.
        together = "".join(words[first - 1 : last]) == cells[FORM]
        after[first - 1 : last] = [not together] * (last - first) + [_space_after(cells)]
    return Sentence(words, [False, *after[:-1]], tags, lines)


def _tag(cells: list[str], column: TagColumn, here: str, tagged: bool) -> str:
    if not cells[FORM].strip():
        raise UserError(f"{here}: word {cells[0]} is empty")
    tag = cells[COLUMNS.index(column)]
    underscore = column == "lemma" and cells[FORM] == "_"  # the one word whose lemma is written so
    missing = not tag.strip() or (tag == "_" and column in NEEDED and not underscore)
    if missing and tagged:
        raise UserError(
            f"{here}: word {cells[0]}, {cells[FORM]!r}, has no {column} (column {COLUMNS.index(column) + 1})"
        )
    return "_" if missing else tag


def _space_after(cells: list[str]) -> bool:
    return "SpaceAfter=No" not in cells[MISC].split("|")


def sentence_of(text: str, number: int = 1) -> Sentence:
    """A text as one sentence without tags, with the CoNLL-U that `retagged` fills in."""
    words, spaces = split_words(text)
    if not words:
        raise UserError("no words in the text")
    sentence = Sentence(words, spaces, ["_"] * len(words), [])
    lines = [f"# sent_id = {number}\n", f"# text = {sentence.text}\n"]
    for place, word in enumerate(words, 1):
        misc = "_" if place == len(words) or spaces[place] else "SpaceAfter=No"
        lines.append("\t".join([str(place), word, *"_" * 7, misc]) + "\n")
    return Sentence(words, spaces, sentence.tags, [*lines, "\n"])

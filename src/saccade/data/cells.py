"""Tables as rows of cells: tab separated, CSV, or JSON lines, by the file's ending; every error names the line."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.errors import UserError

Cells = tuple[int, list[str]]
"""The number of the line a row begins in, and the row's cells."""


@dataclass(frozen=True)
class TableFormat:
    """How rows and cells are written."""

    separator: str
    """What stands between cells, in words; empty where cells have names instead."""
    named: bool = False
    """The first row holds the columns' names, whatever they are."""


TSV, CSV, JSONL = TableFormat("tab"), TableFormat("comma"), TableFormat("", named=True)
_FORMATS = {".csv": CSV, ".jsonl": JSONL, ".ndjson": JSONL}
# fmt: off
_SIDES = (("source", "target"), ("src", "tgt"), ("input", "output"))
_LANGUAGES = frozenset({
    "en", "es", "fr", "de", "it", "pt", "nl", "ca", "ru", "zh", "ja", "ko", "ar", "pl", "cs", "sv", "da", "fi", "tr",
    "eng", "spa", "fra", "deu", "ita", "por", "nld", "english", "spanish", "french", "german", "italian", "portuguese",
})
# fmt: on


def format_of(path: Path) -> TableFormat:
    """Told by the ending, before one of compression; what is not known is tab separated."""
    ending = Path(path.stem).suffix if path.suffix in (".gz", ".xz") else path.suffix
    return _FORMATS.get(ending.lower(), TSV)


def read_cells(path: Path, lines: Iterable[str]) -> Iterator[Cells]:
    """The rows of a file's lines; all have as many cells as the first. Empty lines are passed over.

    Line ends and tabs inside a cell become spaces. Of JSON lines, the first row holds the keys.
    """
    if (found := format_of(path)) is JSONL:
        yield from _objects(path, lines)
        return
    first, width = 0, 0
    for number, cells in _quoted(path, lines) if found is CSV else _split(lines):
        if not first:
            first, width = number, len(cells)
        if len(cells) != width:
            count = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
            due = f"line {first} has {width} ({found.separator} separated)"
            raise UserError(f"{path}, line {number}: {count}, but {due}; it begins {shown(chr(9).join(cells))}")
        yield number, cells


def two_columns(path: Path, lines: Iterable[str]) -> Iterator[Cells]:
    """Of every row the source and its translation: the columns of those names, or the first two."""
    rows = read_cells(path, lines)
    number, first = next(rows, (0, []))
    if not first:
        return
    names = [cell.strip().lower() for cell in first]
    sides = next((pair for pair in _SIDES if set(pair) <= set(names)), None)
    if len(first) < 2 or (format_of(path).named and len(first) > 2 and not sides):
        found = ", ".join(map(shown, first[:10]))
        raise UserError(
            f"{path}, line {number}: expected two columns, such as source and target, but there are {found}"
        )
    places = [names.index(side) for side in sides] if sides else [0, 1]
    if not sides and not format_of(path).named and not (names[0] != names[1] and set(names[:2]) <= _LANGUAGES):
        yield number, first[:2]
    yield from ((number, [cells[place] for place in places]) for number, cells in rows)


def shown(text: str) -> str:
    """In quotes; of a long text the beginning."""
    return f"{text[:40]!r}{'…' if len(text) > 40 else ''}"


def _split(lines: Iterable[str]) -> Iterator[Cells]:
    for number, line in enumerate(lines, 1):
        if line.strip(" "):
            yield number, line.split("\t")


def _quoted(path: Path, lines: Iterable[str]) -> Iterator[Cells]:
    """CSV: cells may be in quotes, and then hold commas, line ends and doubled quotes."""
    waiting = iter(lines)
    first = next(waiting, "")
    # Where the comma is the decimal sign, spreadsheets write semicolons.
    delimiter = ";" if first.count(";") > first.count(",") else ","
    reader = csv.reader((line + "\n" for line in _chain(first, waiting)), delimiter=delimiter, strict=True)
    number = 1
    try:
        for cells in reader:
            if cells and any(cell.strip() for cell in cells):
                yield number, [_one_line(cell) for cell in cells]
            number = reader.line_num + 1
    except csv.Error as error:
        wrong = "a quote is never closed" if "unexpected end" in str(error) else str(error)
        raise UserError(f"{path}, line {number}: not valid CSV: {wrong}") from None


def _chain(first: str, others: Iterator[str]) -> Iterator[str]:
    yield first
    yield from others


def _objects(path: Path, lines: Iterable[str]) -> Iterator[Cells]:
    """JSON lines: one object each, whose keys are the columns."""
    keys: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _object(f"{path}, line {number}", line)
        if not keys:
            keys = list(row)
            yield number, keys
        if missing := [key for key in keys if key not in row]:
            raise UserError(f"{path}, line {number}: no {shown(missing[0])} in it, which the first line has")
        yield number, [_as_text(row[key]) for key in keys]


def _object(where: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid JSON ({str(error)[:100]})") from None
    if isinstance(row, dict) and len(row) == 1 and isinstance(inner := next(iter(row.values())), dict):
        row = inner  # {"translation": {"en": …, "es": …}}
    if not isinstance(row, dict) or not row:
        raise UserError(f'{where}: not an object with names, such as {{"text": "…", "label": "…"}}')
    return row


def _as_text(value: Any) -> str:
    """Numbers and the like as JSON writes them; nothing for null."""
    if value is None:
        return ""
    return _one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _one_line(cell: str) -> str:
    return " ".join(_parts(cell)) if any(sign in cell for sign in "\t\r\n") else cell


def _parts(cell: str) -> Sequence[str]:
    return [part for line in cell.splitlines() for part in line.split("\t")]

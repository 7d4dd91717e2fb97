"""Labelled tables: rows of one or two texts with a class or a number; every error names the file and the line."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from saccade.config import Record
from saccade.data.cells import format_of, read_cells, shown
from saccade.data.split import FEWEST
from saccade.data.text import find, read_lines
from saccade.errors import UserError, WrongUse


def _as_name(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Column = Annotated[str, BeforeValidator(_as_name), Field(min_length=1)]


class Columns(Record):
    """The columns of a UTF-8 table, plain, gzip or xz: tab separated without quotes; comma separated with quotes if the
    name ends in .csv; one JSON object a line if it ends in .jsonl."""

    text: Column = "text"
    """Column of the text: its name in the header, or its number, counted from 1."""
    second: Column | None = None
    """Column of the second text, for pairs of texts."""
    label: Column = "label"
    """Column of the class or number."""
    header: bool = True
    """Whether the first line names the columns."""
    labels: Literal["classes", "numbers"] = "classes"
    """classes: labels are names, even if they look like numbers; numbers: regression."""


class TableConfig(Columns):
    """The files of each part, one or more; the order of columns may differ between files."""

    renamed: ClassVar[Mapping[str, str]] = {"held_out": "held_out_share"}

    train: list[str] = Field(min_length=1)
    """Training files."""
    valid: list[str] = Field([])
    """Validation files: they select the best checkpoint."""
    test: list[str] = Field([])
    """Test files, used for the final score and by `saccade evaluate`."""
    held_out_share: float = Field(0.0, ge=0, le=0.4)
    """Share of the training texts held out for validation, and as much for the test, if these name no files."""

    @model_validator(mode="after")
    def _something_to_choose_by(self) -> Self:
        if not self.valid and not self.held_out_share:
            raise ValueError("valid names no files; name some, or set held_out_share, such as held_out_share = 0.1")
        return self


@dataclass(frozen=True)
class Examples:
    """Rows as columns; all lists are equally long, but `classes`."""

    texts: list[str]
    seconds: list[str] | None
    labels: list[int] | list[float]
    """Numbers of classes, or the numbers themselves."""
    classes: list[str]
    """The classes' names, sorted; none where labels are numbers."""

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class TableParts:
    """Training and validation examples, and test examples if there are any."""

    train: Examples
    valid: Examples
    test: Examples | None
    told: list[str]
    """Messages: counts, and warnings."""


# fmt: off
LABELS = (
    "label", "labels", "class", "category", "sentiment", "target", "score", "gold", "gold_label", "entails",
    "entailment", "rating", "stars", "topic", "intent", "polarity", "emotion", "acceptability", "similarity",
    "is_duplicate",
)
"""What the column of labels is often called; an earlier name goes before a later one."""
TEXTS = (
    "text", "sentence", "review", "comment", "content", "tweet", "message", "utterance", "question", "query",
    "document", "headline", "title", "body",
)
"""What the column of texts is often called."""
PAIRS = (
    ("sentence1", "sentence2"), ("text1", "text2"), ("text_a", "text_b"), ("question1", "question2"),
    ("premise", "hypothesis"), ("text", "hypothesis"), ("question", "sentence"), ("question", "passage"),
    ("question", "answer"), ("query", "document"), ("text", "second"),
)
"""What the columns of pairs are often called."""
# fmt: on
MANY = 20
"""With more different numbers than this, labels are quantities, not classes."""


@dataclass(frozen=True)
class _Row:
    where: str
    text: str
    second: str | None
    label: str


def read_table(paths: Sequence[Path], columns: Columns, classes: Sequence[str] | None = None) -> Examples:
    """The rows of the files together. Without `classes` this is training data, whose labels must differ."""
    return _examples([row for path in paths for row in _rows(path, columns)], columns, classes)


def read_parts(config: TableConfig, folders: Sequence[Path]) -> TableParts:
    """All parts, by the classes of the training part."""
    rows = {
        name: [row for file in files for row in _rows(find(file, folders), config)]
        for name, files in (("train", config.train), ("valid", config.valid), ("test", config.test))
    }
    empty = [name for name in ("valid", "test") if not rows[name]]
    told = []
    if config.held_out_share and empty:
        rows |= _hold_out(rows["train"], empty, config)
        told.append(f"held out of training, by text so that none is in two parts: {' and '.join(empty)}")
    train = _examples(rows["train"], config, None)
    valid, test = (_examples(rows[name], config, train.classes) for name in ("valid", "test"))
    parts = {"train": train, "valid": valid, "test": test}
    told += [line for name, examples in parts.items() for line in _described(name, examples, train)]
    return TableParts(train, valid, test if len(test) else None, told)


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(map(shown, texts[:10])) + (", …" if len(texts) > 10 else "")


def _rows(path: Path, columns: Columns) -> Iterator[_Row]:
    wanted = {"text": columns.text, "label": columns.label}
    if columns.second is not None:
        wanted["second text"] = columns.second
    places: dict[str, int] = {}
    count = 0
    for number, cells in read_cells(path, read_lines(path)):
        where = f"{path}, line {number}"
        if not places:
            header = columns.header or format_of(path).named
            places = _places(wanted, cells, header, where, format_of(path).separator)
            if header:
                continue
        for what, place in places.items():
            if not cells[place].strip():
                raise UserError(f"{where}: the {what} (column {place + 1}) is empty")
        second = cells[places["second text"]] if "second text" in places else None
        # Spaces around a label are invisible and would make another class.
        yield _Row(where, cells[places["text"]], second, cells[places["label"]].strip())
        count += 1
    if not count:
        raise UserError(f"{path}: no rows in it" + (" but the header" if places else ""))


def _places(wanted: dict[str, str], first: list[str], header: bool, where: str, separator: str) -> dict[str, int]:
    """Where in a row each of the wanted columns stands."""
    names = [cell.strip() for cell in first] if header else []
    places: dict[str, int] = {}
    for what, column in wanted.items():
        if names.count(column) > 1:
            raise UserError(f"{where}: two columns are named {column!r}; give the {what} by number, counted from 1")
        if column in names:
            places[what] = names.index(column)
        elif column.isdecimal() and 1 <= int(column) <= len(first):
            places[what] = int(column) - 1
        else:
            there = f"the header has {_listed(names)}" if header else f"the columns are 1 to {len(first)}"
            lone = f"; there is no {separator} in it" if len(first) == 1 and separator else ""
            raise UserError(f"{where}: no column {column!r} for the {what}; {there}{lone}")
    for (what, place), (other, again) in combinations(places.items(), 2):
        if place == again:
            raise UserError(f"{where}: column {wanted[other]!r} cannot be both {what} and {other}")
    return places


def _examples(rows: list[_Row], columns: Columns, classes: Sequence[str] | None) -> Examples:
    training = classes is None
    names: list[str] = []
    labels: list[int] | list[float]
    if columns.labels == "numbers":
        labels = [_number(row) for row in rows]
    else:
        names = sorted({row.label for row in rows}) if classes is None else list(classes)
        labels = _class_numbers(rows, names)
    if training and len(set(labels)) < 2:
        what = "different numbers" if columns.labels == "numbers" else "classes"
        raise UserError(
            f"{rows[0].where} and on: the label is {shown(rows[0].label)} in all {len(rows):,} rows; "
            f"training needs at least two {what}"
        )
    seconds = None if columns.second is None else [row.second or "" for row in rows]
    return Examples([row.text for row in rows], seconds, labels, names)


def _class_numbers(rows: list[_Row], classes: list[str]) -> list[int]:
    numbers = {name: number for number, name in enumerate(classes)}
    for row in rows:
        if row.label not in numbers:
            raise UserError(
                f"{row.where}: the class {shown(row.label)} was never seen in training; known are {_listed(classes)}"
            )
    return [numbers[row.label] for row in rows]


def _finite(cell: str) -> float | None:
    """The number a cell is; Python would also take 1_000 for one."""
    try:
        number = math.nan if "_" in cell else float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _number(row: _Row) -> float:
    number = _finite(row.label)
    if number is None:
        raise UserError(f"{row.where}: the label {shown(row.label)} is not a finite number such as 3.5")
    return number


def _hold_out(rows: list[_Row], parts: list[str], config: TableConfig) -> dict[str, list[_Row]]:
    """Training rows without those of the new parts, which are chosen by the hash of their texts alone.

    The order of the rows has no effect, and rows with the same text stay together. The last text of each class stays
    in training, so that a class with a single example can be learnt.
    """
    hashes = {row.text: hashlib.sha256(row.text.encode()).digest() for row in rows}
    texts = sorted(hashes, key=hashes.__getitem__)
    if len(texts) < FEWEST:
        raise UserError(
            f"{', '.join(config.train)}: only {len(texts)} different texts; at least {FEWEST} are needed to train and "
            f"hold out {' and '.join(parts)}"
        )
    last = {row.label: row.text for row in sorted(rows, key=lambda row: hashes[row.text])}
    kept = set(last.values()) if config.labels == "classes" else set()
    free = [text for text in texts if text not in kept]
    held = max(1, round(config.held_out_share * len(texts)))
    if len(free) < held * len(parts):
        raise UserError(
            f"{', '.join(config.train)}: {len(last)} classes in {len(texts)} different texts; too few to hold out "
            f"{held} for {' and '.join(parts)} and still train every class"
        )
    part_of = {text: parts[place // held] for place, text in enumerate(free[: held * len(parts)])}
    split: dict[str, list[_Row]] = {name: [] for name in ("train", *parts)}
    for row in rows:
        split[part_of.get(row.text, "train")].append(row)
    return split


def _described(name: str, examples: Examples, train: Examples) -> Iterator[str]:
    if not len(examples):
        return
    kind = "pairs" if examples.seconds is not None else "texts"
    if examples.classes:
        counts = Counter(examples.classes[int(label)] for label in examples.labels)
        most = ", ".join(f"{shown(label)} {count:,}" for label, count in counts.most_common(8))
        yield f"{name}: {len(examples):,} {kind} of {len(counts)} classes: {most}{', …' if len(counts) > 8 else ''}"
        lone = [label for label in examples.classes if counts[label] == 1]
        if lone and examples is train:
            yield f"{name}: a single example of {_listed(lone)}; that is hardly enough to learn a class"
    else:
        low, high = min(examples.labels), max(examples.labels)
        yield f"{name}: {len(examples):,} {kind} with numbers from {low:g} to {high:g}"
    if examples is not train:
        known = set(zip(train.texts, train.seconds or train.texts, strict=True))
        both = sum(pair in known for pair in zip(examples.texts, examples.seconds or examples.texts, strict=True))
        if both:
            yield f"{name}: {both:,} of its {len(examples):,} {kind} are in train too, which flatters the score"


def guess_table(files: Sequence[Path]) -> tuple[TableConfig, list[str]]:
    """Guess the parts and columns of the user's files: training; training and test; or training, validation and test.

    A part that is missing is held out of the training file.
    """
    if not 1 <= len(files) <= 3:
        raise WrongUse(f"give a table to train on, and perhaps one to test with, not {len(files)} files")
    columns, told = guess_columns(files[0])
    names = [str(file.resolve()) for file in files]
    parts = {"train": names[:1], "valid": names[1:-1], "test": names[1:][-1:]}
    return TableConfig(**columns.table(), **parts, held_out_share=0.0 if len(files) == 3 else 0.1), told


def guess_columns(path: Path) -> tuple[Columns, list[str]]:
    """Guess the columns, with an explanation.

    The first line is a header if one of its cells is a known name. A column that no known name tells is told by its
    cells: labels are where the fewest different values are, but more than one and none empty; the text is the longest
    of the rest; and if there is no header and one more column, with blanks in most cells of both, rows are pairs.
    """
    lines = [cells for _, cells in read_cells(path, read_lines(path))]
    names = [cell.strip() for cell in lines[0]] if lines else []
    known_names = not {name.lower() for name in names}.isdisjoint((*LABELS, *TEXTS, *sum(PAIRS, ())))
    header = known_names or format_of(path).named
    rows = lines[1:] if header else lines
    if not rows:
        raise UserError(f"{path}: no rows in it" + (" but the header" if header else ""))
    if len(names) < 2:
        between = format_of(path).separator
        lone = f"no {between} in it; a row is a text and a label, {between} separated" if between else "only one key"
        raise UserError(f"{path}, line 1: {lone}")
    columns = dict(enumerate(zip(*rows, strict=True)))
    left = set(columns)

    def named(wanted: Sequence[str]) -> int | None:
        lower = [name.lower() for name in names] if header else []
        place = next((lower.index(name) for name in wanted if name in lower), None)
        left.discard(-1 if place is None else place)
        return place

    pair = next((pair for pair in PAIRS if set(pair) <= {name.lower() for name in names}), None) if header else None
    label, text, second = named(LABELS), named(pair[:1] if pair else TEXTS), named(pair[1:] if pair else ())
    if label is None:
        label = _likely_label({place: columns[place] for place in left})
        left.discard(label)
    if text is None:
        text = max(left, key=lambda place: _length(columns[place]))
        left.discard(text)
    if not header and len(left) == 1 and all(_blanks(columns[place]) for place in (text, *left)):
        text, second = sorted((text, *left))
    # A number serves where a name does not tell the column.
    known = [name if header and name and names.count(name) == 1 else str(i + 1) for i, name in enumerate(names)]
    different = {cell.strip() for cell in columns[label]}
    chosen = Columns(
        text=known[text],
        second=None if second is None else known[second],
        label=known[label],
        header=header,
        labels="numbers" if _measured(different) else "classes",
    )
    return chosen, [
        f"{path}: line 1 "
        + ("names the columns" if header else "is a row like the others: no cell of it is a known name such as label"),
        f"text: column {chosen.text!r}; "
        + (f"second text: column {chosen.second!r}; " if chosen.second else "")
        + f"label: column {chosen.label!r}, {len(different):,} different {chosen.labels}",
    ]


def _measured(labels: set[str]) -> bool:
    """Whether labels are quantities: all numbers, and some not whole or too many to be names."""
    numbers = [number for number in map(_finite, labels) if number is not None]
    return len(numbers) == len(labels) and (len(labels) > MANY or not all(map(float.is_integer, numbers)))


def _likely_label(columns: dict[int, Sequence[str]]) -> int:
    different = {place: len(set(cells)) for place, cells in columns.items()}
    full = [place for place, cells in columns.items() if all(cell.strip() for cell in cells)]
    # With no column of two values or more, reading the one that is taken says what is wrong with it.
    likely = [place for place in full if different[place] > 1] or full or list(columns)
    return min(likely, key=lambda place: (different[place], _length(columns[place])))


def _length(cells: Sequence[str]) -> int:
    return sum(map(len, cells))


def _blanks(cells: Sequence[str]) -> bool:
    return sum(" " in cell.strip() for cell in cells) > len(cells) / 2

"""Frozen records <-> TOML <-> `--set dotted.key=value`. Knows no record of its own."""

import ast
import difflib
import inspect
import itertools
import json
import textwrap
import tomllib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from saccade.errors import UserError, WrongUse

Table = dict[str, Any]
_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)


def replace_key(table: Table, old: str, new: str, value: Any) -> Table:
    """The table with another key and value in the place of an old one, which is noted."""
    notes = _notes.get()
    if notes is not None:
        notes.append(f"{old} is now called {new}")
    return {new if key == old else key: value if key == old else other for key, other in table.items()}


class Record(BaseModel):
    """A frozen record; the line under a field is its help text, an unknown key is an error."""

    # A validator is built when its record is first used: of the many records a command imports it reads a few.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    renamed: ClassVar[Mapping[str, str]] = {}
    """Keys of earlier versions and what they are called today. They are still read."""

    @model_validator(mode="before")
    @classmethod
    def _plain_table(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        table = cls.modern(table)
        for name, value in table.items():
            field = cls.model_fields.get(name)
            # pydantic would take `true` for 1.
            if isinstance(value, bool) and field is not None and field.annotation in (int, float):
                raise ValueError(f"{name} should be a number, not {value}")
        return table

    @classmethod
    def modern(cls, table: Table) -> Table:
        """The table with the keys of this version. A record whose old keys need more than a new name overrides it."""
        for old, new in cls.renamed.items():
            if old in table and new not in table:
                table = replace_key(table, old, new, table[old])
        return table

    @classmethod
    def read(cls, table: Mapping[str, Any], *, where: str, notes: list[str] | None = None) -> Self:
        """Build the record from a plain table; `where` names the table in error messages, and `notes` collects what was
        read under an old name."""
        found: list[str] = []
        token = _notes.set(found)
        try:
            return cls.model_validate(table)
        except ValidationError as error:
            raise WrongUse(f"{where}: {_first_problem(cls, error)}") from None
        finally:
            _notes.reset(token)
            if notes is not None:
                notes += dict.fromkeys(found)

    def table(self) -> Table:
        """The record as plain values, the form that goes to TOML and JSON."""
        return self.model_dump(mode="json", exclude_none=True)


def field_help(record: type[BaseModel]) -> dict[str, str]:
    """The line under each field of a record, read from its source: to have pydantic do so would slow every start."""
    found: dict[str, str] = {}
    for kind in reversed([kind for kind in record.__mro__ if issubclass(kind, BaseModel) and kind is not BaseModel]):
        (body,) = (node.body for node in ast.parse(textwrap.dedent(inspect.getsource(kind))).body[:1])  # type: ignore[attr-defined]
        for field, after in itertools.pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(field.target, ast.Name):
                found[field.target.id] = str(getattr(after.value, "value", ""))
    return found


def read_toml(path: Path) -> Table:
    """The table of a TOML file; a syntax error says where it is."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WrongUse(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def override(table: Table, settings: Iterable[str], record: type[BaseModel] | None = None) -> Table:
    """A copy of the table with every `dotted.key=value` put in; a value is read as TOML where it can be and as text
    otherwise."""
    return changed(table, map(read_setting, settings), record)


def read_setting(setting: str) -> tuple[str, Any]:
    """`dotted.key=value` -> key and value."""
    dotted, equals, text = setting.partition("=")
    if not equals or not dotted.strip():
        raise WrongUse(f"--set {setting!r}: write it as key=value, such as train.steps=2000")
    return dotted.strip(), _value(text.strip())


def changed(table: Table, changes: Iterable[tuple[str, Any]], record: type[BaseModel] | None = None) -> Table:
    """A copy of the table with new values of dotted keys.

    Choosing another `kind` drops the old kind's keys, which mean nothing to the new one. With the table's `record`, a
    key replaces the value that the table gives under another name of the same key, old or new.
    """
    result: Table = json.loads(json.dumps(table))
    for dotted, value in changes:
        *parents, last = dotted.split(".")
        inner, records = result, [record] if record else []
        for parent in parents:
            inner = inner.setdefault(parent, {})
            fields = [found.model_fields[parent] for found in records if parent in found.model_fields]
            records = [found for field in fields for found in _records_in(field.annotation)]
            if not isinstance(inner, dict):
                raise WrongUse(f"--set {dotted}={value}: {parent} is a value, not a table")
        if last == "kind" and inner.get("kind") != value:
            inner.clear()
        inner[_name_in(inner, last, records)] = value
    return result


def flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """All values of a table and the tables in it, by dotted key."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def to_toml(table: Table) -> str:
    """The table as TOML text that `read_toml` gives back unchanged."""
    return "\n".join(_lines(table, ())).strip() + "\n"


def _name_in(table: Table, key: str, records: Iterable[type[BaseModel]]) -> str:
    """The name that the table has for a key: the same, an older or a newer one; the key itself if it has none."""
    for record in records:
        renamed: Mapping[str, str] = getattr(record, "renamed", {})
        others = [renamed.get(key, key), *(old for old, new in renamed.items() if new == key)]
        if key not in table and (found := [name for name in others if name in table]):
            return found[0]
    return key


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _lines(table: Table, path: tuple[str, ...]) -> Iterator[str]:
    if path:
        yield f"[{'.'.join(path)}]"
    for key, value in table.items():
        if not isinstance(value, dict):
            yield f"{key} = {_literal(value)}"
    yield ""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _lines(value, (*path, key))


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, dict):  # a table in a list
        return f"{{{', '.join(f'{key} = {_literal(item)}' for key, item in value.items())}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _first_problem(record: type[BaseModel], error: ValidationError) -> str:
    problems = error.errors()
    # An unknown key is usually the cause of a missing one: name it first.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    known = list(_known_keys(record))
    # pydantic puts the chosen kind of a union into the location; people do not write it.
    parts = [str(part) for part in problem["loc"]]
    names = {name for key in known for name in key.split(".")}
    dotted = ".".join([part for part in parts[:-1] if part in names] + parts[-1:])
    if problem["type"] != "extra_forbidden":
        # A whole table tells nobody what is wrong in it; the message does.
        untold = problem["type"] == "missing" or isinstance(problem["input"], dict)
        given = "" if untold else f", not {problem['input']!r}"
        message = problem["msg"].removeprefix("Value error, ")
        return f"{dotted or 'recipe'}: {message[:1].lower() + message[1:]}{given[:80]}"
    nearest = difflib.get_close_matches(dotted, known, n=1, cutoff=0.0)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return f"unknown key {dotted}{hint}"


def _known_keys(record: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in record.model_fields.items():
        yield path + name
        for inner in _records_in(field.annotation):
            yield from _known_keys(inner, f"{path}{name}.")


def _records_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is not None:
        for inner in typing.get_args(annotation):
            yield from _records_in(inner)

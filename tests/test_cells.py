"""Tables in three formats: the same rows give the same examples, and what is wrong is told with its line."""

import csv
import gzip
import io
import json
import lzma
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

from saccade.data.cells import read_cells
from saccade.data.table import Examples, guess_table, read_table
from saccade.data.text import read_lines, read_pairs
from saccade.errors import UserError
from tiny import ask

ROWS = [
    {"text": "good, really", "label": "yes"},
    {"text": 'he said "no"', "label": "no"},
    {"text": "é; 猫", "label": "yes"},
]


def as_csv(rows: list[list[str]], delimiter: str = ",") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue()


def files(folder: Path, rows: list[dict[str, str]]) -> list[Path]:
    """The same table in every format."""
    cells = [list(rows[0]), *(list(row.values()) for row in rows)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    contents = {
        "t.tsv": "".join("\t".join(row) + "\n" for row in cells),
        "t.csv": as_csv(cells),
        "semicolons.csv": as_csv(cells, ";"),
        "t.jsonl": lines,
        "bom.jsonl": "\ufeff" + lines.replace("\n", "\r\n"),
    }
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8", newline="")
    (folder / "t.csv.gz").write_bytes(gzip.compress(contents["t.csv"].encode()))
    (folder / "t.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    return [*(folder / name for name in contents), folder / "t.csv.gz", folder / "t.jsonl.xz"]


def guessed(path: Path) -> Examples:
    return read_table([path], guess_table([path])[0])


def test_the_same_rows_give_the_same_examples(tmp_path: Path) -> None:
    first, *others = files(tmp_path, ROWS)
    expected = guessed(first)
    assert expected.texts == [row["text"] for row in ROWS]
    for path in others:
        assert guessed(path) == expected, path.name


def test_pairs_in_every_format(tmp_path: Path) -> None:
    rows = [{"en": "one, two", "es": "uno, dos"}, {"en": "the cat", "es": 'el "gato"'}]
    pairs = [tuple(row.values()) for row in rows]
    _, *others = files(tmp_path, rows)
    for path in others:
        assert read_pairs([path]) == pairs, path.name
    (tmp_path / "bare.csv").write_text(as_csv([list(pair) for pair in pairs]))
    assert read_pairs([tmp_path / "bare.csv"]) == pairs, "without a header"
    (tmp_path / "more.csv").write_text("id,target,source\n1,uno,one\n2,dos,two\n")
    assert read_pairs([tmp_path / "more.csv"]) == [("one", "uno"), ("two", "dos")]
    (tmp_path / "nested.jsonl").write_text('{"translation": {"en": "one", "es": "uno"}}\n')
    assert read_pairs([tmp_path / "nested.jsonl"]) == [("one", "uno")]


cell = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=8)


@hypothesis.given(st.lists(st.tuples(cell, cell), min_size=1, max_size=6))
def test_what_a_spreadsheet_writes_is_read(rows: list[tuple[str, str]]) -> None:
    kept = [list(row) for row in [("first", "second"), *rows] if any(part.strip() for part in row)]
    lines = as_csv([["first", "second"], *map(list, rows)]).split("\r\n")[:-1]
    assert [cells for _, cells in read_cells(Path("t.csv"), lines)] == kept


def test_a_cell_of_several_lines_becomes_one_and_lines_are_still_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('text,label\n"one\ntwo\tthree",a\n\nfour,b\n"five\n\nsix",a\n')
    path = tmp_path / "t.csv"
    found = list(read_cells(path, read_lines(path)))
    assert found == [(1, ["text", "label"]), (2, ["one two three", "a"]), (5, ["four", "b"]), (6, ["five  six", "a"])]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("t.csv", "text,label\na,b\nc\n", "line 3: 1 column, but line 1 has 2 (comma separated)"),
        ("t.csv", 'text,label\na,b\n"c,d\ne,f\n', "line 3: not valid CSV: a quote is never closed"),
        ("t.csv", 'text,label\na,b\n"c"x,d\n', "line 3: not valid CSV"),
        ("t.csv", "text,label\na,b\n" + "c" * 200_000 + ",d\n", "line 3: not valid CSV: field larger"),
        ("t.csv", "text,label\na,b\n,d\n", "line 3: the text (column 1) is empty"),
        ("t.jsonl", '{"text": "a", "label": "b"}\n{"text": "c"}\n', "line 2: no 'label' in it"),
        ("t.jsonl", '{"text": "a", "label": "b"}\n\n{"text": "a", \n', "line 3: not valid JSON"),
        ("t.jsonl", '["a", "b"]\n', "line 1: not an object"),
        ("t.jsonl", "[" * 100_000 + "\n", "line 1: not valid JSON"),
        ("t.jsonl", '{"text": "a", "label": null}\n', "line 1: the label (column 2) is empty"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, name: str, content: str, what: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError) as caught:
        guessed(tmp_path / name)
    assert f"{name}, {what}" in str(caught.value)


def test_pairs_that_cannot_be_told_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"id": 1, "a": "one", "b": "uno"}\n')
    with pytest.raises(UserError, match="line 1: expected two columns"):
        read_pairs([tmp_path / "t.jsonl"])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_classifier_is_trained_from_it(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
    rows = [{"review": f"{word}, film {n}", "sentiment": word} for n in range(20) for word in ("good", "bad")]
    path = next(path for path in files(tmp_path, rows) if path.name == f"t.{ending}")
    small = [word for key in ("train.steps=2", "model.layers=1") for word in ("--set", key)]
    said = ask("train", "classification", path, "--out", tmp_path / "model", *small)
    assert said.code == 0, said
    assert ask("evaluate", tmp_path / "model", path).code == 0

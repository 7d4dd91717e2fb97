"""Labelled tables: the same rows whatever the file's form, and for anything else a line that says what and where."""

import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.table import Columns, Examples, TableConfig, guess_columns, guess_table, read_parts, read_table
from saccade.errors import UserError, WrongUse

DATA = Path(os.environ.get("SACCADE_DATA", "data"))
needs_tables = pytest.mark.skipif(
    not all((DATA / name).is_dir() for name in ("sst2", "cola", "rte")),
    reason="sst2, cola, rte are not in $SACCADE_DATA",
)
ROWS = [
    ("a fine film", "very good"),
    ('"so", he said', "bad"),
    ("猫が好きです", "very good"),
    ("it's\u2028odd", "悪い"),
]
CLASSES = ["bad", "very good", "悪い"]
LABELS = [1, 0, 1, 2]


def write(path: Path, text: str | bytes) -> Path:
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def table(path: Path, *rows: tuple[str, ...]) -> Path:
    return write(path, "".join("\t".join(row) + "\n" for row in rows))


def many(count: int, classes: int = 2) -> list[tuple[str, str]]:
    return [(f"text {number}", f"class {number % classes}") for number in range(count)]


def refused(paths: list[Path], columns: Columns = Columns(), classes: list[str] | None = None) -> str:  # noqa: B008
    """The complaint, which is one line."""
    with pytest.raises(UserError) as caught:
        read_table(paths, columns, classes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# What is read


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_a_table_gives_texts_labels_and_sorted_classes(tmp_path: Path, suffix: str, end: str, mark: str) -> None:
    text = mark + "".join("\t".join(row) + end for row in [("text", "label"), *ROWS])
    examples = read_table([write(tmp_path / f"t.tsv{suffix}", text)], Columns())
    assert examples == Examples([text for text, _ in ROWS], None, LABELS, CLASSES)


@given(st.permutations(["text", "second", "label", "id"]))
def test_columns_are_found_by_name_in_any_order(tmp_path_factory: pytest.TempPathFactory, order: list[str]) -> None:
    rows = [{"text": text, "second": text * 2, "label": label, "id": ""} for text, label in ROWS]
    path = table(tmp_path_factory.mktemp("t") / "t.tsv", tuple(order), *(tuple(row[c] for c in order) for row in rows))
    examples = read_table([path], Columns(second="second"))
    assert examples == Examples([text for text, _ in ROWS], [2 * text for text, _ in ROWS], LABELS, CLASSES)


def test_files_of_one_part_may_order_their_columns_differently(tmp_path: Path) -> None:
    one = table(tmp_path / "1.tsv", ("text", "label"), ("one", "a"))
    two = table(tmp_path / "2.tsv", ("label", "n", "text"), ("b", "7", "two"))
    assert read_table([one, two], Columns()) == Examples(["one", "two"], None, [0, 1], ["a", "b"])


def test_columns_without_a_header_are_numbers(tmp_path: Path) -> None:
    path = table(tmp_path / "t.tsv", *((label, text) for text, label in ROWS))
    columns = Columns.read({"text": 2, "label": 1, "header": False}, where="recipe")
    assert read_table([path], columns) == Examples([text for text, _ in ROWS], None, LABELS, CLASSES)


def test_blanks_around_a_label_make_no_other_class_and_empty_lines_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tsv", "text\tlabel\n one \ta\n\ntwo\t a\nthree\tb \n\n")
    assert read_table([path], Columns()) == Examples([" one ", "two", "three"], None, [0, 0, 1], ["a", "b"])


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    path = table(tmp_path / "t.tsv", ("text", "label"), ("x", "3.5"), ("y", "-1e2"), ("z", " 0 "))
    assert read_table([path], Columns(labels="numbers")) == Examples(["x", "y", "z"], None, [3.5, -100.0, 0.0], [])


# What is refused


def test_a_missing_tab_on_line_817(tmp_path: Path) -> None:
    rows: list[tuple[str, ...]] = [("text", "label"), *many(1000)]
    rows[816] = ("the tab between this text and its label was lost positive",)
    assert refused([table(tmp_path / "t.tsv", *rows)]) == (
        f"{tmp_path}/t.tsv, line 817: 1 column, but line 1 has 2 (tab separated); "
        "it begins 'the tab between this text and its label '…"
    )


def test_a_tab_too_many(tmp_path: Path) -> None:
    message = refused([table(tmp_path / "t.tsv", ("text", "label"), ("a", "b"), ("a", "tab", "b"))])
    assert "t.tsv, line 3: 3 columns, but line 1 has 2" in message
    assert message.endswith(r"it begins 'a\ttab\tb'")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (("", "a", "b"), "the text (column 1) is empty"),
        (("a", " ", "b"), "the second text (column 2) is empty"),
        (("a", "b", ""), "the label (column 3) is empty"),
    ],
)
def test_an_empty_cell(tmp_path: Path, row: tuple[str, ...], what: str) -> None:
    path = table(tmp_path / "t.tsv", ("text", "second", "label"), ("x", "y", "z"), row)
    assert refused([path], Columns(second="second")) == f"{path}, line 3: {what}"


@pytest.mark.parametrize("label", ["good", "nan", "-inf", "3,5", "1_000", "1e999"])
def test_a_label_that_is_no_finite_number(tmp_path: Path, label: str) -> None:
    path = table(tmp_path / "t.tsv", ("text", "label"), ("x", "1"), ("y", label))
    message = refused([path], Columns(labels="numbers"))
    assert message == f"{path}, line 3: the label {label!r} is not a finite number such as 3.5"


@pytest.mark.parametrize("labels", ["classes", "numbers"])
def test_a_single_class_or_number_cannot_be_trained_but_be_tested(tmp_path: Path, labels: str) -> None:
    path = table(tmp_path / "t.tsv", ("text", "label"), ("x", "1"), ("y", "1"))
    columns = Columns.read({"labels": labels}, where="recipe")
    assert "line 2 and on: the label is '1' in all 2 rows; training needs at least two" in refused([path], columns)
    assert len(read_table([path], columns, ["0", "1"])) == 2


def test_a_class_that_training_never_saw(tmp_path: Path) -> None:
    path = table(tmp_path / "t.tsv", ("text", "label"), ("x", "a"), ("y", "不明"))
    message = refused([path], classes=["a", "b"])
    assert message == f"{path}, line 3: the class '不明' was never seen in training; known are 'a', 'b'"


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"text": "sentence"}, "line 1: no column 'sentence' for the text; the header has 'text', 'label', 'n', 'n'"),
        ({"label": 9}, "line 1: no column '9' for the label; the header has"),
        ({"second": "text"}, "line 1: column 'text' cannot be both text and second text"),
        ({"second": "n"}, "line 1: two columns are named 'n'; give the second text by number"),
        ({"header": False}, "line 1: no column 'text' for the text; the columns are 1 to 4"),
    ],
)
def test_a_column_that_is_not_there_or_not_clear(tmp_path: Path, columns: dict[str, object], what: str) -> None:
    path = table(tmp_path / "t.tsv", ("text", "label", "n", "n"), ("x", "y", "1", "2"))
    assert what in refused([path], Columns.read(columns, where="recipe"))


@pytest.mark.parametrize(("name", "separator"), [("t.txt", "tab"), ("t.csv", "comma")])
def test_a_file_with_another_separator_is_told_what_is_missing(tmp_path: Path, name: str, separator: str) -> None:
    path = write(tmp_path / name, "text|label\na|b\n")
    assert refused([path]).endswith(f"the header has 'text|label'; there is no {separator} in it")
    with pytest.raises(UserError, match=rf"{name}, line 1: no {separator} in it"):
        guess_columns(path)


@pytest.mark.parametrize(
    ("content", "what"), [("", "no rows in it"), ("text\tlabel\n", "no rows in it but the header")]
)
def test_a_file_without_rows(tmp_path: Path, content: str, what: str) -> None:
    path = write(tmp_path / "t.tsv", content)
    assert refused([path]) == f"{path}: {what}"
    with pytest.raises(UserError, match=what):
        guess_columns(path)


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tsv", "text\tlabel\n猫\ta\n".encode("shift-jis"))
    assert "line 2: not UTF-8" in refused([path])


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ({"train": ["t"]}, "set held_out_share"),
        ({"train": ["t"], "valid": ["v"], "text": True}, "text"),
        ({"train": ["t"], "valid": ["v"], "lable": "x"}, "did you mean label"),
    ],
)
def test_a_config_that_cannot_be_meant(table: dict[str, object], what: str) -> None:
    with pytest.raises(WrongUse, match=what):
        TableConfig.read(table, where="recipe")


# Parts


def test_parts_share_the_classes_of_training(tmp_path: Path) -> None:
    table(tmp_path / "train.tsv", ("text", "label"), ("1", "b"), ("2", "a"), ("3", "c"), ("4", "a"))
    table(tmp_path / "valid.tsv", ("text", "label"), ("5", "c"))
    table(tmp_path / "test.tsv", ("text", "label"), ("6", "c"), ("1", "b"))
    parts = read_parts(TableConfig(train=["train.tsv"], valid=["valid.tsv"], test=["test.tsv"]), [tmp_path])
    assert (parts.train.labels, parts.valid.labels) == ([1, 0, 2, 0], [2])
    assert parts.test == Examples(["6", "1"], None, [2, 1], ["a", "b", "c"])
    assert "train: 4 texts of 3 classes: 'a' 2, 'b' 1, 'c' 1" in parts.told
    assert "train: a single example of 'b', 'c'; that is hardly enough to learn a class" in parts.told
    assert "test: 1 of its 2 texts are in train too, which flatters the score" in parts.told


def test_a_recipe_without_a_test_has_none(tmp_path: Path) -> None:
    table(tmp_path / "t.tsv", ("text", "label"), *many(4))
    assert read_parts(TableConfig(train=["t.tsv"], valid=["t.tsv"]), [tmp_path]).test is None


def held(folder: Path, rows: Sequence[tuple[str, ...]], **options: object) -> list[list[tuple[str, str]]]:
    """Texts and names of classes of the three parts of one file."""
    table(folder / "t.tsv", ("text", "label"), *rows)
    config = TableConfig.read({"train": ["t.tsv"], "held_out_share": 0.1, **options}, where="recipe")
    parts = read_parts(config, [folder])
    assert parts.test is not None
    return [
        [(text, part.classes[int(label)]) for text, label in zip(part.texts, part.labels, strict=True)]
        for part in (parts.train, parts.valid, parts.test)
    ]


def test_a_held_out_share_is_exact_and_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    rows = many(200)
    parts = held(tmp_path, rows)
    assert [len(part) for part in parts] == [160, 20, 20]
    assert sorted(row for part in parts for row in part) == sorted(rows)
    assert [sorted(part) for part in held(tmp_path, rows[::-1])] == [sorted(part) for part in parts]


def test_a_text_is_held_out_with_all_its_rows(tmp_path: Path) -> None:
    parts = held(tmp_path, [*many(100), *many(100)])
    texts = [{text for text, _ in part} for part in parts]
    assert [len(part) for part in parts] == [160, 20, 20]
    assert not texts[0] & texts[1] | texts[0] & texts[2] | texts[1] & texts[2]


def test_a_class_with_one_example_stays_in_training(tmp_path: Path) -> None:
    rows = [*many(100), *((f"rare {number}", f"lone {number}") for number in range(50))]
    train, valid, test = held(tmp_path, rows)
    assert {f"lone {number}" for number in range(50)} <= {label for _, label in train}
    assert len(valid) == len(test) == 15


def test_too_little_to_hold_out(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"t\.tsv: only 19 different texts; at least 20"):
        held(tmp_path, [*many(19), *many(19)])
    with pytest.raises(
        UserError, match=r"t\.tsv: 30 classes in 30 different texts; too few to hold out 3 for valid and"
    ):
        held(tmp_path, [(text, text) for text, _ in many(30)])


def test_only_the_parts_that_name_no_files_are_held_out(tmp_path: Path) -> None:
    table(tmp_path / "test.tsv", ("text", "label"), ("elsewhere", "class 1"))
    parts = held(tmp_path, many(100), test=["test.tsv"])
    assert [len(part) for part in parts] == [90, 10, 1]


# A stranger's files


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([("label", "sentence"), ("1", "a b"), ("0", "c d")], Columns(text="sentence", label="label")),
        ([("Review", "Sentiment"), ("a b", "x"), ("c d", "y")], Columns(text="Review", label="Sentiment")),
        (
            [("id", "entails", "text", "hypothesis"), ("1", "0", "a b", "c"), ("2", "1", "d", "e")],
            Columns(text="text", second="hypothesis", label="entails"),
        ),
        (
            [("question", "sentence", "label"), ("a?", "b", "yes"), ("c?", "d", "no")],
            Columns(text="question", second="sentence", label="label"),
        ),
        # The name of the labels is not known: they are where few values are.
        ([("text", "mood"), ("a", "x"), ("b", "y"), ("c", "x")], Columns(label="mood")),
        # No name is known: no header.
        (
            [("pos", "a b c"), ("neg", "d e f"), ("pos", "g h i")],
            Columns(text="2", label="1", header=False),
        ),
        (
            [("a b", "c d e", "1"), ("f g", "h i", "0"), ("j k", "l m", "0")],
            Columns(text="1", second="2", label="3", header=False),
        ),
        (
            [("id7", "c d e", "1"), ("id8", "h i", "0"), ("id9", "l m", "0")],
            Columns(text="2", label="3", header=False),
        ),
        (
            [("良い", "猫が好きです"), ("悪い", "犬は嫌いです"), ("良い", "鳥")],
            Columns(text="2", label="1", header=False),
        ),
        # Quantities.
        ([("text", "score"), ("a", "2.5"), ("b", "3.0")], Columns(label="score", labels="numbers")),
        ([("text", "score"), *((f"a{n}", str(n)) for n in range(30))], Columns(label="score", labels="numbers")),
        ([("text", "score"), ("a", "1"), ("b", "5.0")], Columns(label="score")),
        # A name that two columns have tells none of them.
        ([("text", "label", "label"), ("a", "1", "1"), ("b", "2", "1")], Columns(label="2")),
    ],
)
def test_columns_are_guessed_and_told(tmp_path: Path, rows: list[tuple[str, ...]], columns: Columns) -> None:
    path = table(tmp_path / "t.tsv", *rows)
    guessed, told = guess_columns(path)
    assert guessed == columns
    assert f"{path}: line 1 {'names the columns' if columns.header else 'is a row'}" in told[0]
    assert f"text: column {columns.text!r}" in told[1]
    assert f"label: column {columns.label!r}" in told[1]
    assert len(read_table([path], guessed)) == len(rows) - columns.header


def test_one_two_or_three_files_are_training_test_and_validation(tmp_path: Path) -> None:
    files = [table(tmp_path / name, ("text", "label"), *many(40)) for name in ("a.tsv", "b.tsv", "c.tsv")]
    a, b, c = map(str, files)
    expected = [([a], [], [], 0.1), ([a], [], [b], 0.1), ([a], [b], [c], 0.0)]
    for count, parts in enumerate(expected, 1):
        config, _ = guess_table(files[:count])
        assert (config.train, config.valid, config.test, config.held_out_share) == parts
        assert TableConfig.read(config.table(), where="written and read again") == config
        assert read_parts(config, []).test is not None
    with pytest.raises(WrongUse, match="0 files"):
        guess_table([])


# Real data


@pytest.mark.data
@needs_tables
@pytest.mark.parametrize(
    ("files", "columns", "counts"),
    [
        ("sst2/train sst2/dev sst2/test", {"text": "sentence"}, [6920, 872, 1821]),
        ("cola/train cola/dev_in_domain cola/dev_out_of_domain", {"text": "sentence"}, [8551, 527, 516]),
        ("rte/rte3_dev rte/rte2_dev rte/rte3_test", {"second": "hypothesis", "label": "entails"}, [800, 400, 800]),
    ],
)
def test_the_real_tables_are_guessed_and_whole(files: str, columns: dict[str, str], counts: list[int]) -> None:
    config, _ = guess_table([DATA / f"{name}.tsv" for name in files.split()])
    assert {name: getattr(config, name) for name in Columns.model_fields} == dict(Columns(**columns))
    parts = read_parts(config, [])
    assert parts.test is not None
    assert [len(part) for part in (parts.train, parts.valid, parts.test)] == counts
    assert parts.train.classes == ["0", "1"]

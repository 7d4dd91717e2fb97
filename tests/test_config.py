"""Configuration: records survive TOML, old keys are read, a wrong key or value is named in one line."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

import saccade.config
from saccade.config import Record, field_help, override, read_toml, to_toml
from saccade.errors import UserError, WrongUse
from saccade.tasks.fit import Fitted
from saccade.tasks.recipes import task_named
from saccade.tasks.texts import FilesConfig
from saccade.tasks.translation import TranslationRecipe
from saccade.train.loop import Outcome, TrainConfig
from tiny import ask

RECIPES = sorted((Path(saccade.config.__file__).parent / "recipes").glob("*.toml"))
TABLE: dict[str, Any] = {
    "name": "toy",
    "data": {"train": ["train.en", "train.es"], "valid": ["valid.tsv"], "source": 'Español "ñ" \\ \t\n\x7f 🙂'},
    "model": {
        "encoder": {"positions": {"kind": "learned", "length": 77}, "dropout": 0.25},
        "decoder": {"positions": {"kind": "none"}, "order": "post"},
    },
    "search": {"temperature": 0.7},
    "train": {"steps": 10, "adam": {"rate": 3e-4, "betas": [0.9, 0.999], "epsilon": 1e-12}},
}


def recipe(table: dict[str, Any]) -> TranslationRecipe:
    return TranslationRecipe.read(table, where="toy.toml")


# Records and TOML


def test_a_record_survives_toml(tmp_path: Path) -> None:
    for changes in ([], ["search.temperature=0.125"], ["train.adam.rate=1e-300"], ["model.tie=none"]):
        record = recipe(override(TABLE, changes))
        path = tmp_path / "recipe.toml"
        path.write_text(to_toml(record.table()), encoding="utf-8")
        assert recipe(read_toml(path)) == record


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_survives_toml(path: Path) -> None:
    table = read_toml(path)
    kind = task_named(table["task"]).recipe
    record = kind.read(table, where=str(path))
    assert kind.read(tomllib.loads(to_toml(record.table())), where="again") == record


def test_there_are_recipes() -> None:
    assert RECIPES, "the test above would hold for nothing"


KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
TABLES = st.recursive(
    st.dictionaries(
        KEYS, SCALARS | st.lists(SCALARS | st.dictionaries(KEYS, SCALARS, max_size=2), max_size=3), max_size=4
    ),
    lambda inner: st.dictionaries(KEYS, SCALARS | inner, max_size=4),
    max_leaves=6,
)


@settings(max_examples=30)  # recursive tables take long to draw
@given(TABLES)
def test_any_plain_table_survives_toml(table: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(table)) == table


def test_a_file_that_is_no_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("a = 1\nb = = 2\n")
    with pytest.raises(WrongUse, match=r"broken.toml: not valid TOML: .*line 2"):
        read_toml(path)
    path.write_bytes(b"a = '\xff'\n")
    with pytest.raises(WrongUse, match=r"broken.toml: not valid TOML"):
        read_toml(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.toml"):
        read_toml(tmp_path / "none.toml")


def test_records_do_not_change() -> None:
    record = TrainConfig(steps=5)
    with pytest.raises(ValidationError, match="frozen"):
        record.steps = 6


# --set


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2000", 2000),
        ("1e-3", 1e-3),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ('"quoted"', "quoted"),
        ("plain words", "plain words"),
        ("-loss", "-loss"),
        ("a=b", "a=b"),
        ("", ""),
        ("{rate = 2.0}", {"rate": 2.0}),
    ],
)
def test_a_setting_is_read_as_toml_where_it_can_be_and_as_text_otherwise(text: str, value: object) -> None:
    assert override({}, [f"train.adam.x={text}"]) == {"train": {"adam": {"x": value}}}


def test_settings_replace_one_key_and_leave_the_others_and_the_table_itself() -> None:
    before = to_toml(TABLE)
    after = override(TABLE, [" train.steps = 20 ", "train.adam.rate=1.0", "train.steps=30"])
    assert recipe(after).train.steps == 30
    assert recipe(after).train.adam.rate == 1.0
    assert recipe(after).train.adam.epsilon == 1e-12
    assert recipe(after).model == recipe(TABLE).model
    assert to_toml(TABLE) == before


@pytest.mark.parametrize("setting", ["train.steps", "=5", "  =5", "name.inner=5"])
def test_a_setting_that_cannot_be_meant_is_refused(setting: str) -> None:
    with pytest.raises(WrongUse, match="--set") as caught:
        override(TABLE, [setting])
    assert setting in str(caught.value)


def test_choosing_another_kind_drops_the_keys_of_the_old_kind() -> None:
    changed = override(TABLE, ["model.encoder.positions.kind=sinusoidal"])
    assert changed["model"]["encoder"]["positions"] == {"kind": "sinusoidal"}
    assert recipe(changed).model.encoder.positions.kind == "sinusoidal"
    assert recipe(changed).model.encoder.dropout == 0.25, "its neighbours stay"
    further = override(changed, ["model.encoder.positions.layout=halves"])
    assert recipe(further).model.encoder.positions.table() == {"kind": "sinusoidal", "layout": "halves"}


def test_choosing_the_same_kind_keeps_its_keys() -> None:
    same = override(TABLE, ["model.encoder.positions.kind=learned"])
    assert recipe(same).model.encoder.positions.table() == {"kind": "learned", "length": 77}


# Wrong keys and values


@pytest.mark.parametrize(
    ("setting", "wrong", "nearest"),
    [
        ("train.warmpu=5", "train.warmpu", "train.warmup"),
        ("trian.steps=5", "trian", "train"),
        ("train.adam.rte=5", "train.adam.rte", "train.adam.rate"),
        ("model.encoder.positions.lenght=5", "model.encoder.positions.lenght", "model.encoder.positions.length"),
        ("model.decoder.layer=5", "model.decoder.layer", "model.decoder.layers"),
        ("search.beams=5", "search.beams", "search.beam"),
    ],
)
def test_an_unknown_key_is_refused_and_the_nearest_is_named(setting: str, wrong: str, nearest: str) -> None:
    with pytest.raises(WrongUse) as caught:
        recipe(override(TABLE, [setting]))
    assert str(caught.value) == f"toy.toml: unknown key {wrong}; did you mean {nearest}?"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("train.steps=many", ["train.steps", "integer", "'many'"]),
        ("train.steps=0", ["train.steps", "greater than or equal to 1", "0"]),
        ("train.steps=2.5", ["train.steps", "2.5"]),
        ("train.steps=[1]", ["train.steps", "[1]"]),
        ("train.adam.betas=[0.9]", ["train.adam.betas"]),
        ("train.adam=fast", ["train.adam", "'fast'"]),
        ("train.schedule=cosine", ["train.schedule", "'linear'", "'cosine'"]),
        ("model.encoder.order=side", ["model.encoder.order", "'pre'", "'side'"]),
        ("model.encoder.norm=side", ["model.encoder.norm", "'layer'", "'side'"]),
        ("model.encoder.positions.kind=sinus", ["model.encoder.positions", "'sinusoidal'", "'sinus'"]),
        ("model.encoder.heads=3", ["model.encoder", "256", "3 heads"]),
        ("model.decoder.width=128", ["model", "256 and 128", "tie = 'decoder'"]),
        ("search.temperature=0", ["search.temperature", "greater than 0"]),
        ("data.train=[]", ["data.train"]),
        ("data.train=[1, 2]", ["data.train", "string", "1"]),
        ('data.train=["a", "b", "c"]', ["data.train", "at most 2", "3"]),
        ('data.train=["a.tsv", {file="b.tsv"}]', ["data.train", "dictionary", "'a.tsv'"]),
        ('data.train=[{file="a.tsv", repeat=0}]', ["data.train.repeat", "greater than 0", "0"]),
        ("data.train=[{repeat=2}]", ["data.train.file", "field required"]),
        ('data.train=[{file="a.tsv", repeats=2}]', ["unknown key data.train.repeats", "data.train.repeat?"]),
        ('data.valid=[{file="a.tsv", repeat=2}]', ["unknown key data.valid.repeat"]),
        ('data.valid=[{file="x/a.tsv"}, {file="x/b.tsv"}]', ["data", "two sources are called 'x'", "name"]),
        ("data.augment.uper=0.1", ["unknown key data.augment.uper", "data.augment.upper?"]),
        ("data.augment.upper=0.1", ["data", "all 1 copies are plain", "copies higher"]),
        ("data.augment={upper=0.6, lower=0.6}", ["data.augment", "upper + title + lower is 1.2"]),
        ("data.plain_copies=2", ["data", "plain_copies is 2", "1 copies"]),
        ('train.steps="two\\nlines"', ["train.steps", "two\\nlines"]),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_it(setting: str, parts: list[str]) -> None:
    with pytest.raises(WrongUse) as caught:
        recipe(override(TABLE, [setting]))
    message = str(caught.value)
    assert message.startswith("toy.toml: ")
    assert "\n" not in message
    assert len(message) < 250
    for part in parts:
        assert part in message


def test_sources_survive_toml_in_both_forms() -> None:
    tables = [
        'data.train=[{file="a.tsv", repeat=2.4, skip_last=3}, {file="b.en", target_file="b.es"}]',
        'data.valid=[{file="c.tsv", name="c", limit=5}]',
        'data.test=["d.en", "d.es"]',
        "data.copies=2",
        "data.augment.upper=0.1",
    ]
    record = recipe(override(TABLE, tables))
    assert recipe(tomllib.loads(to_toml(record.table()))) == record
    assert recipe(TABLE).table()["data"]["train"] == ["train.en", "train.es"]


def test_bpe_dropout_needs_bpe() -> None:
    settings = ["data.copies=2", "data.augment.bpe_dropout=0.1", "tokens.kind=characters"]
    with pytest.raises(WrongUse, match=r"bpe_dropout needs tokens\.kind = 'bpe', not 'characters'"):
        recipe(override(TABLE, settings))


def test_a_missing_key_is_named() -> None:
    with pytest.raises(WrongUse, match=r"toy\.toml: steps: field required$"):
        TrainConfig.read({}, where="toy.toml")
    with pytest.raises(WrongUse, match=r"toy\.toml: train\.steps: field required$"):
        recipe(TABLE | {"train": {"warmup": 5}})


# Keys of earlier versions

FILE = {"file": "a.txt"}
TOY: dict[str, dict[str, Any]] = {
    "translation": {"data": {"train": ["a.tsv"], "valid": ["b.tsv"]}},
    "pronunciation": {"data": {"train": ["a.tsv"], "valid": ["b.tsv"]}},
    "correction": {"data": {"train": [FILE], "valid": [FILE]}},
    "language": {"data": {"kind": "files", "train": [FILE], "valid": [FILE]}},
    "masked": {"data": {"train": [FILE], "valid": [FILE]}},
    "classification": {"data": {"train": ["a.tsv"], "valid": ["b.tsv"]}},
    "tagging": {"data": {"train": ["a.conllu"], "valid": ["b.conllu"]}},
}
OLD_KEYS = [
    ("translation", "train.judge", "select_by", "-loss"),
    ("translation", "model.encoder.hidden", "feedforward", 100),
    ("language", "model.hidden", "feedforward", 100),
    ("masked", "model.hidden", "feedforward", 100),
    ("translation", "data.longest", "longest_pair", 17),
    ("translation", "data.plain", "informal_share", 0.25),
    ("translation", "tokens.spelt", "source_bytes", True),
    ("translation", "tokens.least", "min_frequency", 7),
    ("pronunciation", "data.longest", "longest_pair", 17),
    ("correction", "data.longest", "longest_pair", 17),
    ("correction", "data.alone", "single_words", True),
    ("correction", "data.most_valid", "valid_limit", 17),
    ("correction", "data.noise.again", "repeat_probability", 0.25),
    ("correction", "data.noise.confused", "real_word_errors", 0.25),
    ("correction", "data.noise.heaviest", "max_error_rate", 0.25),
    ("correction", "known", "lexicon_min_count", 3),
    ("correction", "price", "unknown_word_cost", 2.5),
    ("language", "data.apart", "isolate_documents", False),
    ("masked", "follows", "next_sentence", True),
    ("masked", "data.apart", "isolate_documents", False),
    ("masked", "masking.masked", "mask_token_share", 0.25),
    ("classification", "hidden", "token_dropout", 0.25),
    ("classification", "most", "examples_limit", 17),
    ("classification", "data.held_out", "held_out_share", 0.25),
    ("tagging", "hidden", "token_dropout", 0.25),
    ("tagging", "most", "examples_limit", 17),
]
old_keys = pytest.mark.parametrize(("task", "old", "new", "value"), OLD_KEYS, ids=str)


def toy(task: str) -> dict[str, Any]:
    return {"task": task, "name": "toy", "train": {"steps": 5}} | TOY[task]


def setting(key: str, value: Any) -> str:
    return f"{key}={json.dumps(value)}"


@old_keys
def test_an_old_key_is_read_as_the_new_one_and_told_once(task: str, old: str, new: str, value: Any) -> None:
    kind, place = task_named(task).recipe, old.rpartition(".")[0]
    today = f"{place}.{new}" if place else new
    notes: list[str] = []
    expected = kind.read(override(toy(task), [setting(today, value)]), where="new", notes=notes)
    assert notes == []
    assert expected != kind.read(toy(task), where="neither"), "the value must differ from the default"
    table = override(toy(task), [setting(old, value)])
    assert kind.read(table, where="old", notes=notes) == expected
    assert notes == [f"{old.rpartition('.')[2]} is now called {new}"]
    assert new in to_toml(expected.table())
    assert kind.read(table, where="old") == expected, "silently, where nobody collects notes"


@old_keys
def test_old_and_new_key_together_are_refused(task: str, old: str, new: str, value: Any) -> None:
    kind, place = task_named(task).recipe, old.rpartition(".")[0]
    today = f"{place}.{new}" if place else new
    with pytest.raises(WrongUse, match=rf"both: unknown key {old}; did you mean "):
        kind.read(override(toy(task), [setting(today, value), setting(old, value)]), where="both")


@old_keys
def test_a_setting_replaces_what_the_recipe_says_under_another_name(task: str, old: str, new: str, value: Any) -> None:
    kind, place = task_named(task).recipe, old.rpartition(".")[0]
    today = f"{place}.{new}" if place else new
    default = override(kind.read(toy(task), where="default").table(), [])
    for before, after in ((old, today), (today, old)):
        inner = default
        for part in place.split(".") if place else ():
            inner = inner[part]
        table = override(toy(task), [setting(before, inner[new])])
        expected = kind.read(override(toy(task), [setting(today, value)]), where="new")
        assert kind.read(override(table, [setting(after, value)], kind), where="set") == expected


def test_every_renamed_key_is_tested() -> None:
    tested = {(old.rpartition(".")[2], new) for _, old, new, _ in OLD_KEYS} | {("hold", "held_out_share")}
    modules = ("saccade.tasks.", "saccade.data.", "saccade.train.", "saccade.tokens.", "saccade.arch.")
    records = {record for task in TOY for record in records_in(task_named(task).recipe)}
    renamed = {pair for record in records if record.__module__.startswith(modules) for pair in record.renamed.items()}
    assert renamed == tested


def records_in(record: type[Record]) -> Iterator[type[Record]]:
    yield record
    for field in record.model_fields.values():
        for inner in saccade.config._records_in(field.annotation):
            if issubclass(inner, Record):
                yield from records_in(inner)


def test_hold_is_read_as_the_share_that_is_held_out() -> None:
    notes: list[str] = []
    data = FilesConfig.read({"train": [FILE], "hold": 0.25}, where="old", notes=notes)
    assert data == FilesConfig.read({"train": [FILE], "held_out_share": 0.25}, where="new")
    assert notes == ["hold is now called held_out_share"]


def test_train_tells_the_new_names_in_one_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Any] = []

    def fit(_: Any, settled: Any, *__: Any, **___: Any) -> Fitted:
        trained.append(settled)
        return Fitted(Outcome(True, 0, {}, "nothing", 0.0), [])

    monkeypatch.setattr("saccade.tasks.training.fit", fit)
    path = tmp_path / "mine.toml"
    path.write_text(to_toml(override(toy("translation"), ["train.judge=-loss", "data.longest=9", "tokens.least=3"])))
    said = ask("train", str(path), "--quiet", "--set", "tokens.min_frequency=4", "--out", str(tmp_path / "out"))
    assert said.code == 0
    assert said.err.splitlines() == [
        f"saccade: {path}: judge is now called select_by",
        f"saccade: {path}: longest is now called longest_pair",
        f"saccade: {path}: least is now called min_frequency",
    ]
    assert (trained[0].train.select_by, trained[0].data.longest_pair, trained[0].tokens.min_frequency) == (
        "-loss",
        9,
        4,
    )


# Help


def leaves(record: type[BaseModel], path: str = "") -> Iterator[tuple[str, str | None]]:
    """Every field a person can set, with its help; a record within a record is asked for its own fields."""
    for name, field in record.model_fields.items():
        records = list(saccade.config._records_in(field.annotation))
        for part in records:
            yield from leaves(part, f"{path}{name}.")
        # A field with one possible value is the record's own name: there is nothing to help with.
        fixed = get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
        if not records and not fixed:
            yield path + name, field_help(record).get(name)


def test_every_field_has_a_line_of_help() -> None:
    found = dict(leaves(TranslationRecipe))
    assert {"train.adam.rate", "model.encoder.positions.length", "search.beam"} <= found.keys()
    assert [name for name, help_text in found.items() if not help_text] == []

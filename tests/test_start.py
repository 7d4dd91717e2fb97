"""What a training on own texts starts from: the bundled English encoder, if they are English and none is named."""

from pathlib import Path

import pytest

from saccade.config import read_toml
from saccade.pipelines.load import ZOO, bundled_models, model_path
from saccade.tasks.start import ENGLISH_STARTS, automatic_start, english_start
from test_fit import write_rows
from tiny import ask

ENGLISH = ["Please wake me up at nine on Friday morning", "the film was far too long, and nobody laughed at all"]
SPANISH = ["despiértame a las nueve de la mañana el viernes", "la película era demasiado larga y nadie se rió"]
FRENCH = ["réveille-moi à neuf heures vendredi matin", "le film était beaucoup trop long et personne n'a ri"]
RUSSIAN = ["разбуди меня в девять утра в пятницу", "фильм был слишком длинным"]
QUICK = ["--set", "train.steps=2", "--set", "train.validate_every=2", "--set", "trials=[]", "--set", "linear=none"]


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)


def test_english_is_told_from_other_languages() -> None:
    start, why = automatic_start(ENGLISH)
    assert start == english_start()
    assert "look English" in why
    assert "\n" not in why
    for texts in (SPANISH, FRENCH, RUSSIAN, ["1234 5678", "…"]):
        start, why = automatic_start(texts)
        assert start == ""
        assert "from scratch" in why


def test_the_better_encoder_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert english_start() in ENGLISH_STARTS
    both = [ZOO / "bert-mini", ZOO / "bert-small"]
    monkeypatch.setattr("saccade.tasks.start.bundled_models", lambda: both)
    assert english_start() == "bert-small"
    monkeypatch.setattr("saccade.tasks.start.bundled_models", lambda: both[:1])
    assert english_start() == "bert-mini"
    monkeypatch.setattr("saccade.tasks.start.bundled_models", list)
    assert automatic_start(ENGLISH)[0] == ""
    assert model_path(bundled_models()[0].name)


def test_a_table_in_english_starts_from_it_and_says_so(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.tsv")
    said = ask("train", "classification", rows, "--out", tmp_path / "auto", *QUICK)
    assert said.code == 0, said.err
    assert said.err.splitlines()[0].startswith("the texts look English")
    assert read_toml(tmp_path / "auto/recipe.toml")["init"] == english_start()
    said = ask("train", "classification", rows, "--from", "none", "--out", tmp_path / "none", *QUICK)
    assert said.code == 0, said.err
    assert "from scratch" in said.err
    assert not read_toml(tmp_path / "none/recipe.toml").get("init")


def test_sizes_of_ones_own_go_with_no_start(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.tsv")
    small = [
        "--set",
        "model.layers=1",
        "--set",
        "model.width=16",
        "--set",
        "model.heads=2",
        "--set",
        "tokens.vocabulary=300",
    ]
    said = ask("train", "classification", rows, "--out", tmp_path / "own", *small, *QUICK)
    assert said.code == 0, said.err
    assert "look English" not in said.err
    assert read_toml(tmp_path / "own/recipe.toml")["model"]["width"] == 16


def test_tagging_starts_from_it_too(tmp_path: Path) -> None:
    lines = [
        f"# text = {text}\n"
        + "".join(f"{n}\t{word}\t_\tX{n % 2}" + "\t_" * 6 + "\n" for n, word in enumerate(text.split(), 1))
        for text in ENGLISH * 3
    ]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.conllu").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = [tmp_path / "train.conllu", tmp_path / "dev.conllu"]
    said = ask("train", "tagging", *files, "--out", tmp_path / "tagger", *QUICK[:6])
    assert said.code == 0, said.err
    assert read_toml(tmp_path / "tagger/recipe.toml")["init"] == english_start()

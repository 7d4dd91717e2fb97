"""A translation starts from another translator: with its vocabulary, or with a vocabulary of its own."""

from pathlib import Path

import numpy as np
import pytest

from saccade.config import read_toml
from saccade.folder import read_folder
from tiny import ask, insist_one_line

SIZES = [
    "model.encoder.layers=1",
    "model.encoder.width=16",
    "model.encoder.heads=2",
    "model.encoder.feedforward=32",
    "model.decoder.layers=1",
    "model.decoder.width=16",
    "model.decoder.heads=2",
    "model.decoder.feedforward=32",
    "tokens.vocabulary=300",
]
SHORT = ["train.steps=1", "train.validate_every=1", "train.warmup=1", "train.adam.rate=1e-9"]


def settings(*values: str) -> list[str]:
    return [word for value in values for word in ("--set", value)]


def write_pairs(path: Path, seed: int, letters: str) -> Path:
    random = np.random.default_rng(seed)
    words = ["".join(random.choice(list(letters), 4)) for _ in range(40)]
    lines = [" ".join(random.choice(words, 3)) for _ in range(60)]
    path.write_text("".join(f"{line}\t{line.upper()}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("first")
    pairs = write_pairs(room / "pairs.tsv", 0, "abcdef")
    said = ask("train", "translation", pairs, "--out", room / "run", *settings(*SIZES, *SHORT, "storage=float32"))
    assert said.code == 0, said.err
    return room / "run"


def test_all_weights_and_the_vocabulary_are_those_of_the_start(first: Path, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv", 1, "abcdef")
    more = settings(*SHORT, "storage=float32", "dropout=0.25")
    said = ask("train", "translation", pairs, "--from", first, "--out", tmp_path / "run", *more)
    assert said.code == 0, said.err
    assert f"starts from {first}" in said.err
    assert "layers" not in said.err  # its sizes are not those that the number of pairs would choose
    assert (tmp_path / "run/tokenizer.json").read_bytes() == (first / "tokenizer.json").read_bytes()
    model = read_folder(tmp_path / "run").config.model
    before = read_folder(first).config.model
    assert (model["encoder"]["width"], model["encoder"]["dropout"]) == (before["encoder"]["width"], 0.25)
    old, new = weights_of(first), weights_of(tmp_path / "run")
    assert old.keys() == new.keys()
    for name, weight in old.items():
        np.testing.assert_allclose(new[name], weight, atol=1e-6, err_msg=name)


def test_with_a_vocabulary_of_its_own_shared_pieces_keep_their_vectors(first: Path, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv", 2, "defghi")
    own = settings(*SHORT, "storage=float32", "own_vocabulary=true", "tokens.vocabulary=310")
    said = ask("train", "translation", pairs, "--from", first, "--out", tmp_path / "run", *own)
    assert said.code == 0, said.err
    vocabularies = [read_folder(each).tokenizer for each in (first, tmp_path / "run")]
    assert vocabularies[0] != vocabularies[1]
    old, new = weights_of(first), weights_of(tmp_path / "run")
    name = next(name for name, weight in old.items() if len(weight) >= 290)
    ids = [vocabulary_ids(text) for text in vocabularies]
    both = sorted(ids[0].keys() & ids[1].keys())
    assert 256 <= len(both) < min(map(len, ids))
    rows_old, rows_new = ([vocabulary[piece] for piece in both] for vocabulary in ids)
    np.testing.assert_allclose(new[name][rows_new], old[name][rows_old], atol=1e-6)
    inside = next(name for name in old if "encoder" in name and old[name].ndim == 2 and len(old[name]) < 290)
    np.testing.assert_allclose(new[inside], old[inside], atol=1e-6)


def test_a_recipe_keeps_its_own_vocabulary_where_that_is_asked_for(first: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        (first / "recipe.toml").read_text(encoding="utf-8").replace("vocabulary = 300", "vocabulary = 305")
    )
    for own in (True, False):
        run = tmp_path / str(own)
        said = ask("train", recipe, "--from", first, "--out", run, *settings(*SHORT, f"own_vocabulary={own}".lower()))
        assert said.code == 0, said.err
        assert (read_toml(run / "recipe.toml")["tokens"]["vocabulary"] == 305) is own


def weights_of(folder: Path) -> dict[str, np.ndarray]:
    return {name: np.array(weight) for name, weight in read_folder(folder).weights.items()}


def vocabulary_ids(text: str) -> dict[str, int]:
    from tokenizers import Tokenizer

    found: dict[str, int] = Tokenizer.from_str(text).get_vocab()
    return found


def test_what_does_not_fit_is_told_in_a_line(first: Path, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv", 3, "abc")
    said = ask("train", "translation", pairs, "--from", "bert-mini", "--out", tmp_path / "a", *settings(*SHORT))
    assert said.code == 1
    assert "bert-mini: init needs a model that reads and writes text" in said.err.splitlines()[-1]
    said = ask("train", "translation", pairs, "--out", tmp_path / "b", *settings("own_vocabulary=true"))
    insist_one_line(said, 2, ["own_vocabulary", "init"])
    assert not read_toml(first / "recipe.toml").get("init")

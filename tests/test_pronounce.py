"""Pronouncing: signs and phonemes, texts cut into words, and a toy dictionary that is learnt, asked and scored."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.phonemes import IPA, as_ipa, as_phonemes, as_signs, spelling
from saccade.pipelines.pronouncer import pieces
from tiny import ask


def test_phonemes_and_signs_are_one_to_one() -> None:
    every = " ".join(IPA)
    assert len(IPA) == 39
    assert len(as_signs(every)) == 39
    assert as_phonemes(as_signs(every)) == every
    assert as_ipa("K AE T") == "kæt"
    assert not set(as_signs(every)) & set(spelling("abcdefghijklmnopqrstuvwxyz'"))


@pytest.mark.parametrize(
    ("word", "spelt"),
    [("Café", "cafe"), ("DON’T", "don't"), ("naïve", "naive"), ("日本", ""), ("42", ""), ("X-ray", "xray")],
)
def test_words_are_spelt_as_the_dictionary_does(word: str, spelt: str) -> None:
    assert spelling(word) == spelt


@given(st.text(max_size=80))
def test_nothing_of_a_text_is_lost(text: str) -> None:
    assert "".join(pieces(text)) == "".join(text.split())


TOY = """
task = "pronunciation"
name = "toy"
[data]
train = ["{file}"]
valid = ["{valid}"]
test = ["{valid}"]
[model.encoder]
layers = 1
width = 32
heads = 2
feedforward = 64
[model.decoder]
layers = 1
width = 32
heads = 2
feedforward = 64
[train]
steps = 150
batch_tokens = 512
warmup = 10
validate_every = 75
select_by = "-wer"
adam = {{rate = 5e-3}}
muon = 0.95
"""
SOUNDS = {"b": "B", "d": "D", "k": "K", "m": "M", "a": "AE", "i": "IH", "o": "AA"}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("pronounce")
    words = [a + b + c for a in "bdkm" for b in "aio" for c in "bdkm"]
    lines = [f"{word.upper()}\t{' '.join(SOUNDS[letter] for letter in word)}" for word in words]
    (room / "train.tsv").write_text("\n".join(lines) + "\n")
    (room / "valid.tsv").write_text("\n".join(lines[::7]) + "\nBAB\tB AA B\n")
    (room / "toy.toml").write_text(TOY.format(file=room / "train.tsv", valid=room / "valid.tsv"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
        said = ask("train", room / "toy.toml", "--out", room / "toy")
    assert said.code == 0, said.err
    assert "41 training pairs" in said.err, "words that decide are not trained on"
    return room / "toy"


def test_words_and_texts_are_pronounced(toy: Path) -> None:
    assert ask("pronounce", "Dik", "--model", toy).lines == ["D IH K"]
    assert ask("pronounce", "dik", "--ipa", "--model", toy).lines == ["dɪk"]
    said = ask("pronounce", "--model", toy, stdin="Dik, mob 42 👍!\n\n日本\r\n".encode())
    assert said.code == 0
    assert said.out == "D IH K / , / M AA B / 42 / 👍!\n\n日本\r\n"


def test_several_ways_to_say_a_word_are_shown(toy: Path) -> None:
    lines = ask("pronounce", "kam", "--best", "3", "--model", toy).lines
    assert len(lines) == 3
    assert lines[0].endswith("\tK AE M")
    found = json.loads(ask("pronounce", "kam", "--best", "2", "--format", "json", "--model", toy).out)
    assert found["ipa"] == "kæm"
    assert len(found["best"]) == 2


def test_the_nearest_of_several_accepted_counts(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("bam\tZ Z Z\nbam\tB AE M\nkod\tK AA M\n")
    said = ask("evaluate", toy, tmp_path / "test.tsv")
    assert said.code == 0, said.err
    first, second = said.lines
    assert first.startswith("WER 50.00")
    assert second.startswith("PER 16.67")


def test_looks_are_letters_beside_phonemes(toy: Path, tmp_path: Path) -> None:
    said = ask("pronounce", "dik", "--look", tmp_path / "look.png", "--model", toy)
    assert said.code == 0, said.err
    assert (tmp_path / "look.png").read_bytes()[:4] == b"\x89PNG"


def test_a_dictionary_line_that_is_wrong_is_named(toy: Path, tmp_path: Path) -> None:
    for line, told in (("cat", "line 2: expected a word, tab"), ("cat\tK AE QQ", "line 2: 'QQ' is no phoneme")):
        (tmp_path / "bad.tsv").write_text(f"bam\tB AE M\n{line}\n")
        said = ask("evaluate", toy, tmp_path / "bad.tsv")
        assert said.code == 1
        assert told in said.err

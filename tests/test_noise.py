"""Misspelt sentences: what is left alone, what never is written, the same again from the same generator."""

import hashlib
import os
import string
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.misspell import Misspelling, distance, held_out, read_misspellings
from saccade.data.noise import Noise, NoiseConfig, confusions, count_words, find_names, find_words
from saccade.data.text import read_pairs

SPELLING_TEST = "94905d966b69c9f93475f5db501bf2950d8e8c7ea75149190c73a316408d2099"
ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("SACCADE_DATA", "data"))
needs_data = pytest.mark.skipif(
    not all((DATA / name).exists() for name in ("spelling/norvig.tsv", "tatoeba/eng-fra.test.tsv.gz")),
    reason="the lists and tatoeba are not in $SACCADE_DATA",
)
LISTED = [
    Misspelling(wrong, right, 1.0)
    for wrong, right in [
        *[("thier", "their"), ("beleive", "believe"), ("recieve", "receive"), ("untill", "until")],
        *[
            ("form", "from"),
            ("seperate", "separate"),
            ("occured", "occurred"),
            ("wich", "which"),
            ("becuse", "because"),
        ],
        # Held out:
        *[("thsi", "this"), ("waht", "what"), ("liek", "like"), ("thge", "the")],
    ]
]
# Letters lost, doubled and swapped in words that are not in the sentences here: slips for all letters.
SLIPS = [
    Misspelling(word[:place] + wrong(word[place : place + 2]) + word[place + 2 :], word, 1.0)
    for word in ("quickest", "browning", "jumping", "foxhole", "lovely", "wizards", "hampered", "about", "we'll")
    for place in range(len(word) - 1)
    for wrong in (lambda two: two[1], lambda two: two[0] + two, lambda two: two[::-1])
]
MISSPELLINGS = LISTED + SLIPS
HEAVY = NoiseConfig(clean=0.0, max_error_rate=1.0, lost_space=0.0, added_space=0.0)
SENTENCE = "their friends believe that this is what they receive from us because we like them"


def noise(config: NoiseConfig = HEAVY, *, held: bool = False, names: Iterable[str] = ()) -> Noise:
    return Noise.of(config, MISSPELLINGS, held=held, names=names)


NOISE = noise()


def noisy(noise: Noise, sentence: str, count: int = 200) -> list[str]:
    return [noise(sentence, np.random.default_rng([7, number])) for number in range(count)]


# What is written


def test_the_same_generator_writes_the_same() -> None:
    assert noisy(NOISE, SENTENCE) == noisy(noise(), SENTENCE)
    assert len(set(noisy(NOISE, SENTENCE))) > 150


def test_state_of_the_generator_is_all_that_counts() -> None:
    first = np.random.default_rng(1)
    NOISE(SENTENCE, first)
    again = np.random.default_rng(0)
    again.bit_generator.state = first.bit_generator.state
    NOISE("something else in between", np.random.default_rng(5))
    assert NOISE(SENTENCE, first) == NOISE(SENTENCE, again)


@pytest.mark.parametrize("held", [False, True])
def test_nothing_of_the_other_part_is_ever_written(held: bool) -> None:
    part = noise(held=held)
    assert {word for word in part.known if word in SENTENCE.split()} == {
        right for wrong, right, _ in LISTED if held_out(wrong) == held and right in SENTENCE.split()
    }
    written = {
        word
        for text in noisy(part, SENTENCE, 400)
        for word, right in zip(text.split(), SENTENCE.split(), strict=True)
        if word != right
    }
    assert len(written) > 80
    assert {word for word in written if held_out(word) != held} == set()


def test_known_misspellings_are_written_as_often_as_asked() -> None:
    for listed in (0.0, 0.5, 1.0):
        part = noise(HEAVY.model_copy(update={"listed": listed}))
        wrong = [text for text in noisy(part, "believe", 1500) if text != "believe"]
        share = sum(text == "beleive" for text in wrong) / len(wrong)
        # A slip may write it as well.
        assert listed - 0.06 < share < listed + (1 - listed) * 0.25 + 0.01


def test_a_real_word_may_come_out() -> None:
    assert "form" in noisy(NOISE, "from")


COUNTS = count_words(["from form to too two on of or it is in, a I the then them", "from of of of"])


@pytest.mark.parametrize("held", [False, True])
def test_words_one_slip_apart_are_confused_if_they_are_of_the_right_part(held: bool) -> None:
    found = {right: set(choices.strings) for right, choices in confusions(COUNTS, held=held).items()}
    expected = {
        right: {wrong for wrong in COUNTS if wrong not in ("a", "i") and distance(right, wrong) == 1}
        for right in COUNTS
        if len(right) > 1
    }
    parts = {right: {wrong for wrong in wrongs if held_out(wrong) == held} for right, wrongs in expected.items()}
    assert found == {right: wrongs for right, wrongs in parts.items() if wrongs}


def test_a_word_becomes_another_as_often_as_asked() -> None:
    config = HEAVY.model_copy(update={"real_word_errors": 0.5})
    making = Noise.of(config, MISSPELLINGS, words=COUNTS)
    written = [making.misspell("From", np.random.default_rng([1, n])) for n in range(300)]
    assert set(written) >= {"Form"}
    # The list has "form" too, which half of the rest is.
    assert 0.4 < sum(word == "Form" for word in written) / 300 < 0.95
    assert all(not held_out(word) for word in written)


def test_slips_may_follow_slips() -> None:
    far = []
    for again in (0.0, 0.7):
        making = Noise.of(HEAVY.model_copy(update={"repeat_probability": again}), MISSPELLINGS)
        written = [making.misspell("wonderful", np.random.default_rng([2, n])) for n in range(200)]
        far.append(sum(distance("wonderful", word) for word in written) / 200)
    assert far[1] > far[0] + 0.5


def test_sentences_are_clean_lightly_and_heavily_misspelt() -> None:
    words = SENTENCE.split()
    texts = noisy(noise(NoiseConfig(clean=0.3, max_error_rate=0.8)), SENTENCE, 2000)
    assert 0.3 < sum(text == SENTENCE for text in texts) / len(texts) < 0.45
    same = [text.split() for text in texts if len(text.split()) == len(words)]
    shares = [np.mean([a != b for a, b in zip(text, words, strict=True)]) for text in same]
    assert max(shares) > 0.7
    assert np.mean(shares) == pytest.approx(0.7 * 0.4 * 0.87, abs=0.04)  # short words are misspelt less often


def test_short_words_are_misspelt_less_often() -> None:
    def share(word: str) -> float:
        return float(np.mean([text != word for text in noisy(NOISE, word, 1000)]))

    assert share("a") == share("I") == 0
    assert share("them") == pytest.approx(0.5, abs=0.05)
    assert share("us") == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("word", ["Because", "BECAUSE", "because"])
def test_case_is_kept(word: str) -> None:
    texts = noisy(noise(HEAVY.model_copy(update={"names": 1.0})), word)
    assert len(set(texts)) > 12
    assert all(
        (text.isupper(), text.istitle()) == (word.isupper(), word.istitle()) for text in texts if "'" not in text
    )


def test_apostrophes_keep_their_kind() -> None:
    part = Noise.of(HEAVY, [Misspelling("dont't", "don't", 1.0), *MISSPELLINGS], held=True)
    assert "dont’t" in noisy(part, "don’t")
    assert all("'" not in text for text in noisy(part, "don’t"))


# What is left alone


@pytest.mark.parametrize(
    "chunk",
    [
        *[
            "https://example.org/believe",
            "believe@example.org",
            "www.example.org",
            "believe.py",
            "3rd",
            "2,000",
            "e.g.",
        ],
        *[
            "snake_case",
            "camelCase",
            "believe()",
            "f(believe)",
            "--believe",
            "`believe`",
            "#believe",
            "C:\\believe",
            "x=y",
        ],
        *["U.S.", "McDonald", "<believe>", "and/or", "…", "--", "¿?"],
    ],
)
def test_what_is_no_plain_word_is_never_touched(chunk: str) -> None:
    part = noise(NoiseConfig(clean=0, max_error_rate=1, names=1, lost_space=0.3, added_space=0.3))
    for text in noisy(part, f"because {chunk} because"):
        assert f" {chunk} " in text


def test_names_and_capitals_are_left_alone_mostly() -> None:
    sentence = "We told Believe and BECAUSE it."
    touched = np.mean(
        [f" {word} " not in f" {text} " for text in noisy(NOISE, sentence, 2000) for word in ("Believe", "BECAUSE")]
    )
    assert 0.003 < touched < 0.02  # 0.02 of what other words are, which is a half
    assert all("Believe" in text for text in noisy(noise(HEAVY.model_copy(update={"names": 0.0})), "Then Believe and"))


def test_a_capital_that_the_sentence_gives_is_no_name() -> None:
    for sentence in ("Because.", "Go! Because.", "“Because.”"):
        assert np.mean([("Because" not in text) for text in noisy(NOISE, sentence)]) > 0.3
    assert sum("Because" not in text for text in noisy(NOISE, "Mr. Because")) < 10
    assert sum(not text.endswith(" I'll") for text in noisy(NOISE, "Then I'll")) > 40


def test_names_are_learnt_from_the_middle_of_sentences() -> None:
    sentences = [
        "Tom saw Mary.",
        "Mary saw Tom.",
        "Will Tom come?",
        "He will.",
        "I think I'm Will.",
        "It will, will it?",
    ]
    names = find_names(sentences)
    assert names == {"tom", "mary"}
    assert all(
        text.startswith("Tom ")
        for text in noisy(noise(HEAVY.model_copy(update={"names": 0.0}), names=names), "Tom saw")
    )
    assert not all(text.startswith("Tom ") for text in noisy(NOISE, "Tom saw"))


@given(st.text(st.sampled_from("abThe .,!?¡\"“”()-–—;:\t1@/é日'’"), max_size=40), st.integers(0, 1000))
def test_punctuation_and_spaces_are_never_touched(sentence: str, seed: int) -> None:
    marks = set(string.punctuation + string.whitespace + "¡“”–—") - {"'"}
    text = NOISE(sentence, np.random.default_rng(seed))
    assert [mark for mark in text if mark in marks] == [mark for mark in sentence if mark in marks]
    assert [mark for mark in text if mark.isdigit()] == [mark for mark in sentence if mark.isdigit()]


def test_spaces_are_lost_and_added_as_often_as_asked() -> None:
    config = NoiseConfig(clean=0, max_error_rate=0, lost_space=0.1, added_space=0)
    sentence = "because of that, Tom Smith said, we believe them"
    texts = noisy(noise(config), sentence, 2000)
    joined = [text for text in texts if text != sentence]
    # Three gaps are between plain words; never is one lost beside a comma or a name.
    assert len(joined) / len(texts) == pytest.approx(1 - 0.9**4, abs=0.05)
    assert all(text.replace(" ", "") == sentence.replace(" ", "") for text in texts)
    assert all(", Tom Smith said, " in text for text in texts)
    torn = noisy(noise(config.model_copy(update={"lost_space": 0, "added_space": 0.2})), "because", 1000)
    assert np.mean([" " in text.strip() for text in torn]) == pytest.approx(0.2, abs=0.04)
    assert {text.replace(" ", "") for text in torn} == {"because"}


def test_words_are_found_with_what_begins_a_sentence() -> None:
    sentence = "Well, don't: Go to v1.2 now! “Yes” she said."
    found = [(sentence[start:stop], opens) for start, stop, opens in find_words(sentence)]
    assert [word for word, _ in found] == ["Well", "don't", "Go", "to", "now", "Yes", "she", "said"]
    assert [word for word, opens in found if opens] == ["Well", "Go", "Yes", "she"]


# The real lists


@pytest.mark.data
@needs_data
def test_real_sentences_are_misspelt_quickly_and_never_by_what_is_held_out() -> None:
    sentences = list(dict.fromkeys(source for source, _ in read_pairs([DATA / "tatoeba/eng-fra.test.tsv.gz"])))
    codespell = read_misspellings([DATA / "spelling/codespell.tsv.gz"])
    config = NoiseConfig(lost_space=0, added_space=0)
    part = Noise.of(config, codespell, names=find_names(sentences))
    random = np.random.default_rng(0)
    began = process_time()
    texts = [part(sentence, random) for sentence in sentences * 4]
    # A minute for 100,000 on one core; a tenth of that is usual.
    assert process_time() - began < 60 * len(texts) / 100_000
    pairs = [
        (misspelt.strip(string.punctuation), right.strip(string.punctuation))
        for text, sentence in zip(texts, sentences * 4, strict=True)
        for misspelt, right in zip(text.split(), sentence.split(), strict=True)
    ]
    wrong = [(misspelt, right) for misspelt, right in pairs if misspelt != right and "-" not in right]
    assert 0.1 < len(wrong) / len(pairs) < 0.25
    # A trailing apostrophe is lost to strip(); nothing else may be held out.
    assert [pair for pair in wrong if held_out(pair[0]) and held_out(f"{pair[0]}'")] == []


@pytest.mark.data
@needs_data
def test_the_spelling_test_is_made_of_what_is_held_out(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.spelling_test", "--data", str(DATA.resolve())]
    command += ["--out", str(tmp_path / "test.tsv"), "--isolated", str(tmp_path / "isolated.tsv")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    print(done.stdout)
    # Pinned: figures can only be compared on the same test.
    assert hashlib.sha256((tmp_path / "test.tsv").read_bytes()).hexdigest() == SPELLING_TEST
    rows = read_pairs([tmp_path / "test.tsv"])
    assert len(rows) == len({clean for _, clean in rows}) == 2000
    words = [pair for noisy, clean in rows for pair in zip(noisy.split(), clean.split(), strict=True)]
    wrong = [misspelt for misspelt, right in words if misspelt != right]
    share = len(wrong) / len(words)
    assert 0.15 <= share <= 0.25
    assert f"misspelt: {share:.4f}" in done.stdout
    assert f"doing nothing: word accuracy {1 - share:.4f}" in done.stdout
    bare = [misspelt.strip(string.punctuation.replace("'", "") + "“”") for misspelt in wrong]
    held = [held_out(word) or held_out(word.strip("'")) for word in bare if "-" not in word and "." not in word]
    assert sum(held) / len(held) > 0.995  # all but words in unusual punctuation
    isolated = read_pairs([tmp_path / "isolated.tsv"])
    assert len(isolated) > 4000
    assert all(held_out(misspelling) for misspelling, _ in isolated)

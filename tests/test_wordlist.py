"""Words that are known to be right, and words that are typed for others."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from saccade.data.confusions import CONFUSED, confused_with
from saccade.data.documents import TextFile, read_documents
from saccade.data.lexicon import Lexicon
from saccade.data.misspell import Misspelling
from saccade.data.noise import Noise, NoiseConfig
from saccade.data.wordlist import Dictionaries, KnownWords
from saccade.errors import UserError

LEVELS = [("cat", 10), ("form", 10), ("goiter", 70), ("wile", 80), ("Mae", 50), ("May", 10), ("may", 10), ("can't", 20)]
FREQUENCIES = [
    ("alot", 1e-5),
    ("blockchain", 1e-6),
    ("mae", 1e-6),
    ("xq", 5e-7),
    ("rarely-used", 1e-5),
    ("seldom", 1e-9),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in (("levels.tsv.gz", LEVELS), ("frequencies.tsv.gz", FREQUENCIES)):
        lines = "".join(f"{word}\t{value}\tmore\n" for word, value in rows)
        (tmp_path / name).write_bytes(gzip.compress(lines.encode()))
    return tmp_path


FILES = Dictionaries(levels="levels.tsv.gz", frequencies="frequencies.tsv.gz")


def test_words_are_known_by_level_or_frequency_and_misspellings_are_not(folder: Path) -> None:
    known = KnownWords.read(FILES, [folder], {"alot", "form", "goiter"})
    assert known.words == {"cat", "form", "Mae", "may", "can't", "blockchain"}
    assert known.wrong == {"alot", "goiter"}  # not form, which is typed for from, but is a common word


def test_names_are_known_with_their_capitals_only(folder: Path) -> None:
    lexicon = Lexicon(["cat"], rare=KnownWords.read(FILES, [folder], set()).words)
    assert lexicon.knows("Mae", opens=True)
    assert lexicon.knows("Mae’s", opens=True)
    assert not lexicon.knows("mae", opens=False)
    assert lexicon.knows("GOITER", opens=True)
    assert not lexicon.has("goiter")  # known, but never written for another


def test_a_list_that_is_none_is_one_clear_line(folder: Path) -> None:
    (folder / "levels.tsv.gz").write_bytes(gzip.compress(b"cat\tten\n"))
    with pytest.raises(UserError, match="line 1: not a word, a tab and a number"):
        KnownWords.read(FILES, [folder], set())


def test_a_lost_space_is_found() -> None:
    lexicon = Lexicon(["a", "i", "lot", "alone", "al", "one", "o", "t"])
    assert lexicon.halves("alot") == ["a lot"]
    assert lexicon.halves("alone") == ["al one"]
    assert lexicon.halves("") == []


def test_words_of_a_set_stand_for_one_another() -> None:
    assert set(CONFUSED["their"]) == {"there", "they're"}
    assert all(word in CONFUSED[other] for word, others in CONFUSED.items() for other in others)
    assert confused_with("have", "would") == ("of",)
    assert confused_with("have", "i") == ()
    assert "have" not in confused_with("of", "would")


def test_noise_of_confusion_sets_stays_within_them() -> None:
    config = NoiseConfig(clean=0.0, max_error_rate=0.0, confusion_sets=1.0, lost_space=0, added_space=0)
    noise = Noise.of(config, [Misspelling("recieve", "receive", 1.0), Misspelling("teh", "the", 1.0)])
    typed = noise("Their cat might have slept.", np.random.default_rng(0))
    first, rest = typed.split(" ", 1)
    assert first in ("There", "They're")
    assert rest == "cat might of slept."


def test_prose_is_read_sentence_by_sentence_and_some_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One is here. Two is there.\n\nThree. Four and Dr. Who came.\n", "utf-8")
    assert read_documents([TextFile(file="a.txt", documents="prose")], [tmp_path]) == [
        "One is here.",
        "Two is there.",
        "Three.",
        "Four and Dr. Who came.",
    ]
    assert read_documents([TextFile(file="a.txt", documents="prose", every=3)], [tmp_path]) == [
        "One is here.",
        "Four and Dr. Who came.",
    ]

"""A list of words: what it knows, and what is near."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.lexicon import SHORT, Lexicon
from saccade.data.misspell import distance

WORDS = ["contain", "container", "cat", "cats", "don't", "été", "the", "then"]
LEXICON = Lexicon(WORDS)


@pytest.mark.parametrize("word", ["cat", "Cat", "CATS", "cat's", "cat’s", "Don’t", "été"])
def test_words_are_known_in_any_case_and_with_any_apostrophe(word: str) -> None:
    assert LEXICON.has(word)


@pytest.mark.parametrize("word", ["kat", "cats'", "s", "ca", "catss", "don"])
def test_others_are_not(word: str) -> None:
    assert not LEXICON.has(word)


def test_names_and_single_letters_may_stand_but_a_capital_that_opens_a_text_makes_no_name() -> None:
    assert LEXICON.knows("Katrin", opens=False)
    assert LEXICON.knows("x", opens=True)
    assert not LEXICON.knows("Katrin", opens=True)
    assert not LEXICON.knows("katrin", opens=False)


def test_the_nearest_come_first() -> None:
    assert LEXICON.near("contian", 5) == ["contain"]
    assert LEXICON.near("containr", 5) == ["contain", "container"]
    assert LEXICON.near("containr", 1) == ["contain"]
    assert LEXICON.near("cat", 5) == ["cats"]
    assert LEXICON.near("", 5) == []
    assert Lexicon([]).near("cat", 5) == []


@given(st.text("abcé'", max_size=9), st.sets(st.text("abcé'", min_size=1, max_size=9), max_size=30))
def test_none_that_is_near_is_passed_over(string: str, words: set[str]) -> None:
    slips = 1 if len(string) <= SHORT else 2
    expected = {word for word in words if 0 < distance(word, string) <= slips}
    found = Lexicon(words).near(string, 100)
    assert set(found) == expected
    assert [distance(word, string) for word in found] == sorted(distance(word, string) for word in found)

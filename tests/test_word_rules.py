"""Plain text is cut into words as the English Web Treebank cuts it."""

import time
from pathlib import Path

import pytest
from bench.words import EWT, gold_spans, score_words
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.conllu import read_conllu
from saccade.data.text import data_folders
from saccade.data.word_rules import split_words, word_spans

DEV = next((path for folder in data_folders(None) if (path := folder / EWT.format("dev")).exists()), Path("none"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the cat sat.", "the cat sat ."),
        ('"Well," she said...', '" Well , " she said ...'),
        ("I don't think it’s Ann's!?", "I do n't think it ’s Ann 's !?"),
        ("He'll say that he isn't, can't and cannot.", "He 'll say that he is n't , ca n't and can not ."),
        ("the U.S. paid $1,000.50 at 10:30 p.m. today", "the U.S. paid $ 1,000.50 at 10:30 p.m. today"),
        ("$50, US$5, €7 and 50%", "$ 50 , US$ 5 , € 7 and 50 %"),
        ("Dr. Smith, e.g., and Mr. W. Hill of Acme Inc. left", "Dr. Smith , e.g. , and Mr. W. Hill of Acme Inc. left"),
        ("No. 5 says no. He left, etc.", "No. 5 says no . He left , etc ."),
        ("a well-written e-mail, and/or a re-run", "a well - written e-mail , and / or a re-run"),
        ("(see http://a.b/c?d=e), www.a.com/b. x.org!", "( see http://a.b/c?d=e ) , www.a.com/b . x.org !"),
        ("Write to joe.b@x-y.org, not @home.", "Write to joe.b@x-y.org , not @ home ."),
        ("Call 555-1234 or 713-853-3989 in 1990-1995", "Call 555-1234 or 713-853-3989 in 1990 - 1995"),
        ("9/11, 11/28/2000, 2001-05-06, the 1960s, 5th", "9/11 , 11/28/2000 , 2001-05-06 , the 1960s , 5th"),
        ("at 10pm, 5k for 20cm", "at 10 pm , 5 k for 20 cm"),
        ("Nice :) or :-( or ;D (in 1998)", "Nice :) or :-( or ;D ( in 1998 )"),
        ("gonna, wanna, dont, im", "gon na , wan na , do nt , i m"),
        ("PG&E's my_file.doc", "PG&E 's my_file.doc"),
        ("नमस्ते दुनिया।", "नमस्ते दुनिया ।"),
        ("cafe\u0301 猫。", "cafe\u0301 猫 。"),
        ("  tabs\tand\u00a0others\n", "tabs and others"),
        (" ", ""),
    ],
)
def test_text_is_cut_as_the_treebank_cuts_it(text: str, words: str) -> None:
    assert split_words(text)[0] == words.split()


@given(st.text() | st.text(alphabet="aA1.,:;-'’&@/$()!? \n_"))
def test_cutting_loses_nothing_but_blanks_and_knows_where_they_were(text: str) -> None:
    words, spaces = split_words(text)
    rebuilt = "".join(" " * space + word for word, space in zip(words, spaces, strict=True))
    assert rebuilt == " ".join(text.split())
    assert [text[start:stop] for start, stop in word_spans(text)] == words
    assert list(gold_spans(text, words)) == word_spans(text)


@pytest.mark.parametrize("unit", ["a-", "1,", "A&", "a.", "1/", "a@", "a'", "(8", "Dr. ", "a.-", "#-", "\u0301-"])
def test_the_time_grows_with_the_length_and_not_with_its_square(unit: str) -> None:
    began = time.process_time()
    split_words(unit * 20_000)
    assert time.process_time() - began < 10


@pytest.mark.data
@pytest.mark.skipif(not DEV.exists(), reason="the treebank is not here")
def test_the_words_of_the_real_treebank_are_found() -> None:
    assert score_words(read_conllu(DEV)).value > 99.2

"""Texts of several sentences: where they are cut, that nothing between them is lost, and texts that go in circles."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import saccade
from saccade.data.variants import is_shouted
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.repetition import repeats, without_loops, worst_loop
from saccade.errors import UserError
from saccade.pipelines.pipeline import Request
from saccade.pipelines.translator import Translation, Translator, likeliest
from saccade.sources.sentences import halve, split_sentences


def cut(text: str) -> list[str]:
    return [text[start:stop] for start, stop in split_sentences(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["The weather was nice, so we went to the park.", "My brother brought sandwiches.", "Then we walked home."],
        ["Mr. Brown met the U.S. Senate at 5 p.m. in Washington D.C. last week.", "It was Dr. J. R. Hill's idea."],
        ['"Stop!" he said.', "Nobody did."],
        ["i dont know.", "do you?", "ok"],
        ["The fee (see Fig. 3. It is old.) is $3.50.", "So do I.", "OK?"],
        ["1. Open it.", "2. Close it."],
        ["Wait... what?", "Really…", "Yes."],
        ["See www.example.com/a.b for e.g. maps, vs. those.", "Then go!"],
        ["これは猫です。", "大きいです。"],
        ["He works at Apple Inc. in the U.K. and likes it."],
        ["3.14"],
    ],
)
def test_sentences_are_found(sentences: list[str]) -> None:
    between = "" if "猫" in sentences[0] else " "
    assert cut(between.join(sentences)) == sentences


def test_a_line_end_is_the_end_of_a_sentence() -> None:
    assert cut("  one\n\n two \r\nthree. Four\n") == ["one", "two", "three.", "Four"]
    assert cut("") == cut(" \n\t ") == []


@given(st.text(alphabet="ab. !?…\n\"')(A1。", max_size=60))
def test_nothing_but_white_space_is_between_sentences(text: str) -> None:
    end = 0
    for start, stop in split_sentences(text):
        assert not text[end:start].strip()
        assert text[start:stop] == text[start:stop].strip() != ""
        end = stop
    assert not text[end:].strip()


@pytest.mark.parametrize("piece", [".", "a. ", "(", "(a. ", "! ", " ", "\n", '."'])
def test_long_lines_take_no_square_of_time(piece: str) -> None:
    def seconds(count: int) -> float:
        began = time.process_time()
        split_sentences(piece * count)
        return time.process_time() - began

    seconds(10)
    assert seconds(40_000) < 2 + 40 * seconds(4_000)


def test_long_sentences_are_halved_at_the_strongest_mark_near_the_middle() -> None:
    assert halve("one two, three four; five six, seven") == len("one two, three four; ")
    assert halve("one two three, four five six") == len("one two three, ")
    assert halve("a, bbbbbbbb cccccccc dddddddd") == len("a, bbbbbbbb ")
    assert halve("x" * 10) == 5


def test_loops_are_noticed_unless_the_source_has_them() -> None:
    eight = [5, 1, 2, 3, 1, 2, 3, 1, 2]  # a las ocho de las ocho de las ocho
    assert worst_loop(eight).times == pytest.approx(8 / 3)
    assert repeats(eight)
    assert without_loops(eight) == [5, 1, 2, 3]
    assert not repeats([1, 2, 1, 2, 3])
    assert not repeats([7, 9, 7, 9, 7], read=[4, 9, 4, 9, 4])  # no, no, no
    assert without_loops([1] * 50) == [1]
    assert not repeats([])


@given(st.lists(st.integers(0, 3), max_size=40))
def test_what_is_left_has_no_loop(tokens: list[int]) -> None:
    left = without_loops(tokens)
    assert not repeats(left)
    assert repeats(tokens) or left == tokens


def test_the_likeliest_ways_are_those_of_all_ways() -> None:
    found = [[Hypothesis([n], -n / width, -n / width, True) for n in range(width)] for width in (2, 3, 4)]
    every = sorted(-a / 2 - b / 3 - c / 4 for a in range(2) for b in range(3) for c in range(4))[::-1]
    assert [sum(one.score for one in way) for way in likeliest(found, 6)] == pytest.approx(every[:6])


@pytest.fixture(scope="module")
def translator() -> Translator:
    return saccade.load("en-es")


def test_a_paragraph_is_its_sentences(translator: Translator) -> None:
    sentences = ["We are eating bread.", "This cat is very large!", "Good night."]
    alone = [one.text for one in translator(sentences)]
    found = translator(f" {sentences[0]}  {sentences[1]}\n\n{sentences[2]}\n")
    assert found.text == f" {alone[0]}  {alone[1]}\n\n{alone[2]}\n"
    assert [found.source[slice(*one.source)] for one in found.sentences] == sentences
    assert [found.text[slice(*one.target)] for one in found.sentences] == alone
    assert found.confidence == min(one.confidence for one in found.sentences)
    assert found.looks.parts == 3
    record = found.record()
    assert [one["start"] for one in record["sentences"]] == [1, 23, 48]  # type: ignore[index,attr-defined]


def test_several_answers_are_the_best_of_all_sentences(translator: Translator) -> None:
    found = translator("We are eating bread. Good night.", best=4).best
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert len({one.text for one in found}) == 4


def test_sentences_are_drawn_by_numbers_of_their_own(translator: Translator) -> None:
    twice = translator("Where is he? Where is he? Where is he? Where is he?", temperature=1.5)
    texts = {twice.text[slice(*one.target)] for one in twice.sentences}
    assert len(texts) > 1
    assert twice.text == translator(twice.source, temperature=1.5).text


def test_capitals_are_translated_as_what_they_say(translator: Translator) -> None:
    calm = translator("Good night. Where is he?")
    loud = translator("GOOD NIGHT. WHERE IS HE?")
    assert loud.text == calm.text.upper()
    assert [one.target for one in loud.sentences] == [one.target for one in calm.sentences]
    assert loud.score == calm.score
    assert loud.pipeline.forced(loud).total_I[0] == pytest.approx(calm.pipeline.forced(calm).total_I[0])
    quiet, asked = (calm.text[slice(*one.target)] for one in calm.sentences)
    assert translator("Good night. WHERE IS HE?").text == f"{quiet} {asked.upper()}"


@pytest.mark.parametrize(
    "text", ["NASA", "EU, UK", "I", "A B C D", "Hello WORLD", "www.EXAMPLE.org", "", "... 12 34", "日本 語"]
)
def test_abbreviations_and_plain_texts_are_not_taken_for_shouting(text: str) -> None:
    assert not is_shouted(text)


def test_a_prefix_begins_the_whole_text(translator: Translator) -> None:
    found = translator("Good night. We are eating bread.", prefix="Buenas noches. Est")
    assert found.text.startswith("Buenas noches. Est")
    assert len(found.sentences) == 1


def test_long_sentences_are_read_in_parts(translator: Translator) -> None:
    text = ", ".join(f"we bought {n} red apples and {n} green pears" for n in range(20)) + "."
    found = translator(text)
    assert len(found.sentences) > 1
    assert all(one.part and len(one.source_ids) <= Translator.long_sentence for one in found.sentences)
    assert re.sub(r"\s", "", "".join(text[slice(*one.source)] for one in found.sentences)) == re.sub(r"\s", "", text)
    (refused,) = translator.answer(["so " * 2_000], Request())
    assert isinstance(refused, UserError)
    assert "tokens in one sentence" in str(refused)


def test_blank_texts_stay(translator: Translator) -> None:
    found = translator(" \n ")
    assert (found.text, found.sentences, found.score) == (" \n ", [], 0)
    with pytest.raises(UserError, match="nothing was looked at"):
        _ = found.looks


def test_texts_that_were_cut_off_are_told() -> None:
    cut_off = Hypothesis([1, 2], -1.0, -1.0, finished=False)
    from saccade.pipelines.translator import TranslatedSentence

    found = Translation("so long", "tan", -1.0, [TranslatedSentence((0, 7), (0, 3), cut_off, [1, 2])])
    assert found.warnings == ["the translation of 'so long' was cut off after 2 tokens"]

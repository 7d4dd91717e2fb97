"""Prompts of examples: what is held out is never trained on, answers are right, pages fit, a seed gives one text."""

import gzip
import os
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest

from made_up_words import IRREGULAR, NOUNS, made_up_data
from saccade.data import prompts
from saccade.data.prompt_families import FAMILIES, WordLists, is_held
from saccade.data.prompts import (
    CODESPELL,
    EWT,
    LONGEST,
    TATOEBA,
    Template,
    document,
    draw_template,
    question,
    read_words,
)
from saccade.data.text import Pair
from saccade.errors import UserError

DATA = Path(os.environ.get("SACCADE_DATA", "data"))
needs_data = pytest.mark.skipif(
    not all((DATA / name).exists() for name in (EWT, TATOEBA, CODESPELL)),
    reason="the treebank, tatoeba and codespell are not in $SACCADE_DATA",
)
OVER_REGULAR = {verb + ("d" if verb.endswith("e") else "ed"): past for verb, past in IRREGULAR.items()}
PLAIN = Template("I: ", "\nO:", "\n")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> WordLists:
    return read_words([made_up_data(tmp_path_factory.mktemp("data"))])


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """One template for all, so that a test can read pages back."""
    monkeypatch.setattr(prompts, "draw_template", lambda random: PLAIN)


def pairs_of(page: str) -> list[Pair]:
    """The examples of a page in the plain template, without its instruction."""
    examples = page[page.index("I: ") :].removeprefix("I: ").rstrip("\n").split("\nI: ")
    return [(text, answer) for text, _, answer in (example.partition("\nO: ") for example in examples)]


def drawn(words: WordLists, family: str, *, held: bool, times: int = 300, count: int = 6) -> list[list[Pair]]:
    random = np.random.default_rng(1)
    return [FAMILIES[family].draw(random, words, held=held).pairs(random, count) for _ in range(times)]


# WordLists


def test_words_are_read_from_the_files(words: WordLists) -> None:
    nouns, verbs, misspellings, sentences = (
        dict(pool.training + pool.held) for pool in (words.nouns, words.verbs, words.misspellings, words.sentences)
    )
    assert nouns["apple"] == "apples"
    assert nouns["person"] == "people"
    assert {verb: verbs[verb] for verb in IRREGULAR} == IRREGULAR
    assert verbs["walk"] == "walked"
    assert "can" not in verbs
    assert misspellings["appple"] == "apple"
    assert "teh" not in misspellings, "two corrections are none"
    assert sentences["I eated the apple."] == "I ate the apple."
    assert sentences["We taked the basket."] == "We took the basket."
    assert sentences["Tom walk the jacket."] == "Tom walks the jacket."
    assert not {"paris", "Paris", "appels"} & {*words.plain.training, *words.plain.held, *nouns.values()}


def test_what_is_held_out_never_changes() -> None:
    assert [word for word in NOUNS if is_held(word)] == ["basket", "garden", "island", "jacket", "mirror", "carpet"]
    assert is_held("ISLAND") == is_held("island")


def test_missing_and_empty_files_are_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="en_ewt"):
        read_words([tmp_path])
    folder = made_up_data(tmp_path)
    (folder / TATOEBA).write_bytes(gzip.compress(b""))
    with pytest.raises(UserError, match="too few sentences"):
        read_words([folder])


def test_a_held_out_sentence_is_no_trained_one_with_another_subject(words: WordLists) -> None:
    trained = {text.partition(" ")[2] for text, _ in words.sentences.training}
    assert words.sentences.held
    assert not [text for text, _ in words.sentences.held if text.partition(" ")[2] in trained]


# Training


@pytest.mark.usefixtures("plain")
def test_training_shows_no_held_out_input_and_none_twice(words: WordLists) -> None:
    random = np.random.default_rng(0)
    for _ in range(2000):
        page = document(random, words)
        assert len(page) <= LONGEST
        assert page.endswith("\n\n")
        pairs = pairs_of(page)
        assert len(pairs) >= 2
        for text, _ in pairs:
            # Of a phrase every word must be one that may be shown; a sentence is held out as a whole.
            assert not [part for part in ([text] if text.endswith(".") else text.split()) if is_held(part)]
        assert all(answer for _, answer in pairs)
        if len(dict(pairs)) < len(pairs):
            assert len(set(pairs)) == len(dict(pairs)), "only a lookup repeats an input, and then with its answer"


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"lookup"}))
def test_inputs_of_a_task_are_distinct(words: WordLists, family: str) -> None:
    for held in (False, True):
        for pairs in drawn(words, family, held=held):
            assert len(dict(pairs)) == len(pairs)


@pytest.mark.usefixtures("plain")
def test_training_knows_every_family_and_says_of_three_pages_in_ten_what_to_do(words: WordLists) -> None:
    random = np.random.default_rng(0)
    told = [not document(random, words).startswith("I: ") for _ in range(2000)]
    assert 0.25 < np.mean(told) < 0.35
    assert set(prompts.WEIGHTS) == set(FAMILIES)


def test_held_out_affixes_and_combinations_are_not_trained(words: WordLists) -> None:
    for held in (False, True):
        for pairs in drawn(words, "affix", held=held):
            before, after = affixes(*pairs[0])
            assert all(is_held(text) == held for text in (before, after) if text)
        backwards = [
            all(answer == text[::-1].upper() for text, answer in task) for task in drawn(words, "combined", held=held)
        ]
        assert any(backwards) == held


def test_the_same_seed_gives_the_same(words: WordLists) -> None:
    def pages(seed: int) -> list[object]:
        random = np.random.default_rng(seed)
        return [*(document(random, words) for _ in range(50)), *(question(random, words, name, 3) for name in FAMILIES)]

    assert pages(7) == pages(7)
    assert pages(7) != pages(8)


def test_templates_are_many(words: WordLists) -> None:
    random = np.random.default_rng(0)
    templates = {draw_template(random) for _ in range(1000)}
    assert len(templates) > 300
    assert PLAIN.line(("cat", "cats")) == "I: cat\nO: cats\n"
    assert not [template for template in templates if template.middle != template.middle.rstrip()]


# Questions


def affixes(text: str, answer: str) -> tuple[str, str]:
    before, _, after = answer.partition(text)
    return before, after


def each(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(letter) for letter in text)


CHANGES: dict[str, list[Callable[[str], str]]] = {
    "reverse": [lambda text: "".join(reversed(text)), lambda text: " ".join(reversed(text.split(" ")))],
    "case": [
        lambda text: text.upper(),
        lambda text: text.lower(),
        lambda text: text[0].upper() + text[1:],
        lambda text: text[:-1] + text[-1].upper(),
        lambda text: "".join(text[n].upper() if n % 2 == 1 else text[n] for n in range(len(text))),
        lambda text: " ".join(word[0].upper() + word[1:] for word in text.split(" ")),
    ],
    "letters": [
        *(itemgetter(slice(None, stop)) for stop in (1, 2, 3, -1)),
        *(itemgetter(slice(start, None)) for start in (1, -1, -2)),
        each(lambda letter: letter + letter),
        each(lambda letter: "" if letter in "aeiou" else letter),
        lambda text: each(lambda letter: f"-{letter}")(text)[1:],
        lambda text: text + text[-1],
        lambda text: text[1:] + text[0],
        lambda text: "".join(word[0] for word in text.split(" ")),
    ],
    "combined": [
        lambda text: "".join(reversed(text)).upper(),
        lambda text: "-".join(text[:-1]),
        lambda text: each(lambda letter: letter + letter)(text).capitalize(),
        lambda text: text[1:].upper(),
    ],
}


def answers(words: WordLists, family: str, shown: list[Pair], asked: str) -> set[str]:
    """All that the examples allow, found another way than the question was made."""
    if family == "lookup":
        return {dict(shown)[asked]}
    if family == "affix":
        before, after = affixes(*shown[0])
        assert all(answer == before + text + after for text, answer in shown)
        return {before + asked + after}
    if family in CHANGES:
        fitting = [change for change in CHANGES[family] if all(change(text) == answer for text, answer in shown)]
        return {change(asked) for change in fitting}
    if family == "grammar":
        subject, verb, rest = asked.split(" ", 2)
        return {f"{subject} {OVER_REGULAR.get(verb, f'{verb}s')} {rest}"}
    if family == "spelling":
        return {noun for noun in NOUNS if noun[:2] + noun[1:] == asked}
    if family == "plural":
        return {prompts.IRREGULAR_NOUNS.get(asked, f"{asked}s")}
    return {(IRREGULAR | prompts.IRREGULAR_VERBS).get(asked, f"{asked}ed")}


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_right_and_questions_unseen(words: WordLists, family: str) -> None:
    random = np.random.default_rng(3)
    for _ in range(200):
        page, answer, _ = question(random, words, family, 3)
        assert answer.startswith(" ")
        assert page.endswith("\nO:")
        *shown, (asked, nothing) = pairs_of(page + " ")
        assert nothing == ""
        assert len(shown) == 3
        assert answer[1:] in answers(words, family, shown, asked)
        assert is_held(asked) or all(is_held(word) for word in asked.split())
        assert (asked in dict(shown)) == (family == "lookup")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("examples", [0, 1, 4, 12, 20])
def test_questions_fit_whatever_is_asked_for(words: WordLists, family: str, examples: int) -> None:
    random = np.random.default_rng(4)
    for _ in range(5):
        page, answer, shown = question(random, words, family, examples)
        assert len(page) + len(answer) < LONGEST
        assert page == page.rstrip()
        assert shown <= examples
        if examples == 0:
            assert page.count("\n") <= 1


@pytest.mark.usefixtures("plain")
def test_a_question_may_say_what_to_do(words: WordLists) -> None:
    random = np.random.default_rng(5)
    page, *_ = question(random, words, "plural", 2, instructed=True)
    wordings = FAMILIES["plural"].draw(random, words, held=True).wordings
    assert page.partition("\n")[0] in wordings
    assert len(pairs_of(page + " ")) == 3


def test_an_unknown_family_is_named(words: WordLists) -> None:
    with pytest.raises(UserError, match=r"'poetry'.*reverse"):
        question(np.random.default_rng(0), words, "poetry", 3)


# Real data


@pytest.mark.data
@needs_data
def test_the_real_files_hold_enough() -> None:
    words = read_words([DATA])
    counts = {name: (len(pool.training), len(pool.held)) for name, pool in vars(words).items()}
    print(counts)
    fewest = {"plain": 5000, "nouns": 1000, "verbs": 500, "misspellings": 5000, "sentences": 4000}
    assert not {name: counts[name] for name, least in fewest.items() if counts[name][0] < least}
    assert not {name: held for name, (_, held) in counts.items() if held < 100}
    verbs, sentences = (dict(pool.training + pool.held) for pool in (words.verbs, words.sentences))
    assert {verb: verbs[verb] for verb in ("eat", "hope", "lie", "stop", "travel", "swim")} == {
        "eat": "ate",
        "hope": "hoped",
        "lie": "lied",
        "stop": "stopped",
        "travel": "traveled",
        "swim": "swam",
    }
    assert "hoped" not in {past for verb, past in verbs.items() if verb != "hope"}
    assert max(map(len, sentences)) <= prompts.LONGEST_SENTENCE + 4
    random = np.random.default_rng(0)
    pages = [document(random, words) for _ in range(2000)]
    assert max(map(len, pages)) <= LONGEST
    assert all(page.isascii() for page in pages)

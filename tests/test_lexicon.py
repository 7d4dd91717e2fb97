"""A search with a lexicon writes its words and those of the text it answers, and no others."""

import itertools

import numpy as np
import pytest
import torch

from conftest import read, small_model
from saccade.decode.lexicon import Lexicon
from saccade.decode.search import SearchConfig, search
from saccade.tokens.marks import END
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary

WORDS = ["a", "at", "cat", "cats", "dog's", "don't", "dog"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return train_vocabulary(TokensConfig(kind="bytes"), [])


def may_write(vocabulary: Vocabulary, text: str, source: str = "", words: list[str] = WORDS) -> bool:
    """Whether every token of a text, and the end behind it, is allowed."""
    guide = Lexicon(words, vocabulary).guide([source], [[]], 1)
    for token in [*vocabulary.encode([text])[0], END]:
        if guide.gains()[0, token] != 0:
            return False
        guide.follow(np.array([0]), np.array([token]))
    return True


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cat",
        "Cat",
        "CATS",
        "a cat",
        "cat, dog.",
        "cat-dog",
        "'cat'",
        "cats'",
        "dog's",
        '"Don\'t"',
        "1 cat 2",
        "été",
        "…",
    ],
)
def test_known_words_in_any_case_between_anything(vocabulary: Vocabulary, text: str) -> None:
    assert may_write(vocabulary, text)


@pytest.mark.parametrize("text", ["ca", "catz", "z", "cat ca", "do", "don'", "don", "cataract", "caté"])
def test_no_others(vocabulary: Vocabulary, text: str) -> None:
    assert not may_write(vocabulary, text)


@pytest.mark.parametrize("text", ["zyx", "Zyx's 3rd café, naïve don’t", "it's", "a1b2", "x"])
def test_what_was_typed_may_be_left(vocabulary: Vocabulary, text: str) -> None:
    assert not may_write(vocabulary, text)
    assert may_write(vocabulary, text, source=text)
    assert may_write(vocabulary, f"cat {text} dog", source=text)


def test_a_typed_word_is_no_beginning_of_another(vocabulary: Vocabulary) -> None:
    assert not may_write(vocabulary, "zyxw", source="zyx")
    assert not may_write(vocabulary, "zy", source="zyx")


def test_rows_are_followed_apart_and_may_change_places(vocabulary: Vocabulary) -> None:
    guide = Lexicon(WORDS, vocabulary).guide(["zyx", ""], [[], []], 2)
    z, y, c = (vocabulary.encode([letter], continues=True)[0][0] for letter in "zyc")
    assert (guide.gains()[:, z] == 0).tolist() == [True, True, False, False]
    guide.follow(np.array([1, 0, 3, 2]), np.array([z, c, c, c]))
    assert (guide.gains()[:, y] == 0).tolist() == [True, False, False, False]
    guide.follow(np.array([0, 0]), np.array([y, y]))
    assert (guide.gains()[:, z] == 0).tolist() == [False, False]


def test_a_prefix_that_is_no_word_sets_free_until_the_next_word(vocabulary: Vocabulary) -> None:
    short, longer = vocabulary.encode(["q", "cat qq"])
    guide = Lexicon(WORDS, vocabulary).guide(["", ""], [short, longer], 1)
    (q,), (space,) = vocabulary.encode(["q", " "], continues=True)
    assert (guide.gains()[:, q] == 0).all()
    guide.follow(np.arange(2), np.array([space, space]))
    assert np.isneginf(guide.gains()[:, q]).all()


def test_a_strange_word_has_its_price_where_it_ends(vocabulary: Vocabulary) -> None:
    lexicon = Lexicon(WORDS, vocabulary, price=3.0)

    def price_of(text: str) -> float:
        guide = lexicon.guide([text], [[]], 1)
        total = 0.0
        for token in [*vocabulary.encode([text])[0], END]:
            total -= float(guide.gains()[0, token])
            guide.follow(np.array([0]), np.array([token]))
        return total

    assert price_of("the zyx") == 6.0  # neither is on this list
    assert price_of("cat Zyx a 1b 'dog' Cats") == 0.0  # names, letters and known words
    assert price_of("Zyx cat") == 3.0  # a capital says nothing where a text begins
    assert price_of("zyx, zyx") == 6.0
    assert price_of("été") == 0.0


@pytest.mark.parametrize("beam", [1, 4])
def test_a_wild_model_writes_only_words(vocabulary: Vocabulary, beam: int) -> None:
    model = small_model(vocabulary=len(vocabulary), seed=3)
    with torch.inference_mode():
        for weight in model.decoder.parameters():
            if weight.ndim == 2:
                weight.mul_(3)
        texts = ["xyz!", "q r", "été"]
        sources = vocabulary.encode(texts)
        for source, text in zip(sources, texts, strict=True):
            found = search(
                model.decoder,
                read(model, [source]),
                SearchConfig(beam=beam, alpha=0.0),
                prefixes=[[]],
                limits=[30],
                numbers=[0],
                lexicon=Lexicon(WORDS, vocabulary),
                sources=[text],
            )
            written = [hypothesis for hypotheses in found for hypothesis in hypotheses if hypothesis.finished]
            assert all(may_write(vocabulary, vocabulary.decode(one.tokens), text) for one in written)
            assert all(one.logprob >= other.logprob for one, other in itertools.pairwise(written))
            assert found[0][0].tokens

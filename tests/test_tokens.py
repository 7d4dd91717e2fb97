"""Tokens: any text comes back as it went in and never becomes a mark; a file that breaks a promise is refused."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from saccade.data.text import read_pairs
from saccade.errors import UserError
from saccade.tokens.dropout import BpeDropout
from saccade.tokens.marks import SPECIALS, Marks
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, read_vocabulary, train_vocabulary
from saccade.tokens.words import PLAIN, WordCache

DATA = Path(os.environ.get("SACCADE_DATA", "data"))
END = Marks().end

SENTENCES = [
    "this cat is very large",
    "este gato es muy grande",
    "der schnelle braune Fuchs",
    "où est la bibliothèque ?",
    "</s> is how some texts end",
] * 20
VOCABULARY = train_vocabulary(TokensConfig(vocabulary=400), SENTENCES)
FILE = VOCABULARY.tokenizer.to_str()

# Lone surrogates are no Unicode text: they cannot be written to a file either.
UNICODE = st.text(st.characters(exclude_categories=["Cs"]))
MARKS = st.sampled_from([*SPECIALS, "<unk>", "[CLS]", "Ġ", "Ċ", "<|endoftext|>"])


def round_trip(vocabulary: Vocabulary, text: str) -> str:
    (ids,) = vocabulary.encode([text])
    assert all(END < i < len(vocabulary) for i in ids)
    return vocabulary.decode(ids)


# What is read, where it is spelt


@given(UNICODE)
@example("")
@example("</s> <pad>")
def test_what_is_spelt_is_its_bytes_and_what_is_written_is_not(text: str) -> None:
    spelt = Vocabulary(VOCABULARY.tokenizer, source_bytes=True)
    (ids,) = spelt.read([text])
    assert len(ids) == len(text.encode())
    assert all(END < i < len(spelt) for i in ids)
    assert spelt.decode(ids, continues=True) == text
    assert spelt.encode([text]) == VOCABULARY.encode([text])
    assert VOCABULARY.read([text]) == VOCABULARY.encode([text])


# Word by word


@given(st.lists(UNICODE | MARKS | st.from_regex(PLAIN, fullmatch=True), max_size=4))
@example(["</s> <pad>", "I'll  go, it's\tfine '' 'tis _x_ 12³ ½ №5 ", " \x1c a\x85b\u2028c", "e\u0301 ﬁ ⅷ ١٢ Ⴀ ǅ ª º"])
def test_encoded_word_by_word_a_text_has_the_same_ids(texts: list[str]) -> None:
    cache = WordCache(VOCABULARY)
    assert cache.encode(texts) == cache.encode(texts) == VOCABULARY.encode(texts)


@pytest.mark.data
@pytest.mark.skipif(not (DATA / "tatoeba").exists(), reason="tatoeba is not in $SACCADE_DATA")
@pytest.mark.parametrize("name", ["tatoeba/eng-fra.train.tsv.gz", "tatoeba/eng-spa.train.tsv.gz"])
def test_encoded_word_by_word_real_text_has_the_same_ids(name: str) -> None:
    texts = [side for pair in read_pairs([DATA / name])[::20] for side in pair]
    assert WordCache(VOCABULARY).encode(texts) == VOCABULARY.encode(texts)


def test_a_cache_that_is_full_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.tokens.words.MOST_WORDS", 5)
    cache = WordCache(VOCABULARY)
    for texts in (["this cat", "is"], ["very large", "der Fuchs"], ["this cat"]):
        assert cache.encode(texts) == VOCABULARY.encode(texts)
    assert len(cache.ids) <= 5


# BPE dropout


@given(UNICODE | MARKS, st.sampled_from([0.0, 0.1, 0.5]), st.integers(0, 9))
@example("</s> <pad>", 0.1, 0)
def test_cut_with_dropout_a_text_is_the_same_text(text: str, rate: float, seed: int) -> None:
    (ids,) = BpeDropout(VOCABULARY, rate, np.random.default_rng(seed)).encode([text])
    assert all(END < i < len(VOCABULARY) for i in ids)
    assert VOCABULARY.decode(ids) == text
    assert [ids] == BpeDropout(VOCABULARY, rate, np.random.default_rng(seed)).encode([text])
    if not rate:
        assert [ids] == VOCABULARY.encode([text])


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_dropout_cuts_as_the_library_does_but_by_the_seed(monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
    # Here are so few words that 32 cuts of each are no fair sample.
    monkeypatch.setattr("saccade.tokens.dropout.VARIANTS", 10**6)
    texts = SENTENCES * 20
    library = Tokenizer.from_str(FILE)
    library.encode_special_tokens = True
    library.model.dropout = rate
    ours = BpeDropout(VOCABULARY, rate, np.random.default_rng(1))
    theirs = [ids for text in texts for ids in library.encode(" " + text, add_special_tokens=False).ids]
    cut = [i for ids in ours.encode(texts) for i in ids]
    plain = [i for ids in VOCABULARY.encode(texts) for i in ids]
    assert len(cut) > len(plain)
    assert len(cut) == pytest.approx(len(theirs), rel=0.06)
    # Not only as many, but the same tokens as often.
    counts = [np.bincount(ids, minlength=len(VOCABULARY)) for ids in (cut, theirs)]
    assert np.abs(counts[0] - counts[1]).sum() < 0.15 * len(theirs)


# Any text


@given(UNICODE)
@example("")
@example(" ")
@example("  two before, two after  ")
@example("\n\r\n\t\v\f\x00\x1b\x7f\x85\u2028\ufeff")
@example("e\u0301 é n\u0303 ﬁ Å K")  # combining marks and compatibility letters stay what they are
@example("👩‍👩‍👧‍👦 🇪🇸 👍🏽 \U0010ffff")
@example("שלום עולם مرحبا 你好 नमस्ते")
def test_any_text_comes_back_as_it_went_in(text: str) -> None:
    assert round_trip(VOCABULARY, text) == text


@given(st.lists(MARKS | UNICODE, max_size=6).map("".join))
@example("</s>")
@example("<pad>")
@example("<s>")
@example("a</s>b <pad>\n<s>")
def test_text_that_looks_like_a_mark_is_text(text: str) -> None:
    assert round_trip(VOCABULARY, text) == text


@given(st.lists(UNICODE | MARKS, max_size=5))
def test_many_texts_are_each_text_alone(texts: list[str]) -> None:
    assert VOCABULARY.encode(texts) == [VOCABULARY.encode([text])[0] for text in texts]


def test_decoding_leaves_marks_out() -> None:
    (ids,) = VOCABULARY.encode(["este gato"])
    assert VOCABULARY.decode([1, *ids, 2, 0, 0]) == "este gato"


def test_a_word_has_one_spelling_wherever_it_stands() -> None:
    first, later = VOCABULARY.encode(["gato", "este gato"])
    assert later[-len(first) :] == first


def test_pieces_are_the_text_cut_up() -> None:
    (ids,) = VOCABULARY.encode(["este gato es muy grande"])
    pieces = VOCABULARY.pieces(ids)
    assert len(pieces) == len(ids) < len("este gato es muy grande")
    assert "".join(pieces) == " este gato es muy grande"
    assert VOCABULARY.pieces([0, 1, 2]) == SPECIALS


@pytest.mark.parametrize("run", ["a", "este", " ", "\n", "é", "1", "</s>"], ids=repr)
def test_a_very_long_run_is_encoded_in_reasonable_time(run: str) -> None:
    text = (run * 200_000)[:200_000]
    began = time.perf_counter()
    (ids,) = VOCABULARY.encode([text])
    # Hundredths of a second where merging is not quadratic; minutes where it is.
    assert time.perf_counter() - began < 5
    assert VOCABULARY.decode(ids) == text


# Training


@pytest.mark.parametrize("size", [300, 320])
def test_the_vocabulary_has_the_size_asked_for(size: int) -> None:
    vocabulary = train_vocabulary(TokensConfig(vocabulary=size, min_frequency=1), SENTENCES)
    assert len(vocabulary) == size
    assert round_trip(vocabulary, "un texto con ñ, 漢字 y 🙂") == "un texto con ñ, 漢字 y 🙂"


def test_few_texts_make_fewer_tokens_than_asked_for_but_always_all_bytes() -> None:
    vocabulary = train_vocabulary(TokensConfig(vocabulary=5000), ["ab ab ab"])
    assert 256 + len(SPECIALS) <= len(vocabulary) < 300
    assert round_trip(vocabulary, "ñandú 漢") == "ñandú 漢"


def test_a_pair_met_less_often_than_least_is_not_merged() -> None:
    texts = ["often often often often", "rare"]
    seldom, often = (train_vocabulary(TokensConfig(vocabulary=1000, min_frequency=least), texts) for least in (1, 4))
    assert len(seldom.encode(["rare"])[0]) == 1
    assert len(often.encode(["rare"])[0]) == len(" rare")
    assert len(often.encode(["often"])[0]) == 1


def test_more_merges_make_shorter_sequences() -> None:
    lengths = [
        len(train_vocabulary(TokensConfig(vocabulary=size), SENTENCES).encode(SENTENCES[:1])[0]) for size in (300, 340)
    ]
    assert lengths[1] < lengths[0]


# Files


def test_a_saved_vocabulary_encodes_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    VOCABULARY.save(path)
    again = read_vocabulary(path.read_text(encoding="utf-8"), path)
    texts = [*SENTENCES[:5], "nunca visto ñ 🙂 </s>"]
    assert len(again) == len(VOCABULARY)
    assert again.encode(texts) == VOCABULARY.encode(texts)
    assert [round_trip(again, text) for text in texts] == texts


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", "\0", "[" * 100_000, '{"version": "1.0"}', FILE[: len(FILE) // 2], FILE + "x"],
    ids=["empty", "null", "list", "no model", "nul", "deep", "version only", "half", "more"],
)
def test_a_file_that_is_no_tokenizer_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UserError, match=r"the folder/tokenizer\.json: ") as caught:
        read_vocabulary(text, Path("the folder/tokenizer.json"))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def another_model(model: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    return lambda file: file.update(model=model)


ONLY_MARKS = {token: i for i, token in enumerate(SPECIALS)}
CRAFTED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no model": lambda file: file.pop("model"),
    "marks exchanged": lambda file: file["model"]["vocab"].update({"<pad>": 1, "<s>": 0}),
    "negative id": lambda file: file["model"]["vocab"].update(h=-1),
    "id beyond the vocabulary": lambda file: file["model"]["vocab"].update(z=1_000_000),
    "id beyond 32 bits": lambda file: file["model"]["vocab"].update(z=2**40),
    "two tokens with one id": lambda file: file["model"]["vocab"].update(z=file["model"]["vocab"]["y"]),
    "merge of no token": lambda file: file["model"]["merges"].append(["qqq", "zzz"]),
    "merge that panics": lambda file: file["model"].update(continuing_subword_prefix="##"),
    "byte missing": lambda file: file["model"]["vocab"].pop("Ā"),
    "marks that text can become": lambda file: [token.update(special=False) for token in file["added_tokens"]],
    "random merges": lambda file: file["model"].update(dropout=0.5),
    "text changed before": lambda file: file.update(normalizer={"type": "Lowercase"}),
    "text dropped before": lambda file: file.update(
        normalizer={"type": "Replace", "pattern": {"String": "a"}, "content": ""}
    ),
    "regular expression broken": lambda file: file.update(
        normalizer={"type": "Replace", "pattern": {"Regex": "("}, "content": ""}
    ),
    "bytes not split": lambda file: file.update(pre_tokenizer=None),
    "bytes not joined": lambda file: file.update(decoder=None),
    "words only": another_model({"type": "WordLevel", "vocab": ONLY_MARKS, "unk_token": "<unk>"}),
    "unigram": another_model({"type": "Unigram", "vocab": [[token, 0.0] for token in SPECIALS], "unk_id": None}),
    "unigram with no such unknown": another_model({"type": "Unigram", "vocab": [["<pad>", 0.0]], "unk_id": 50}),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused_before_it_can_do_harm(name: str) -> None:
    file = json.loads(FILE)
    CRAFTED[name](file)
    with pytest.raises(UserError, match=r"the folder/tokenizer\.json: ") as caught:
        read_vocabulary(json.dumps(file), Path("the folder/tokenizer.json"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "extra",
    [
        {"truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}},
        {
            "padding": {
                "strategy": {"Fixed": 50},
                "direction": "Right",
                "pad_to_multiple_of": None,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "<pad>",
            }
        },
    ],
    ids=["truncation", "padding"],
)
def test_a_file_cannot_ask_that_texts_be_cut_or_padded(extra: dict[str, Any]) -> None:
    vocabulary = read_vocabulary(json.dumps(json.loads(FILE) | extra), Path("tokenizer.json"))
    assert vocabulary.encode(SENTENCES[:2]) == VOCABULARY.encode(SENTENCES[:2])

"""Vocabularies of pieces: texts and their continuations come back as they were; a crafted file is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from saccade.errors import UserError
from saccade.tokens.marks import Marks
from saccade.tokens.pieces import build
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, read_vocabulary, train_vocabulary
from test_llama2c import SMALL_TOKENIZER, TEXTS

END = Marks().end

FILE = SMALL_TOKENIZER.to_str()
WHERE = Path("the folder/tokenizer.json")
VOCABULARY = read_vocabulary(FILE, WHERE, spaced=False)
UNICODE = st.text(st.characters(exclude_categories=["Cs"]))
TEXT = UNICODE | st.text(" abthe<s>/0xAé\n🙂")


@given(TEXT)
@example("</s><s><unk><0x0A>")
@example("  two spaces")
def test_a_text_comes_back_and_never_becomes_a_mark(text: str) -> None:
    (ids,) = VOCABULARY.encode([text])
    assert ids == SMALL_TOKENIZER.encode(text).ids
    assert all(i > END for i in ids)
    assert VOCABULARY.decode([1, *ids, 2]) == text


@given(TEXT.filter(bool), TEXT)
@example("Once", " upon a time")
@example("Once", "upon")
@example("🙂", "🙂 é")
def test_a_text_and_what_continues_it_are_one_text(text: str, more: str) -> None:
    (begun,), (added,) = VOCABULARY.encode([text]), VOCABULARY.encode([more], continues=True)
    assert VOCABULARY.decode(added, continues=True) == more
    assert VOCABULARY.decode([*begun, *added]) == text + more


def test_spaced_vocabularies_of_bytes_continue_too() -> None:
    vocabulary = train_vocabulary(TokensConfig(vocabulary=300), ["one two three"] * 9, spaced=True)
    (ids,) = vocabulary.encode(["one two"])
    assert vocabulary.decode(ids) == "one two"
    assert vocabulary.decode(ids, continues=True) == " one two"
    assert vocabulary.decode(vocabulary.encode(["one"], continues=True)[0], continues=True) == "one"


@pytest.mark.parametrize("text", [text for text in TEXTS if text])
def test_pieces_are_the_text_cut_up(text: str) -> None:
    (ids,) = VOCABULARY.encode([text])
    shown = VOCABULARY.pieces(ids)
    assert len(shown) == len(ids)
    if "\ufffd" not in "".join(shown):
        assert "".join(shown) == " " + text


def test_a_character_cut_off_spoils_none_before_it() -> None:
    (ids,) = VOCABULARY.encode(["ñ🙂"])
    assert len(ids) == 1 + 2 + 4
    written = [VOCABULARY.decode(ids[:length]) for length in range(1, len(ids) + 1)]
    assert written == ["", "\ufffd", "ñ", "ñ\ufffd", "ñ\ufffd", "ñ\ufffd", "ñ🙂"]


def test_whether_a_vocabulary_of_pieces_is_asked_to_be_spaced_or_not_it_is() -> None:
    assert Vocabulary(SMALL_TOKENIZER, spaced=True).encode(TEXTS) == VOCABULARY.encode(TEXTS)


def test_a_saved_vocabulary_encodes_the_same(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    VOCABULARY.save(path)
    again = read_vocabulary(path.read_text(encoding="utf-8"), path, spaced=False)
    assert again.encode(TEXTS) == VOCABULARY.encode(TEXTS)
    assert len(again) == len(VOCABULARY)


# Files


def joined(*merges: list[str], words: tuple[str, ...] = ()) -> Callable[[dict[str, Any]], None]:
    """Words that were not there, and merges that come before all others."""

    def craft(file: dict[str, Any]) -> None:
        vocabulary = file["model"]["vocab"]
        vocabulary |= {word: len(vocabulary) + i for i, word in enumerate(words)}
        file["model"]["merges"][:0] = merges

    return craft


def exchanged(one: str, other: str) -> Callable[[dict[str, Any]], None]:
    def craft(file: dict[str, Any]) -> None:
        words = file["model"]["vocab"]
        words[one], words[other] = words[other], words[one]

    return craft


CRAFTED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no space before": (lambda file: file.update(normalizer=None), "its normalizer is not that of a vocabulary of"),
    "another text before": (lambda file: file["normalizer"].update(prepend="x"), "its normalizer is not"),
    "text changed": (lambda file: file.update(normalizer={"type": "Lowercase"}), "its normalizer is not"),
    "text split": (lambda file: file.update(pre_tokenizer={"type": "Whitespace"}), "its pre_tokenizer is not"),
    "text decoded otherwise": (lambda file: file.update(decoder=None), "its decoder is not"),
    "bytes not fallen back on": (lambda file: file["model"].update(byte_fallback=False), "byte-level BPE"),
    "random merges": (lambda file: file["model"].update(dropout=0.5), "its model is not"),
    "merges ignored": (lambda file: file["model"].update(ignore_merges=True), "its model is not"),
    "another unknown": (lambda file: file["model"].update(unk_token="a"), "its model is not"),
    "marks that text can become": (
        lambda file: [token.update(special=False) for token in file["added_tokens"]],
        "its added_tokens is not",
    ),
    "a mark more": (
        lambda file: file["added_tokens"].append(file["added_tokens"][0] | {"id": 300, "content": "the"}),
        "",
    ),
    "marks exchanged": (exchanged("<s>", "</s>"), ""),
    "bytes exchanged": (exchanged("<0x41>", "<0x42>"), "<0x41> has the id 69, but it must be 68"),
    "byte and piece exchanged": (exchanged("<0x41>", "the"), r"<0x41> has the id \d+, but it must be 68"),
    "byte missing": (lambda file: file["model"]["vocab"].pop("<0x41>"), "do not have the ids"),
    "byte renamed": (
        lambda file: file["model"]["vocab"].update({"<0x4z>": file["model"]["vocab"].pop("<0x41>")}),
        "<0x41> has the id of no token, but it must be 68",
    ),
    "id beyond the vocabulary": (lambda file: file["model"]["vocab"].update(zz=10**6), "do not have the ids"),
    "two tokens with one id": (lambda file: file["model"]["vocab"].update(zz=300), ""),
    "negative id": (lambda file: file["model"]["vocab"].update(zz=-1), "do not have the ids"),
    "merge of no token": (joined(["qqq", "zzz"]), "not a tokenizer"),
    "text that becomes a mark": (joined(["<", "s>"]), "it joins '<' and 's>', but marks and bytes are not text"),
    "text that becomes a byte": (
        joined(["0", "x"], ["<", "0x"], ["<0x", "0"], ["0", "A"], ["<0x0", "A>"], words=("<0x", "<0x0", "0A", "A>")),
        "it joins '<0x0' and 'A>'",
    ),
    "bytes that become text": (joined(["<0x41>", "<0x42>"], words=("<0x41><0x42>",)), "it joins '<0x41>'"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused_in_one_line(name: str) -> None:
    craft, complaint = CRAFTED[name]
    file = json.loads(FILE)
    craft(file)
    with pytest.raises(UserError, match=rf"^the folder/tokenizer\.json: .*{complaint}") as caught:
        read_vocabulary(json.dumps(file), WHERE, spaced=False)
    assert "\n" not in str(caught.value)


def test_the_words_alone_may_differ() -> None:
    tokenizer = build(["a", "b", "ab", " "], [("a", "b")])
    vocabulary = read_vocabulary(tokenizer.to_str(), WHERE)
    assert vocabulary.encode(["ab"]) == [[262, 261]]

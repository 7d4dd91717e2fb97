"""Correcting: what may be changed and what stays, long and odd texts, and a toy speller that mends."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conftest import on_plain, small_model
from saccade.data.lexicon import Lexicon
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.search import SearchConfig
from saccade.models.answering import sequence_runtime
from saccade.pipelines.corrector import LONGEST, Corrector, stretches
from saccade.pipelines.doubt import Guess, chances, doubts
from saccade.pipelines.edits import apply, edits
from saccade.pipelines.translator import TranslatedSentence, Translation, Translator
from saccade.sources.text import pad_sources
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary

MARKS = Marks()
BEGIN, END = MARKS.begin, MARKS.end


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("I recieve a leter.", "I receive a letter.", "I receive a letter."),
        ("Teh cat, teh dog!", "The cat, the dog!", "The cat, the dog!"),
        ("see www.exampel.com now", "see www.example.com now", "see www.exampel.com now"),
        ("x = fooBar(3)", "x = fubar(3)", "x = fooBar(3)"),
        ("room 101b is colsed", "room 101 is closed", "room 101b is closed"),
        ("iam here", "i am here", "i am here"),
        ("to gether we stand", "together we stand", "together we stand"),
        ("one cat", "one elephant", "one cat"),
        ("so  it   goes", "so it goes", "so  it   goes"),
        ("fine 👍 relly", "fine really", "fine 👍 really"),
        ("nothing wrong here", "", "nothing wrong here"),
        ("", "words from nowhere", ""),
    ],
)
def test_only_plain_words_change_and_only_into_near_ones(source: str, output: str, expected: str) -> None:
    assert apply(source, edits(source, output)) == expected


def test_edits_say_where() -> None:
    source = "I recieve teh leter"
    found = edits(source, "I receive the letter")
    assert [(source[one.start : one.stop], one.right) for one in found] == [
        ("recieve", "receive"),
        ("teh", "the"),
        ("leter", "letter"),
    ]


TEXTS = st.text(st.sampled_from(" \t\r.!?,'\"abcdéжñ日👍0/@_-"), max_size=600)


@given(TEXTS)
def test_stretches_are_parts_of_the_text_in_order_and_short(text: str) -> None:
    end = 0
    for start, stop in stretches(text):
        assert end <= start < stop <= len(text)
        assert stop - start <= LONGEST
        assert text[start:stop].strip() == text[start:stop]
        end = stop


@given(TEXTS, TEXTS)
def test_whatever_was_written_all_but_plain_words_stays(source: str, output: str) -> None:
    mended = apply(source, edits(source, output))
    kept = [letter for letter in source if not letter.isalpha() and letter not in " '"]
    assert [letter for letter in mended if not letter.isalpha() and letter not in " '"] == kept


def test_a_text_that_comes_out_the_same_is_not_touched() -> None:
    text = "It's 5 o'clock — \"who's there?\" «rien»  e-mail me@x.org"
    assert edits(text, text) == []


def test_long_texts_are_cut_after_sentences() -> None:
    text = "This is a sentence of some words. " * 20
    parts: Sequence[str] = [text[start:stop] for start, stop in stretches(text)]
    assert " ".join(parts) == text.strip()
    assert all(part.endswith(".") for part in parts)


def test_a_run_without_spaces_is_passed_over() -> None:
    text = "teh " + "x" * 100_000 + " cat"
    assert [text[start:stop] for start, stop in stretches(text)] == ["teh", "cat"]


def test_doubt_is_the_probability_of_the_word_as_it_was_after_all_that_is_mended() -> None:
    vocabulary = train_vocabulary(TokensConfig(kind="bytes"), [WORDS])
    model = small_model(vocabulary=len(vocabulary))
    texts, mended = ["teh cat sta", "a mat", "on dgo"], ["the cat sat", "a mat", "on dog"]
    changes = [edits(*pair) for pair in zip(texts, mended, strict=True)]
    left = [
        ("teh cat sta", "", "teh ", False),
        ("teh cat sta", "the cat ", "sta", True),
        ("on dgo", "on ", "dgo", True),
    ]
    expected = []
    for text, before, word, ends in left:
        source, written, whole = vocabulary.encode([text, before, before + word])
        probability = 1.0
        for token in [*whole[len(written) :], *[END] * ends]:
            logits_V = model(
                torch.from_numpy(pad_sources([source], MARKS)[0]), None, torch.tensor([[BEGIN, *written]])
            )[0, -1]
            probability *= logits_V.softmax(dim=0)[token].item()
            written.append(token)
        expected.append(probability)
    (first, second), none, (third,) = doubts(on_plain(model), vocabulary, texts, changes)
    assert none == []
    assert [first, second, third] == pytest.approx(expected, rel=1e-4)


def written(text: str, logprob: float, score: float = 0.0) -> Translation:
    """An answer of one sentence."""
    sentence = TranslatedSentence((0, 0), (0, len(text)), Hypothesis([], logprob, score, True), [])
    return Translation("", text, score, [sentence])


def test_a_corrector_that_must_be_sure_changes_less() -> None:
    vocabulary = train_vocabulary(TokensConfig(kind="bytes"), [WORDS])
    model = sequence_runtime(small_model(vocabulary=len(vocabulary)))
    corrector = Corrector(Translator(model, vocabulary, SearchConfig(beam=1)))
    text, answer = "teh cat sta", written("the cat sat", -50.0)
    first, second = doubts(model, vocabulary, [text], [edits(text, answer.text)])[0]
    assert [len(corrector._changes([text], [answer])[0])] == [2]
    corrector.caution = max(first, second)
    assert len(corrector._changes([text], [answer])[0]) == 1
    corrector.caution = min(first, second)
    assert corrector._changes([text], [answer]) == [[]]
    certain = written(answer.text, math.log(1 - corrector.caution / 2))
    assert len(corrector._changes([text], [certain])[0]) == 2, "nothing else can be as likely as that"


def with_lexicon(words: str, price: float = 0.0) -> Corrector:
    vocabulary = train_vocabulary(TokensConfig(vocabulary=300, source_bytes=True), [WORDS])
    model = sequence_runtime(small_model(vocabulary=len(vocabulary)))
    translator = Translator(model, vocabulary, SearchConfig(beam=2))
    return Corrector(translator, lexicon=Lexicon(words.split(), price))


def answered(*texts: str) -> Translation:
    first, *others = [written(text, -50.0, 0.0) for text in texts]
    first.others.extend(others)
    return first


def test_by_a_lexicon_every_word_is_the_first_known_one_of_all_answers() -> None:
    corrector = with_lexicon("the cat sat on mat cut")
    found = corrector._edits("teh cat sta onn", answered("tge cut sat onn", "the cat set on", "the cat sit ob"))
    assert [(edit.wrong, edit.right) for edit in found] == [
        ("teh", "the"),
        ("cat", "cut"),
        ("sta", "sat"),
        ("onn", "on"),
    ]
    # What is known may be left by a likelier answer; what is strange may not.
    found = corrector._edits("cat sta", answered("cat sta", "cut sat"))
    assert [(edit.wrong, edit.right) for edit in found] == [("sta", "sat")]
    assert corrector._edits("cat sta", answered("cet sth", "cot sts")) == []
    assert corrector._edits("the Sta on", answered("the sat on")) == [], "a name"
    assert len(corrector._edits("Sta on", answered("Sat on"))) == 1, "a capital that opens a sentence"


def test_a_strange_word_becomes_the_likeliest_of_its_neighbours_unless_it_is_likelier_itself() -> None:
    corrector = with_lexicon("the cat sat on mat set", price=100.0)
    corrector.caution = 0.5
    text = "The cat szt on Mxt"
    (edit,) = corrector._changes([text], [answered(text)])[0]  # Mxt may be a name
    assert (edit.start, edit.stop, edit.wrong) == (8, 11, "szt")
    guesses = [Guess(text, "The cat ", word, 11) for word in ("sat", "set")]
    likely = chances(corrector.translator.model, corrector.translator.vocabulary, guesses)
    assert edit.right == ("sat" if likely[0] > likely[1] else "set")
    corrector.lexicon = Lexicon(["the", "cat", "sat", "on", "mat", "set"], price=0.0)
    corrector.caution = 1e-9
    assert corrector._changes([text], [answered(text)]) == [[]]


WORDS = "the cat sat on a mat and saw some big dogs near their small house in town"
TOY = """
task = "correction"
name = "toy"
[data]
train = [{{file = "{file}", documents = "lines"}}]
valid = [{{file = "{file}", documents = "lines"}}]
test = [{{file = "{test}", documents = "lines"}}]
misspellings = ["{misspellings}"]
copies = 2
[tokens]
kind = "bytes"
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
[search]
beam = 1
[train]
steps = 6
batch_tokens = 512
warmup = 2
validate_every = 3
select_by = "accuracy"
adam = {{rate = 5e-3}}
"""


PIECES = {'kind = "bytes"': "vocabulary = 300\nsource_bytes = true", "beam = 1": "beam = 3"}
KNOWN = {
    'name = "toy"': 'name = "toy"\nlexicon_min_count = 1\nunknown_word_cost = 2.0\ncaution = 0.5',
    "copies = 2": "copies = 2\nalone = true",
}


@pytest.mark.parametrize("changed", [{}, PIECES, PIECES | KNOWN], ids=["letters", "pieces", "pieces and a list"])
def test_a_speller_is_trained_asked_and_scored(tmp_path: Path, changed: dict[str, str]) -> None:
    from tiny import ask

    words = WORDS.split()
    lines = [" ".join(words[place : place + 5]) + "." for place in range(len(words) - 5)]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "list.tsv").write_text(
        "misspelling\tcorrect\n"
        + "".join(f"{word[:1]}{word[2:]}{word[1:2]}\t{word}\n" for word in words if len(word) > 2)
    )
    (tmp_path / "test.txt").write_text("the dogs saw a mat\nsome cat sat on their house\n" + lines[0] + "\n")
    files = {"file": "lines.txt", "test": "test.txt", "misspellings": "list.tsv"}
    recipe = TOY.format(**{name: tmp_path / file for name, file in files.items()})
    for before, after in changed.items():
        recipe = recipe.replace(before, after)
    (tmp_path / "toy.toml").write_text(recipe)
    said = ask("train", tmp_path / "toy.toml", "--out", tmp_path / "toy")
    assert said.code == 0, said.err
    odd = "teh 👍 3.14\n\n...\n日本語 cat\r\n" + "x" * 100_000 + "\n"
    said = ask("correct", "--model", tmp_path / "toy", stdin=odd.encode())
    assert said.code == 0, said.err
    assert len(said.lines) == 5
    assert "👍 3.14" in said.lines[0]
    assert said.lines[1:3] == ["", "..."]
    assert said.lines[3].startswith("日本語 ")
    assert said.lines[4] == "x" * 100_000
    stays = "\ufeff...\r\n \t \r\n👍 3.14 日本\n\r\nhttps://example.org/teh?a=b".encode() + b"\n\xff teh\r\n!"
    said = ask("correct", "--model", tmp_path / "toy", stdin=stays)
    assert said.out.encode("utf-8", "surrogateescape") == stays, "blank lines, line ends, a line that is no UTF-8"
    assert said.code == 1
    assert "line 6: not UTF-8 (byte 0xff at column 1); it is left as it is" in said.err
    found = json.loads(ask("correct", "teh cat", "--model", tmp_path / "toy", "--format", "json").out)
    assert set(found) == {"source", "text", "edits", "score"}
    (tmp_path / "test.tsv").write_text("teh cat sat\tthe cat sat\na mat\ta mat\n")
    said = ask("evaluate", tmp_path / "toy", tmp_path / "test.tsv")
    assert said.code == 0, said.err
    assert "word accuracy" in said.out
    said = ask("evaluate", tmp_path / "toy")
    assert said.code == 0, said.err
    assert said.lines[0].startswith("word accuracy"), "on sentences of its own that it was not trained on"

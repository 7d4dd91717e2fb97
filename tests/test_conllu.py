"""CoNLL-U: words with their spaces and tags, every other byte kept, and complaints with file and line."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.conllu import Sentence, TagColumn, read_conllu, retagged, sentence_of, write_conllu
from saccade.errors import UserError

DATA = Path(os.environ.get("SACCADE_DATA", "data"))
EWT = "ud_english_ewt/en_ewt-ud-{}.conllu.gz"
needs_ewt = pytest.mark.skipif(not (DATA / EWT.format("dev")).exists(), reason="the treebank is not in $SACCADE_DATA")
FILE = """\
# newdoc
# text = I don't, ever.
1	I	I	PRON	PRP	Person=1	4	nsubj	_	_
2-3	don't	_	_	_	_	_	_	_	SpaceAfter=No
2	do	do	AUX	VBP	_	4	aux	_	_
3	n't	not	PART	RB	_	4	advmod	_	_
4	,	,	PUNCT	,	_	0	root	_	_
5	ever	ever	ADV	RB	_	4	advmod	_	Gloss=a|SpaceAfter=No
5.1	go	go	VERB	VB	_	_	_	_	_
6	.	.	PUNCT	.	_	4	punct	_	_

# text = _ au lit 猫
1	_	_	SYM	NFP	_	0	root	_	_
2-3	au	_	_	_	_	_	_	_	_
2	à	à	ADP	_	_	1	case	_	_
3	le	le	DET	_	_	1	det	_	_
4	lit	lit	NOUN	_	_	1	nmod	_	_
5	猫	猫	NOUN	_	_	1	nmod	_	_

"""


def write(path: Path, text: str) -> Path:
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def refused(tmp_path: Path, text: str, column: TagColumn = "upos") -> str:
    """What is said of the text, without the file's name, which comes first."""
    path = write(tmp_path / "t.conllu", text)
    with pytest.raises(UserError) as caught:
        read_conllu(path, column)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


def line(number: str | int, form: str = "cat", upos: str = "NOUN", misc: str = "_") -> str:
    return "\t".join([str(number), form, "_", upos, *"_" * 5, misc]) + "\n"


# In


@pytest.mark.parametrize("name", ["t.conllu", "t.conllu.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_words_spaces_and_tags(tmp_path: Path, name: str, end: str) -> None:
    first, second = read_conllu(write(tmp_path / name, FILE.replace("\n", end)))
    assert first.words == ["I", "do", "n't", ",", "ever", "."]
    assert first.spaces == [False, True, False, False, True, False]
    assert first.tags == ["PRON", "AUX", "PART", "PUNCT", "ADV", "PUNCT"]
    assert first.text == "I don't, ever."
    assert second.words == ["_", "à", "le", "lit", "猫"]
    assert second.text == "_ à le lit 猫", "words that do not spell their range are not written together"


@pytest.mark.parametrize(
    ("column", "tags"),
    [
        ("xpos", ["PRP", "VBP", "RB", ",", "RB", "."]),
        ("deprel", ["nsubj", "aux", "advmod", "root", "advmod", "punct"]),
        ("feats", ["Person=1", "_", "_", "_", "_", "_"]),
        ("head", ["4", "4", "4", "0", "4", "4"]),
    ],
)
def test_any_column_may_be_the_tag(tmp_path: Path, column: TagColumn, tags: list[str]) -> None:
    path = write(tmp_path / "t.conllu", FILE.partition("\n\n")[0] + "\n")
    assert read_conllu(path, column)[0].tags == tags


def test_the_lemma_of_the_word_underscore_is_no_missing_one(tmp_path: Path) -> None:
    assert read_conllu(write(tmp_path / "t.conllu", FILE), "lemma")[1].tags == ["_", "à", "le", "lit", "猫"]


def test_a_file_to_be_tagged_needs_no_tags(tmp_path: Path) -> None:
    path = write(tmp_path / "t.conllu", line(1, upos="_") + line(2, upos="") + line(3))
    assert read_conllu(path, tagged=False)[0].tags == ["_", "_", "NOUN"]


# Out


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("before", ["", "\ufeff", "\n\n", "\ufeff1\tOh\t_\tINTJ\t_\t_\t_\t_\t_\t_\n\n"])
@pytest.mark.parametrize("after", ["", "\n\n", "# last\n1\tx\t_\tX\t_\t_\t_\t_\t_\t_"])
@pytest.mark.parametrize("name", ["t.conllu", "t.conllu.gz"])
def test_the_same_tags_give_the_same_bytes(tmp_path: Path, name: str, before: str, after: str, end: str) -> None:
    text = (before + FILE + after).replace("\n", end)
    path = write(tmp_path / name, text)
    sentences = read_conllu(path)
    written = tmp_path / f"out.{name}"
    write_conllu(written, sentences, [sentence.tags for sentence in sentences])
    assert (gzip.decompress(written.read_bytes()) if name.endswith("gz") else written.read_bytes()) == text.encode()


@pytest.mark.parametrize(("column", "place"), [("upos", 3), ("deprel", 7), ("misc", 9)])
def test_other_tags_change_their_column_of_words_alone(tmp_path: Path, column: TagColumn, place: int) -> None:
    sentences = read_conllu(write(tmp_path / "t.conllu", FILE), column, tagged=False)
    new = "".join(retagged(sentence, ["NEW"] * len(sentence.words), column) for sentence in sentences)
    for old_line, new_line in zip(FILE.split("\n"), new.split("\n"), strict=True):
        old, cells = old_line.split("\t"), new_line.split("\t")
        if old[0].isdigit():
            assert cells.pop(place) == "NEW"
            old.pop(place)
        assert cells == old


def test_a_byte_order_mark_does_not_hide_the_first_word(tmp_path: Path) -> None:
    (sentence,) = read_conllu(write(tmp_path / "t.conllu", "\ufeff" + line(1) + line(2)))
    assert retagged(sentence, ["ONE", "TWO"]) == "\ufeff" + line(1, upos="ONE") + line(2, upos="TWO")


def test_as_many_tags_as_words(tmp_path: Path) -> None:
    sentence = sentence_of("two words")
    for tags in (["X"], ["X"] * 3):
        with pytest.raises(ValueError, match=f"{len(tags)} tags for 2 words"):
            retagged(sentence, tags)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        write_conllu(tmp_path / "none" / "t.conllu", [sentence_of("a")], [["X"]])


# What is refused


def test_a_wrong_number_of_columns(tmp_path: Path) -> None:
    assert refused(tmp_path, FILE.replace("4	lit	lit", "4	lit lit")) == (
        ", line 17: 9 columns, but CoNLL-U has 10 (tab separated); "
        r"it begins '4\tlit lit\tNOUN\t_\t_\t1\tnmod\t_\t_'"
    )
    assert ", line 2: 1 column, but CoNLL-U has 10" in refused(tmp_path, line(1) + "a plain text\n")


@pytest.mark.parametrize("tag", ["_", "", " "])
def test_a_missing_tag(tmp_path: Path, tag: str) -> None:
    assert refused(tmp_path, line(1) + line(2, upos=tag)) == ", line 2: word 2, 'cat', has no upos (column 4)"


def test_a_missing_tag_of_another_column(tmp_path: Path) -> None:
    assert refused(tmp_path, FILE, "xpos") == ", line 15: word 2, 'à', has no xpos (column 5)"


def test_an_empty_word(tmp_path: Path) -> None:
    assert refused(tmp_path, line(1) + line(2, form="")) == ", line 2: word 2 is empty"


@pytest.mark.parametrize("text", ["# only\n# comments\n", line("1-2", upos="_"), line("0.1")])
def test_a_sentence_without_words(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, line(1) + "\n" + text + "\n" + line(1)) == ", line 3: a sentence without words"
    assert refused(tmp_path, line(1) + "\n" + text) == ", line 3: a sentence without words"


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_a_file_without_sentences(tmp_path: Path, text: str) -> None:
    assert refused(tmp_path, text) == ": no sentences in it"


def test_sentences_without_an_empty_line_between(tmp_path: Path) -> None:
    message = refused(tmp_path, line(1) + line(2) + line(1))
    assert message == ", line 3: word 1 where word 3 is due; is an empty line missing before it?"


@pytest.mark.parametrize("number", ["x", "", "1.", "-1", "٣", "1-"])
def test_a_number_that_is_none(tmp_path: Path, number: str) -> None:
    assert f", line 2: {number!r} is no word's number" in refused(tmp_path, line(1) + line(number))


@pytest.mark.parametrize("number", ["1-3", "2-1"])
def test_a_range_that_is_none(tmp_path: Path, number: str) -> None:
    text = line(number, upos="_") + line(1) + line(2)
    assert refused(tmp_path, text) == f", line 1: the range {number} in a sentence of 2 words"


def test_a_missing_file_and_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_conllu(tmp_path / "none.conllu")
    path = tmp_path / "t.conllu"
    path.write_bytes(line(1).encode() + "2\tñ".encode("latin-1"))
    with pytest.raises(UserError, match="line 2: not UTF-8"):
        read_conllu(path)


# Plain text


def test_text_becomes_conllu(tmp_path: Path) -> None:
    sentence = sentence_of("the  cat sat.", 7)
    assert retagged(sentence, ["DET", "NOUN", "VERB", "PUNCT"]) == (
        "# sent_id = 7\n"
        "# text = the cat sat.\n"
        "1\tthe\t_\tDET\t_\t_\t_\t_\t_\t_\n"
        "2\tcat\t_\tNOUN\t_\t_\t_\t_\t_\t_\n"
        "3\tsat\t_\tVERB\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
        "4\t.\t_\tPUNCT\t_\t_\t_\t_\t_\t_\n"
        "\n"
    )


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_what_becomes_conllu_is_read_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    sentences: list[Sentence] = [sentence_of(text) for text in texts if text.split()]
    if not sentences:
        with pytest.raises(UserError, match="no words in the text"):
            sentence_of(texts[0])
        return
    path = tmp_path_factory.mktemp("t") / "t.conllu"
    write_conllu(path, sentences, [sentence.tags for sentence in sentences])
    assert read_conllu(path, tagged=False) == sentences


# Real data


@pytest.mark.data
@needs_ewt
@pytest.mark.parametrize(("part", "count", "words"), [("dev", 2001, 25147), ("test", 2077, 25094)])
def test_the_real_treebank_comes_back_byte_for_byte_with_its_texts(part: str, count: int, words: int) -> None:
    path = DATA / EWT.format(part)
    sentences = read_conllu(path)
    assert (len(sentences), sum(len(sentence.words) for sentence in sentences)) == (count, words)
    assert len({tag for sentence in sentences for tag in sentence.tags}) == 17
    written = "".join(retagged(sentence, sentence.tags) for sentence in sentences).encode()
    assert written == gzip.decompress(path.read_bytes())
    told = [next(line for line in sentence.lines if line.startswith("# text = ")) for sentence in sentences]
    wrong = [text for text, s in zip(told, sentences, strict=True) if " ".join(text.split()[3:]) != s.text]
    assert wrong == []

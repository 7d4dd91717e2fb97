"""From text files to windows of ids, and what a language model's loss on them is: each token counted once."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import random_sequences
from saccade.data.documents import TextFile, read_documents
from saccade.data.stream import LINES_AT_ONCE, Stream, Windows, encode_documents
from saccade.errors import UserError
from saccade.evaluate import language
from saccade.evaluate.language import Surprise, surprise
from saccade.models.gpt import LanguageModel
from saccade.tokens.marks import SPECIALS, Marks
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, read_vocabulary, train_vocabulary
from saccade.train.objective import LanguageObjective
from tiny import CONTEXT, tiny_gpt, tiny_vocabulary

MARKS = Marks()
BEGIN, END, PAD = MARKS.begin, MARKS.end, MARKS.pad

TEXTS = random_sequences([4, 9, 1, 6, 13, 2], seed=5)


def marked(texts: list[list[int]] = TEXTS, *, isolate: bool = True) -> Stream:
    row = [token for text in texts for token in (BEGIN, *text)]
    return Stream(np.array([*row, BEGIN], dtype=np.uint16), MARKS, isolate)


def unmarked(length: int) -> Stream:
    """Every token is another, so that one can tell where it stands."""
    return Stream(np.arange(END + 1, END + 1 + length, dtype=np.uint16), MARKS)


# A batch of windows


def test_what_comes_next_is_the_label() -> None:
    batch = unmarked(20).batch(np.array([0, 7, 5]), 6)
    assert batch.tokens_BT.tolist() == [list(range(3 + start, 9 + start)) for start in (0, 7, 5)]
    assert torch.equal(batch.labels_BT, batch.tokens_BT + 1)
    assert batch.documents_BT is None
    assert batch.tokens_BT.dtype == batch.labels_BT.dtype == torch.long


def test_a_window_past_the_end_is_padded_and_predicts_nothing_there() -> None:
    batch = unmarked(5).batch(np.array([0, 3]), 6)
    assert batch.labels_BT.tolist() == [[4, 5, 6, 7, PAD, PAD], [7, PAD, PAD, PAD, PAD, PAD]]
    assert batch.real_BT is not None
    assert torch.equal(batch.real_BT, batch.labels_BT != PAD)
    assert LanguageObjective().count(batch) == 5


def test_before_the_beginning_of_a_document_its_forerunner_ends() -> None:
    stream = marked([[5, 6], [7], [8, 9]])
    batch = stream.batch(np.array([0]), 10)
    assert batch.tokens_BT.tolist() == [[BEGIN, 5, 6, BEGIN, 7, BEGIN, 8, 9, BEGIN, PAD]]
    assert batch.labels_BT.tolist() == [[5, 6, END, 7, END, 8, 9, END, PAD, PAD]]
    assert batch.documents_BT is not None
    assert batch.documents_BT[0, :8].tolist() == [1, 1, 1, 2, 2, 3, 3, 3]
    assert BEGIN not in batch.labels_BT
    assert len(stream) == 8


def test_a_window_may_begin_within_a_document() -> None:
    batch = marked([[5, 6], [7], [8, 9]]).batch(np.array([2]), 4)
    assert batch.tokens_BT.tolist() == [[6, BEGIN, 7, BEGIN]]
    assert batch.documents_BT is not None
    assert batch.documents_BT.tolist() == [[0, 1, 1, 2]]


def test_a_window_within_one_document_needs_no_mask_and_one_not_isolate_has_none() -> None:
    assert marked().batch(np.array([0]), 4).documents_BT is None
    assert marked(isolate=False).batch(np.array([0]), 20).documents_BT is None


# Evaluation: every token once


@given(
    tokens=st.integers(0, 60),
    length=st.integers(1, 12),
    data=st.data(),
    rows=st.integers(1, 5),
)
def test_windows_predict_every_token_once_whatever_the_stride(
    tokens: int, length: int, data: st.DataObject, rows: int
) -> None:
    stride = data.draw(st.integers(1, length))
    predicted: list[int] = []
    for batch, counts in unmarked(tokens).windows(length, stride, rows):
        assert len(batch.starts) <= rows
        chosen = (batch.labels_BT != PAD) & torch.from_numpy(counts)
        predicted += batch.labels_BT[chosen].tolist()
        for start, row in zip(batch.starts, chosen, strict=True):
            places = row.nonzero()[:, 0]
            assert len(places), "no window is for nothing"
            if start > 0:
                assert int(places[0]) >= length - stride, "each has at least so long a past"
    assert predicted == list(range(END + 2, END + 1 + tokens))


@pytest.mark.parametrize("stride", [0, -1, 7])
def test_a_stride_that_would_leave_tokens_out_is_refused(stride: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 6 .* not {stride}"):
        next(unmarked(40).windows(6, stride, 2))


def by_a_plain_loop(model: LanguageModel, stream: Stream, stride: int) -> tuple[float, int]:
    """-log p of each token after as much of its window as stands before it, token by token."""
    tokens, nats, context = stream.tokens.astype(int).tolist(), 0.0, model.context
    for place in range(1, len(tokens)):
        first = 0 if place <= context else stride * math.ceil((place - context) / stride)
        past = tokens[first:place]
        numbers = [past[: i + 1].count(BEGIN) for i in range(len(past))]
        logits_TV = model(torch.tensor([past]), torch.tensor([numbers]) if stream.isolate_documents else None)[0]
        label = END if tokens[place] == BEGIN else tokens[place]
        nats += float(F.cross_entropy(logits_TV[-1:], torch.tensor([label]), reduction="sum"))
    return nats, len(tokens) - 1


@pytest.mark.parametrize("stride", [1, 3, 8])
@pytest.mark.parametrize("kind", ["marked", "not isolate", "unmarked"])
@pytest.mark.parametrize("rows", [1, 3, 1000])
@torch.inference_mode()
def test_surprise_is_a_plain_loop_over_cross_entropy(
    stride: int, kind: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "ROWS_TOKENS", 8 * rows)
    model = tiny_gpt("rotary", vocabulary=40, context=8)
    stream = unmarked(36) if kind == "unmarked" else marked(isolate=kind == "marked")
    found = surprise(model, stream, stride=stride)
    nats, tokens = by_a_plain_loop(model, stream, stride)
    assert found.tokens == tokens == len(stream)
    assert found.nats == pytest.approx(nats, abs=1e-3)
    assert found.loss == pytest.approx(nats / tokens, abs=1e-4)
    if stride == 8:
        assert surprise(model, stream).nats == found.nats, "windows that do not overlap are the default"


@torch.inference_mode()
def test_a_longer_past_is_not_the_same_as_none() -> None:
    """Were the stride ignored, the loop above would still find the same windows."""
    model, stream = tiny_gpt("rotary", vocabulary=40, context=8), unmarked(36)
    assert len({round(surprise(model, stream, stride=stride).nats, 2) for stride in (1, 4, 8)}) == 3


def test_bits_per_byte_and_perplexity_are_their_definitions() -> None:
    loss, perplexity, bits = Surprise(nats=200.0, tokens=80, context=8, stride=4).scores(text_bytes=100)
    assert loss.value == 2.5
    assert perplexity.value == pytest.approx(math.exp(2.5))
    assert bits.value == pytest.approx(200 / math.log(2) / 100)
    assert [score.name for score in (loss, perplexity, bits)] == ["loss", "perplexity", "bits per byte"]
    assert bits.signature == "tokens:80|bytes:100|context:8|stride:4"


def test_a_model_that_is_always_wrong_has_a_perplexity_all_the_same() -> None:
    assert math.isfinite(Surprise(nats=1e6, tokens=10, context=8, stride=8).scores(10)[1].value)


def test_nothing_to_predict_is_no_surprise() -> None:
    for tokens in (0, 1):
        found = surprise(tiny_gpt(), unmarked(tokens))
        assert (found.nats, found.tokens) == (0.0, 0)
        with pytest.raises(UserError, match="fewer than two tokens"):
            found.scores(1)


# Training: windows in any order


@given(
    tokens=st.integers(2, 80),
    length=st.integers(1, 12),
    rows=st.integers(1, 5),
    seed=st.integers(0, 9),
)
def test_an_epoch_holds_windows_that_do_not_overlap_and_leaves_less_than_two_out(
    tokens: int, length: int, rows: int, seed: int
) -> None:
    stream = unmarked(tokens)
    windows = Windows(stream, length=length, rows=rows, seed=seed)
    for epoch in range(3):
        starts = [next(windows) for _ in range(windows.batches)]
        assert windows.epoch == epoch
        assert windows.progress == epoch + 1
        assert all(1 <= len(part) <= rows for part in starts)
        batches = [stream.batch(part, length) for part in starts]
        labels = [label for batch in batches for label in batch.labels_BT.flatten().tolist() if label != PAD]
        assert len(labels) == len(set(labels)), "no token twice"
        ordered = sorted(labels)
        assert ordered == list(range(ordered[0], ordered[-1] + 1)), "and no gap between windows"
        assert len(stream) - len(labels) < max(1, min(2 * length, len(stream)))
        if length <= len(stream):
            assert len(labels) % length == 0, "none of them padded"


def test_epochs_cut_at_other_places_and_come_in_another_order() -> None:
    windows = Windows(unmarked(400), length=10, rows=100, seed=1)
    epochs = [next(windows).tolist() for _ in range(30)]
    assert all(epoch != sorted(epoch) for epoch in epochs)
    assert len({min(epoch) for epoch in epochs}) > 8
    starts = {start for epoch in epochs for start in epoch}
    assert len(starts) > 300, "nearly every token is once the first of its window"


def test_over_the_epochs_every_token_is_learnt() -> None:
    stream = unmarked(47)
    windows, met = Windows(stream, length=10, rows=3, seed=0), set()
    for _ in range(500):
        met |= set(stream.batch(next(windows), 10).labels_BT.flatten().tolist())
    assert set(range(END + 2, END + 1 + 47)) <= met


def test_seeds_decide() -> None:
    one, same, other = (Windows(unmarked(400), length=10, rows=4, seed=seed) for seed in (1, 1, 2))
    first, again, another = ([next(w).tolist() for _ in range(20)] for w in (one, same, other))
    assert first == again != another


@pytest.mark.parametrize("done", [0, 1, 5, 13, 14, 40])
def test_resumed_from_any_point_the_same_windows_follow(done: int) -> None:
    def fresh() -> Windows:
        return Windows(unmarked(137), length=5, rows=2, seed=3)

    undisturbed = fresh()
    for _ in range(done):
        next(undisturbed)
    resumed = fresh()
    resumed.load_state_dict(undisturbed.state_dict())
    assert resumed.progress == undisturbed.progress
    for _ in range(40):
        assert np.array_equal(next(resumed), next(undisturbed))
        assert resumed.state_dict() == undisturbed.state_dict()


@pytest.mark.parametrize("tokens", [0, 1])
def test_a_text_of_less_than_two_tokens_cannot_be_learnt(tokens: int) -> None:
    with pytest.raises(UserError, match="shorter than two tokens"):
        Windows(unmarked(tokens), length=4, rows=1, seed=0)


# The objective


@pytest.mark.parametrize("name", ["rotary", "no positions", "later turns"])
def test_the_loss_of_documents_isolate_is_the_sum_of_their_own(name: str) -> None:
    model = tiny_gpt(name, context=60)
    batch = marked().batch(np.array([0, 0]), 60)
    total, count = LanguageObjective()(model, batch)["loss"]
    alone = 0.0
    for text in TEXTS:
        logits_TV = model(torch.tensor([[BEGIN, *text]]))[0]
        alone += F.cross_entropy(logits_TV, torch.tensor([*text, END]), reduction="sum").item()
    assert count == LanguageObjective().count(batch) == 2 * sum(len(text) + 1 for text in TEXTS)
    assert total.item() == pytest.approx(2 * alone, rel=1e-5)
    together, _ = LanguageObjective()(model, marked(isolate=False).batch(np.array([0, 0]), 60))["loss"]
    assert together.item() != pytest.approx(total.item(), rel=1e-3), "not isolate is another loss"


def test_padding_is_not_learnt() -> None:
    model, stream = tiny_gpt(vocabulary=40), unmarked(30)
    loss, count = LanguageObjective()(model, stream.batch(np.array([20]), CONTEXT))["loss"]
    short, same = LanguageObjective()(model, stream.batch(np.array([20]), 9))["loss"]
    assert count == same == 9
    assert loss.item() == pytest.approx(short.item(), rel=1e-5)


def test_smoothing_is_told_isolate_from_the_likelihood() -> None:
    model, batch = tiny_gpt(vocabulary=40), unmarked(30).batch(np.array([0]), CONTEXT)
    plain, smoothed = LanguageObjective()(model, batch), LanguageObjective(0.1)(model, batch)
    assert set(plain) == {"loss"}
    assert smoothed["nll"][0].item() == pytest.approx(plain["loss"][0].item(), rel=1e-5)
    assert smoothed["loss"][0].item() != pytest.approx(plain["loss"][0].item(), rel=1e-4)


def test_operations_count_real_tokens() -> None:
    model, batch = tiny_gpt(vocabulary=40), unmarked(30).batch(np.array([20]), CONTEXT)
    assert LanguageObjective().flops(model, batch) == 3 * model.flops(9)


# Text to ids


VOCABULARIES = {kind: tiny_vocabulary(kind) for kind in ("bpe", "bytes", "characters")}


@pytest.fixture(params=VOCABULARIES)
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    return VOCABULARIES[request.param]


DOCUMENTS = ["one two\nthree", "four", "für 5 €\n\n", "cats"]


def test_a_marked_stream_is_the_documents_between_marks(vocabulary: Vocabulary) -> None:
    tokens = encode_documents(vocabulary, DOCUMENTS, marked=True)
    expected = [token for text in DOCUMENTS for token in (BEGIN, *vocabulary.encode([text])[0])]
    assert tokens.tolist() == [*expected, BEGIN]
    assert tokens.dtype == np.uint16


def test_a_stream_without_marks_is_the_text(vocabulary: Vocabulary) -> None:
    tokens = encode_documents(vocabulary, DOCUMENTS[:1], marked=False)
    assert tokens.tolist() == vocabulary.encode(DOCUMENTS[:1])[0]
    assert not set(tokens.tolist()) & {PAD, BEGIN, END}


@pytest.mark.parametrize("line", ["one\n", "two\r\n", "\n", "four\u2028", "five\x0b"])
def test_a_long_document_is_encoded_whole(line: str) -> None:
    text = (line + "dogs see cats") * (3 * LINES_AT_ONCE + 5)
    tokens = encode_documents(VOCABULARIES["bpe"], [text], marked=True)
    assert VOCABULARIES["bpe"].decode(tokens.tolist()) == text
    assert (tokens == BEGIN).sum() == 2


def test_nothing_is_nothing(vocabulary: Vocabulary) -> None:
    assert len(Stream(encode_documents(vocabulary, [], marked=False), vocabulary.marks)) == 0
    assert len(Stream(encode_documents(vocabulary, [], marked=True), vocabulary.marks)) == 0


# Characters and bytes


def trained(kind: str, texts: list[str]) -> Vocabulary:
    return train_vocabulary(TokensConfig.model_validate({"kind": kind}), texts, spaced=False)


@pytest.mark.parametrize("kind", ["bpe", "bytes", "characters"])
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
@example("\n\r\n\t\v\f\x00\x1b\x7f\x85\u2028\ufeff")
@example("e\u0301 é 👩‍👩‍👧‍👦 \U0010ffff")
@example("a</s>b <pad>\n<s>")
def test_any_text_comes_back_and_none_becomes_a_mark(kind: str, text: str) -> None:
    vocabulary = trained(kind, [text])
    (ids,) = vocabulary.encode([text])
    assert vocabulary.decode(ids) == text
    assert all(i > END for i in ids)
    again = read_vocabulary(vocabulary.tokenizer.to_str(), Path("tokenizer.json"), spaced=False)
    assert again.encode([text]) == [ids]
    assert len(again) == len(vocabulary)


def test_bytes_are_the_bytes() -> None:
    vocabulary = trained("bytes", ["anything"])
    assert len(vocabulary) == 256 + len(SPECIALS)
    for text in ("cats", "für 5 €", "\x00 \n"):
        assert len(vocabulary.encode([text])[0]) == len(text.encode())


def test_characters_are_those_of_the_text_in_their_order() -> None:
    vocabulary = trained("characters", ["bad", "cab€\n"])
    assert len(vocabulary) == len(SPECIALS) + 6
    assert vocabulary.encode(["\nabcd€"]) == [list(range(END + 1, END + 7))]
    assert vocabulary.pieces(vocabulary.encode(["a\n€"])[0]) == ["a", "\n", "€"]


def test_a_character_never_met_is_refused_and_named() -> None:
    vocabulary = trained("characters", ["bad cab"])
    with pytest.raises(UserError, match="'xz': not among the 5 characters"):
        vocabulary.encode(["bad", "zax"])


# Documents in files


def documents(folder: Path, content: str, kind: str, **options: object) -> list[str]:
    (folder / "file.txt").write_bytes(content.encode())
    file = TextFile.model_validate({"file": "file.txt", "documents": kind} | options)
    return read_documents([file], [folder])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_whole_file_is_one_document(tmp_path: Path, end: str) -> None:
    assert documents(tmp_path, f"one{end}{end}  two{end}", "whole") == ["one\n\n  two\n"]


def test_every_line_is_a_document(tmp_path: Path) -> None:
    assert documents(tmp_path, "one\n\n two\u2028three\n \nfour", "lines") == ["one", " two\u2028three", "four"]


def test_a_line_stands_between_documents(tmp_path: Path) -> None:
    content = "one\ntwo\n\n<|endoftext|>\n three\n <|endoftext|> \n<|endoftext|>\nfour <|endoftext|> five\n"
    expected = ["one\ntwo", "three", "four <|endoftext|> five"]
    assert documents(tmp_path, content, "separated") == expected
    assert documents(tmp_path, "one\n---\ntwo", "separated", separator="---") == ["one", "two"]
    assert documents(tmp_path, "one\n --- \ntwo", "separated", separator=" --- ") == ["one", "two"]
    assert documents(tmp_path, "one\nmore\n\ntwo", "separated", separator="") == ["one\nmore", "two"]


def test_a_column_holds_documents(tmp_path: Path) -> None:
    content = "1\tone\tuno\n\n2\ttwo\n3\t\ttres\n"
    assert documents(tmp_path, content, "column", column=2) == ["one", "two"]
    assert documents(tmp_path, content, "column") == ["1", "2", "3"]
    with pytest.raises(UserError, match="line 3: 2 columns, but column 3"):
        documents(tmp_path, content, "column", column=3)


def test_sentences_of_conllu_are_joined_from_one_newdoc_to_the_next(tmp_path: Path) -> None:
    content = """# newdoc id = a
# sent_id = 1
# text = One.
1\tOne\t_

# text = Two # text = three.
1\tTwo\t_

# newdoc
# newpar
# text = Four.
1\tFour\t_
"""
    assert documents(tmp_path, content, "conllu") == ["One. Two # text = three.", "Four."]
    assert documents(tmp_path, "# text = Alone.\n1\tAlone\n", "conllu") == ["Alone."]


def test_documents_come_once_in_order_from_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\none\n")
    with gzip.open(tmp_path / "b.txt.gz", "wb") as file:
        file.write(b"two\nthree\n")
    files = [TextFile(file=name, documents="lines") for name in ("a.txt", "b.txt.gz")]
    assert read_documents(files, [tmp_path]) == ["one", "two", "three"]
    assert read_documents([TextFile(file=str(tmp_path / "a.txt"), documents="lines")], []) == ["one", "two"]


def test_a_file_gives_its_documents_as_often_as_asked_and_every_nth_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "b.txt").write_text("three\nfour\n")
    often = TextFile(file="a.txt", documents="lines", repeat=2, every=2)
    assert read_documents([often, TextFile(file="b.txt", documents="lines")], [tmp_path]) == [
        *("one", "one", "three", "three", "four")
    ]


def test_in_lower_case_documents_that_differ_in_capitals_are_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One\none\nTWO Ä\n", encoding="utf-8")
    files = [TextFile(file="a.txt", documents="lines")]
    assert read_documents(files, [tmp_path], lowercase=True) == ["one", "two ä"]
    assert read_documents(files, [tmp_path]) == ["One", "one", "TWO Ä"]


@pytest.mark.parametrize("kind", ["whole", "lines", "separated", "column", "conllu"])
@pytest.mark.parametrize("content", ["", "\n \n\t\n"], ids=repr)
def test_a_file_without_text_is_refused_by_name(tmp_path: Path, kind: str, content: str) -> None:
    with pytest.raises(UserError, match=r"file\.txt: no text"):
        documents(tmp_path, content, kind)


def test_a_file_that_only_repeats_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    files = [TextFile(file="a.txt", documents="lines")] * 2
    with pytest.raises(UserError, match=r"a\.txt: no text in it that is not already there"):
        read_documents(files, [tmp_path])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nosuch\.txt: no such file"):
        read_documents([TextFile(file=str(tmp_path / "nosuch.txt"))], [])
    with pytest.raises(UserError, match=r"nosuch\.txt not found in .*--data DIR"):
        read_documents([TextFile(file="nosuch.txt")], [tmp_path])


def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"one\ncaf\xe9\n")
    with pytest.raises(UserError, match=r"latin\.txt, line 2: not UTF-8 \(byte 0xe9 at column 4\)"):
        read_documents([TextFile(file="latin.txt")], [tmp_path])

"""Wherever text becomes arrays, its marks are those of the vocabulary; what answering reads with needs no PyTorch."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saccade.data.batches import SequencePairs
from saccade.data.encoded import Texts, Words
from saccade.data.labelled import tagged_batch, text_batch
from saccade.data.permute import permute
from saccade.data.ragged import Ragged, real_positions
from saccade.data.rows import Rows
from saccade.data.sentences import Corpus
from saccade.data.stream import Stream, encode_documents
from saccade.folder import read_config
from saccade.pipelines.pipeline import unreported
from saccade.sources.text import pad_sources
from saccade.tasks.language import LanguageTask
from saccade.tasks.masked import MaskedTask
from saccade.tasks.store import store
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.loop import Outcome

OTHER = Marks(pad=9, begin=7, end=8, start=6, mask=5)
"""Marks of another vocabulary, at other ids, in another order."""
SENTENCES = ["one two three four", "two cats see one dog", "four dogs"]
WITHOUT_TORCH = ["conllu", "encoded", "lexicon", "misspell", "noise", "phonemes", "ragged", "text"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return train_vocabulary(TokensConfig(vocabulary=300), SENTENCES, spaced=False)


@pytest.fixture(scope="module")
def other(vocabulary: Vocabulary) -> Vocabulary:
    """The same, but for its marks."""
    return Vocabulary(vocabulary.tokenizer, spaced=False, marks=OTHER)


def test_texts_stand_between_the_marks_of_their_vocabulary(other: Vocabulary) -> None:
    ids = other.encode(SENTENCES)
    found = Texts.of(other, SENTENCES, None, 64).arrays(np.array([2, 0]))
    lengths = [len(ids[i]) + 2 for i in (2, 0)]
    assert found.tokens_BT[0].tolist() == [7, *ids[2], 8] + [9] * (lengths[1] - lengths[0])
    assert found.tokens_BT[1].tolist() == [7, *ids[0], 8]
    assert found.mask_BT is not None
    assert found.mask_BT.sum(axis=1).tolist() == lengths
    assert found.segments_BT is None
    assert Texts.of(other, SENTENCES[:1], None, 64).arrays(np.array([0])).mask_BT is None


def test_second_texts_are_a_segment_of_their_own(other: Vocabulary) -> None:
    texts = Texts.of(other, SENTENCES[:2], [SENTENCES[2], SENTENCES[0]], 64)
    found = texts.arrays(np.array([0, 1]))
    assert found.segments_BT is not None
    for row, (first, second) in enumerate(((0, 2), (1, 0))):
        one, two = other.encode([SENTENCES[first], SENTENCES[second]])
        length = len(one) + len(two) + 3
        assert found.tokens_BT[row, :length].tolist() == [7, *one, 8, *two, 8]
        assert found.segments_BT[row, :length].tolist() == [0] * (len(one) + 2) + [1] * (len(two) + 1)


def test_words_begin_where_they_are_said_to(other: Vocabulary) -> None:
    sentences = [sentence.split() for sentence in SENTENCES]
    spaces = [[place > 0 for place in range(len(words))] for words in sentences]
    words = Words.of(other, sentences, spaces, 64)
    found = words.arrays(np.arange(3))
    for row, sentence in enumerate(sentences):
        pieces = other.encode([" " * (place > 0) + word for place, word in enumerate(sentence)], continues=True)
        begins = 1 + np.cumsum([0, *map(len, pieces[:-1])])
        assert np.flatnonzero(found.words_BT[row]).tolist() == begins.tolist()
        ids = [7, *(i for piece in pieces for i in piece), 8]
        assert found.tokens_BT[row].tolist() == ids + [9] * (found.tokens_BT.shape[1] - len(ids))
    assert words.counts.tolist() == [1, 1, 1]
    assert Words.of(other, sentences, spaces, 8).counts.min() > 0


def test_labelled_batches_are_the_arrays_as_tensors(vocabulary: Vocabulary) -> None:
    chosen = np.array([1, 2])
    texts = Texts.of(vocabulary, SENTENCES, SENTENCES[::-1], 64)
    arrays, batch = texts.arrays(chosen), text_batch(texts, chosen, np.array([4, 5, 6]))
    assert batch.labels_B.tolist() == [5, 6]
    for name in ("tokens_BT", "mask_BT", "segments_BT"):
        assert np.array_equal(getattr(batch, name).numpy(), getattr(arrays, name))
    sentences = [sentence.split() for sentence in SENTENCES]
    words = Words.of(vocabulary, sentences, [[True] * len(one) for one in sentences], 64)
    tags = Ragged.of([list(range(len(one))) for one in sentences])
    tagged, expected = tagged_batch(words, chosen, tags), words.arrays(chosen)
    assert tagged.labels_N.tolist() == [0, 1, 2, 3, 4, 0, 1]
    assert len(tagged.labels_N) == int(tagged.words_BT.sum())
    for name in ("tokens_BT", "mask_BT", "words_BT"):
        assert np.array_equal(getattr(tagged, name).numpy(), getattr(expected, name))


def test_pairs_begin_with_the_decoder_start_and_end_with_the_end() -> None:
    batch = SequencePairs(Ragged.of([[20], [21, 22]]), Ragged.of([[23, 24], [25]]), OTHER).batch(np.array([0, 1]))
    assert batch.source.tolist() == [[20, 8, 9], [21, 22, 8]]
    assert batch.target_BT.tolist() == [[6, 23, 24], [6, 25, 9]]
    assert batch.labels_BT.tolist() == [[23, 24, 8], [25, 8, 9]]
    assert batch.real_BT is not None
    assert batch.real_BT.tolist() == [[True] * 3, [True, True, False]]
    assert batch.rows(np.array([1])).real_BT.tolist() == [[True, True, False]]  # type: ignore[union-attr]
    assert pad_sources([[0, 1]], OTHER)[0].tolist() == [[0, 1, 8]]


def test_a_stream_ends_its_documents_with_the_end(other: Vocabulary) -> None:
    tokens = encode_documents(other, SENTENCES, marked=True)
    ids = other.encode(SENTENCES)
    assert tokens.tolist() == [i for text in ids for i in (7, *text)] + [7]
    batch = Stream(tokens, OTHER).batch(np.array([0]), len(tokens) + 1)
    assert batch.labels_BT[0].tolist() == [i for text in ids for i in (*text, 8)] + [9, 9]
    assert batch.real_BT is not None
    assert batch.real_BT[0].tolist() == [True] * (len(tokens) - 1) + [False] * 2
    assert batch.documents_BT is not None


def test_rows_and_orders_leave_marks_alone(other: Vocabulary) -> None:
    rows = Rows(Corpus.of(other, SENTENCES), OTHER, context=24, budget=64, seed=0)
    batch = rows.permuted(next(rows))
    for row in batch.tokens_BT.tolist():
        assert row[0] == 7
        assert 8 in row
    assert not set(batch.labels_BK[batch.real_BK].tolist()) & OTHER.special
    # What is a mark elsewhere is a word here.
    found = permute(torch.tensor([[7, 0, 8, 9]]), np.random.default_rng(0), OTHER, starts=np.zeros(1))
    assert found.labels_BK[found.real_BK].tolist() == [0]
    assert found.mask_BT is not None
    assert found.mask_BT.tolist() == [[True, True, True, False]]


@pytest.mark.parametrize("task", [LanguageTask(), MaskedTask()], ids=lambda task: task.name)
def test_a_stored_model_says_its_marks(task: Any, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES * 8), encoding="utf-8")
    recipe = task.recipe.read(
        {
            "name": "untrained",
            "data": {"train": [{"file": "text.txt", "documents": "lines"}], "hold": 0.5, "kind": "files"},
            "tokens": {"vocabulary": 300},
            "model": {"layers": 1, "width": 16, "heads": 2, "feedforward": 32, "context": 32},
            "train": {"steps": 1, "batch_tokens": 128},
        },
        where="test",
    )
    prepared = task.prepare(recipe, [tmp_path], tmp_path, resume=False)
    work = prepared.work
    outcome = Outcome(finished=True, step=0, scores={}, chosen="untrained", seconds=0.0)
    store(recipe, prepared, outcome, tmp_path, unreported)
    marks = Marks.read(read_config(tmp_path).settings["marks"], where="test")
    # The mask is the last row of what embeds the tokens.
    mask = len(work.model.encoder.embed.tokens.weight) - 1 if task.name == "masked" else None
    assert marks == Marks(mask=mask)


def test_real_positions() -> None:
    assert real_positions(np.array([[1, 2]]), 0) is None
    found = real_positions(np.array([[1, 0]]), 0)
    assert found is not None
    assert found.tolist() == [[True, False]]


def test_what_answering_reads_needs_no_torch() -> None:
    imports = "; ".join(f"import saccade.data.{name}" for name in WITHOUT_TORCH)
    code = f"import sys; {imports}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""A corpus that is encoded in chunks is the same as one that is encoded at once."""

import numpy as np
import pytest

from saccade.data import sentences
from saccade.data.sentences import Corpus
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary

DOCUMENTS = ["One cat. Two dogs came.", "Three.", "Four birds sang! Five? Six went home.", "Seven"]


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_chunks_make_no_difference(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = train_vocabulary(TokensConfig(kind="bytes"), DOCUMENTS)
    whole = Corpus.of(vocabulary, DOCUMENTS)
    monkeypatch.setattr(sentences, "CHUNK", chunk)
    parts = Corpus.of(vocabulary, DOCUMENTS)
    assert np.array_equal(whole.sentences.flat, parts.sentences.flat)
    assert np.array_equal(whole.sentences.starts, parts.sentences.starts)
    assert np.array_equal(whole.documents, parts.documents)


def test_no_documents_are_no_sentences() -> None:
    vocabulary = train_vocabulary(TokensConfig(kind="bytes"), DOCUMENTS)
    assert Corpus.of(vocabulary, []).tokens == 0

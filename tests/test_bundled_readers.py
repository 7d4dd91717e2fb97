"""The bundled models that read or go on with English: what they say is sense, and as good as their cards state."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import saccade
from saccade.data.conllu import read_conllu
from saccade.evaluate.classes import accuracy
from saccade.pipelines.load import model_path
from saccade.pipelines.pipeline import Request
from saccade.pipelines.tagger import Tagger
from saccade.tasks.tagging import answers

TREEBANK = Path(os.environ.get("SACCADE_DATA", "data")) / "ud_english_ewt/en_ewt-ud-test.conllu.gz"


def fillings(text: str) -> Iterator[str]:
    (answer,) = saccade.load("bert-mini").answer([text], Request(best=5))
    for filling in answer.best:
        yield from filling.words


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("she opened the [MASK] and went inside.", "door"),
        ("He [MASK] to school every day.", "went"),
        ("I have a cat and a [MASK].", "dog"),
    ],
)
def test_gaps_are_filled_with_words_that_fit(text: str, word: str) -> None:
    assert word in [found.strip() for found in fillings(text)]


def test_a_story_goes_on_in_words() -> None:
    (answer,) = saccade.load("stories").answer(["once upon a time"], Request(temperature=0, max_tokens=40))
    assert len(re.findall(r"\b(there|was|a|the|she|he|and|to)\b", answer.text)) > 5


def test_words_are_tagged() -> None:
    (tagged,) = saccade.load("tagger").answer(["The old cat sat on my mat."], Request())
    assert tagged.tags == ["DET", "ADJ", "NOUN", "VERB", "ADP", "PRON", "NOUN", "PUNCT"]


@pytest.mark.data
@pytest.mark.skipif(not TREEBANK.exists(), reason="ud_english_ewt is not in $SACCADE_DATA")
def test_the_taggers_card_states_what_is_measured() -> None:
    tagger: Tagger = saccade.load("tagger")
    found = accuracy(answers(tagger, list(read_conllu(TREEBANK))), bootstrap=0).value
    stated = re.search(r"test: accuracy ([\d.]+)", (model_path("tagger") / "README.md").read_text(encoding="utf-8"))
    assert stated is not None
    assert found == pytest.approx(float(stated[1]), abs=0.1)

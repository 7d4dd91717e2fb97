"""The bundled models do what the README says, and their cards say what was measured."""

import json
import os
import re
from pathlib import Path

import pytest

import saccade
from saccade.data.text import read_pairs
from saccade.evaluate.metrics import bleu
from saccade.pipelines.load import ZOO, bundled_models, model_path
from saccade.pipelines.translator import Translator
from saccade.tasks.sequence import by_source

DATA = Path(os.environ.get("SACCADE_DATA", "data"))
needs_tatoeba = pytest.mark.skipif(not (DATA / "tatoeba").is_dir(), reason="tatoeba is not in $SACCADE_DATA")


@pytest.fixture(scope="module")
def translator() -> Translator:
    loaded: Translator = saccade.load("en-es")
    return loaded


def plainly(text: str) -> str:
    """Capitals and the full stop may differ."""
    return text.lower().rstrip(".")


@pytest.mark.parametrize(
    ("english", "spanish"),
    [("this cat is very large", "este gato es muy grande"), ("we are eating bread", "estamos comiendo pan")],
)
def test_the_lectures_sentences_come_out_right(translator: Translator, english: str, spanish: str) -> None:
    assert plainly(translator(english).text) == spanish


def test_a_prefix_is_completed(translator: Translator) -> None:
    assert plainly(translator("this cat is very large", prefix="este gato es muy").text) == "este gato es muy grande"


@pytest.mark.parametrize("name", ["en-es", "en-es-rnn"])
def test_each_word_looks_at_its_translation(name: str) -> None:
    alignment = saccade.load(name)("this cat is very large").looks.alignment()
    looked_at = {
        word: alignment.source[row.argmax()] for word, row in zip(alignment.target, alignment.weights_TS, strict=True)
    }
    assert looked_at["gato"] == "cat"
    assert looked_at["muy"] == "very"
    assert looked_at["grande"] == "large"


def test_batched_is_alone_with_real_weights(translator: Translator) -> None:
    sentences = [
        "Good morning.",
        "Where is the train station?",
        "I have never seen such a thing in my whole life.",
        "No.",
    ]
    for together, sentence in zip(translator(sentences), sentences, strict=True):
        alone = translator(sentence)
        assert together.text == alone.text
        assert together.score == pytest.approx(alone.score, abs=1e-3)


def test_bundled_models_are_small_and_their_cards_complete() -> None:
    total = sum(file.stat().st_size for path in bundled_models() for file in path.iterdir())
    assert total < 60e6
    for names, most in (
        (["en-es"], 16e6),
        (["en-es-rnn"], 4e6),
        (["shakespeare", "stories", "prompts"], 10e6),
        (["bert-mini", "tagger"], 9e6),
        (["speller", "pronouncer"], 7e6),
        (["walker"], 3e6),
    ):
        # The limits are of models; a test part that a folder carries comes on top.
        folders = [ZOO / name for name in names if (ZOO / name).exists()]
        files = [file for folder in folders for file in folder.iterdir() if not file.name.startswith("test.")]
        assert sum(file.stat().st_size for file in files) < most, names
    for path in bundled_models():
        card = (path / "README.md").read_text(encoding="utf-8")
        for word in ("parameters:", "recipe:", "minutes", "test: ", "data:", "licence"):
            assert word in card, f"{path.name}: its card lacks {word}"
        assert json.loads((path / "config.json").read_text())["storage"] in ("int8", "float16")


@pytest.mark.data
@needs_tatoeba
def test_neither_example_sentence_was_trained_on() -> None:
    seen = {plainly(source) for source, _ in read_pairs([DATA / "tatoeba/eng-spa.train.tsv.gz"])}
    assert not seen & {"this cat is very large", "we are eating bread", "we're eating bread"}


@pytest.mark.data
@needs_tatoeba
@pytest.mark.parametrize("name", ["en-es", "en-es-rnn"])
def test_the_card_states_the_score_that_is_measured(name: str) -> None:
    # Greedy is within a point or two of the card's beam, at a fifth of its time: a wrong card is far off.
    sources, references = by_source(read_pairs([DATA / "tatoeba/eng-spa.test.tsv.gz"]))
    outputs = [translation.text for translation in saccade.load(name)(sources, beam=1)]
    card = (model_path(name) / "README.md").read_text(encoding="utf-8")
    stated = re.search(r"test: BLEU ([\d.]+)", card)
    assert stated is not None
    assert bleu(outputs, references).value == pytest.approx(float(stated[1]), abs=2.5)


@pytest.mark.data
@needs_tatoeba
def test_packing_costs_next_to_nothing(translator: Translator) -> None:
    # Greedy, because the plain arithmetic takes its time; bench/ compares with beams.
    sources, references = by_source(read_pairs([DATA / "tatoeba/eng-spa.test.tsv.gz"]))

    def score(translator: Translator) -> float:
        return bleu([translation.text for translation in translator(sources, beam=1)], references).value

    exact = score(saccade.load("en-es", "exact"))
    assert translator.choice.how == "int8"
    assert score(translator) == pytest.approx(exact, abs=0.3)
    assert score(saccade.load("en-es", "int16")) == pytest.approx(exact, abs=0.1)

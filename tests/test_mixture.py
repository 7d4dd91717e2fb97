"""Probabilities of classifiers: calibrated, and mixed with a linear model that answers without scikit-learn."""

import hashlib
import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import saccade
from saccade.data.ngrams import Ngrams, Sparse, counted
from saccade.data.table import Examples
from saccade.errors import UserError
from saccade.evaluate.calibration import class_calibration, fit_weights, log_softmax, weighted_loss
from saccade.folder import digest_of, read_folder
from saccade.pipelines.mixture import LINEAR, LinearModel, MixtureSettings, Probabilities
from saccade.pipelines.pipeline import unreported
from saccade.tasks.linear import LARGEST, fit_linear
from test_fit import ROWS, TINY, write_rows
from tiny import ask, insist_one_line

KEPT = Path(__file__).parent / "kept" / "classification"
TEXTS = [
    "A film to remember, I say",
    "a   film, a Film!",
    "x",
    "",
    "Ünïcode İstanbul ÇA",
    "don't\twell-made 3.5",
    "ab ab ab",
]
WORDS = {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"}
LETTERS = {"analyzer": "char_wb", "ngram_range": (2, 5)}


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that learnt next to nothing: its linear part says most."""
    room = tmp_path_factory.mktemp("mixed")
    rows = write_rows(room / "rows.tsv")
    changes = TINY | {"linear": "mixed", "train.steps": 4}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
        saccade.train("classification", rows, out=room / "model", settings=changes, quiet=True)
    return room / "model"


def dense(rows: Sparse, width: int) -> np.ndarray:
    whole = np.zeros((len(rows.ends), width))
    for row, (start, stop) in enumerate(zip(rows.starts, rows.ends, strict=True)):
        whole[row, rows.places[start:stop]] = rows.values[start:stop]
    return whole


# N-grams


@pytest.mark.parametrize(("kind", "options"), [("words", WORDS), ("letters", LETTERS)])
def test_ngrams_are_those_of_scikit_learn(kind: str, options: dict[str, Any]) -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
    def same(more: list[str]) -> None:
        training, others = [*TEXTS, "the old cat"], [*TEXTS, *more]
        vectorizer = text.TfidfVectorizer(sublinear_tf=True, **options).fit(training)
        expected = vectorizer.transform(others).toarray()
        known = Ngrams.learn(kind, counted(training, None, kind), most=10**6)
        assert len(known) == expected.shape[1]
        found = dense(known.weigh(counted(others, None, kind)), len(known))
        # The order is that of the hashes: each feature is known by its hash.
        columns = [hashed(ngram) for ngram in vectorizer.get_feature_names_out()]
        places = np.searchsorted(known.keys, np.array(columns, dtype=np.uint32))
        np.testing.assert_allclose(found[:, places], expected, atol=1e-6)

    same()


def hashed(ngram: str) -> int:
    return zlib.crc32(ngram.encode("utf-8", "surrogatepass"))


def test_the_most_frequent_ngrams_are_kept_whatever_the_order_of_the_texts() -> None:
    texts = ["a b", "a c", "a d", "b"]
    few = Ngrams.learn("words", counted(texts, None, "words"), most=2)
    assert set(few.keys.tolist()) == {hashed("a"), hashed("b")}
    again = Ngrams.learn("words", counted(texts[::-1], None, "words"), most=2)
    assert (again.keys == few.keys).all()


def test_the_ngrams_of_a_second_text_are_others() -> None:
    (one,), (other,) = counted(["cat"], ["dog"], "words"), counted(["dog"], ["cat"], "words")
    assert one.keys().isdisjoint(other.keys())


# The linear model


def test_it_answers_as_scikit_learn_does_up_to_rounding() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    classes = ["loud", "quiet"]
    examples = Examples([text for text, _ in ROWS], None, [classes.index(label) for _, label in ROWS], classes)
    found = fit_linear(examples, examples, unreported)
    assert found.accuracy(examples) == 100
    known = found.model.ngrams
    blocks = [dense(one.weigh(counted(examples.texts, None, one.kind)), len(one)) for one in known]
    strength = float(found.setting.rpartition("= ")[2])
    peer = linear_model.LogisticRegression(C=strength, max_iter=200, tol=1e-3)
    peer.fit(np.hstack(blocks), examples.labels)
    expected = peer.predict_log_proba(np.hstack(blocks))
    np.testing.assert_allclose(found.model.log_chances(examples.texts, None), expected, atol=0.03)


def test_many_classes_fit_into_two_megabytes() -> None:
    draw = np.random.default_rng(0)
    classes = [f"class {number}" for number in range(60)]
    words = ["".join(chr(97 + letter) for letter in draw.integers(26, size=6)) for _ in range(6000)]
    texts = [" ".join(draw.choice(words, 12)) for _ in range(600)]
    rows = {kind: counted(texts, None, kind) for kind in ("words", "letters")}
    ngrams = [Ngrams.learn(kind, rows[kind], LARGEST // (12 + len(classes)) // 2) for kind in rows]
    weights = draw.normal(size=(sum(map(len, ngrams)), len(classes)))
    assert len(LinearModel.of(ngrams, weights, np.zeros(len(classes))).packed()) <= 2_000_000


def test_a_stored_model_mixes_the_same_alone_and_in_a_batch(mixed: Path) -> None:
    classifier = saccade.load(mixed)
    assert classifier.mixture.settings.linear > 0
    texts = ["the cat sleeps 3", "the owl sings 4", "a text of words that were never seen", "the cat\tsleeps"]
    together = classifier(texts)
    for text, one in zip(texts, together, strict=True):
        assert classifier(text).score == pytest.approx(one.score, rel=1e-3)
    assert [one.text for one in together[:2]] == ["quiet", "loud"]
    outputs = classifier.outputs(texts[:2], None)
    classifier.mixture = Probabilities()
    own = classifier.outputs(texts[:2], None)
    linear = LinearModel.read(read_folder(mixed), 2)
    weights = MixtureSettings.read(read_folder(mixed).table("probabilities"), where="test")
    expected = weights.encoder * own + weights.linear * linear.log_chances(texts[:2], None)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)


def test_card_doctor_and_evaluate_tell_of_it(mixed: Path) -> None:
    card = (mixed / "README.md").read_text()
    assert "linear model on n-grams of words and letters" in card
    assert "test, linear model on n-grams: accuracy" in card
    assert "linear model on n-grams" in ask("doctor", mixed).out
    said = ask("evaluate", mixed, mixed.parent / "rows.tsv")
    assert said.lines[-1].startswith("calibration error "), said.err
    assert (mixed / LINEAR).stat().st_size < 2_000_000


def test_a_folder_of_an_earlier_version_has_temperature_one() -> None:
    classifier = saccade.load(KEPT)
    assert not (KEPT / LINEAR).exists()
    assert classifier.mixture.settings == MixtureSettings(encoder=1.0, linear=0.0)
    assert classifier("one cat").score == pytest.approx(
        np.exp(log_softmax(classifier.outputs(["one cat"], None))).max()
    )


def damaged(arrays: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    keys = arrays["words.keys"]
    return {
        "is missing, unknown": {name: array for name, array in arrays.items() if name != "scale"},
        "or of another type": arrays | {"weights": arrays["weights"].astype(np.float32)},
        "not \\(\\d": arrays | {"weights": arrays["weights"][:, :1].copy()},
        "bias is": arrays | {"bias": np.zeros(3, dtype=np.float32)},
        "NaN": arrays | {"scale": np.full_like(arrays["scale"], np.nan)},
        "rising order": arrays | {"words.keys": keys[::-1].copy()},
        "letters.rarity": {name: array for name, array in arrays.items() if name != "letters.rarity"}
        | {"letters.keys": keys},
    }


def test_nothing_in_the_file_is_believed(mixed: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(mixed, tmp_path / "model"))
    whole = (folder / LINEAR).read_bytes()
    contents: list[tuple[str, bytes]] = [
        (problem, save_arrays(arrays)) for problem, arrays in damaged(load_arrays(whole)).items()
    ]
    contents += [("cannot be read", b""), ("cannot be read", b"\xff" * 100), ("at most", bytes(9 * 2**20))]
    for problem, content in contents:
        (folder / LINEAR).write_bytes(content)
        config = json.loads((folder / "config.json").read_text())
        config["sha256"][LINEAR] = hashlib.sha256(content).hexdigest()
        config["sha256"]["config.json"] = digest_of(config)
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(UserError, match=problem):
            saccade.load(folder)
    (folder / LINEAR).write_bytes(whole)
    insist_one_line(ask("classify", "x", "--model", folder), 1, [LINEAR, "damaged: its SHA-256"])
    (folder / LINEAR).unlink()
    insist_one_line(ask("classify", "x", "--model", folder), 1, [LINEAR])


# Calibration


def drawn(count: int, classes: int, sure: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and labels that follow softmax(logits / sure)."""
    draw = np.random.default_rng(seed)
    logits_NC = draw.normal(size=(count, classes)) * 2
    chances_NC = np.exp(log_softmax(logits_NC))
    gold_N = np.array([draw.choice(classes, p=chances) for chances in chances_NC])
    return logits_NC * sure, gold_N


@pytest.mark.parametrize("sure", [0.3, 1.0, 4.0])
def test_the_temperature_is_found(sure: float) -> None:
    logits_NC, gold_N = drawn(4000, 3, sure)
    chances_NC = log_softmax(logits_NC)
    [weight] = fit_weights([chances_NC], gold_N)
    assert 1 / weight == pytest.approx(sure, rel=0.08)
    assert class_calibration(weight * chances_NC, gold_N).value < 3


def test_the_weights_are_the_best_there_are() -> None:
    one_NC, gold_N = drawn(500, 4, 2.0)
    other_NC = log_softmax(one_NC + np.random.default_rng(1).normal(size=one_NC.shape))
    parts = [log_softmax(one_NC), other_NC]
    best = fit_weights(parts, gold_N)
    least = weighted_loss(parts, best, gold_N)
    for step in ((0.03, 0), (-0.03, 0), (0, 0.03), (0, -0.03)):
        moved = [max(0.0, weight + more) for weight, more in zip(best, step, strict=True)]
        assert weighted_loss(parts, moved, gold_N) >= least - 1e-4


def test_a_part_that_only_misleads_gets_no_weight() -> None:
    logits_NC, gold_N = drawn(800, 3, 1.0)
    good, bad = fit_weights([log_softmax(logits_NC), log_softmax(-logits_NC)], gold_N)
    assert good - bad == pytest.approx(1, abs=0.15)
    assert min(good, bad) >= 0


def test_always_right_is_not_sure_of_everything() -> None:
    logits_NC = np.eye(2)[np.arange(40) % 2] * 9
    [weight] = fit_weights([log_softmax(logits_NC)], np.arange(40) % 2)
    assert 0.9 < np.exp(log_softmax(weight * logits_NC)).max() < 0.99


def test_the_calibration_error_of_known_answers() -> None:
    chances_NC = np.array([[0.9, 0.1]] * 10 + [[0.3, 0.7]] * 10)
    gold_N = np.array([0] * 9 + [1] + [1] * 5 + [0] * 5)
    assert class_calibration(np.log(chances_NC), gold_N).value == pytest.approx(100 * (0.0 + 0.2) / 2)
    assert class_calibration(np.eye(2) * 1e3, np.array([0, 1])).value == 0

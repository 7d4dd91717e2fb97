"""Which arithmetic is used: chosen by what the kernels know, or by hand, and shown with its reason."""

import json
from pathlib import Path

import pytest

import saccade
from saccade import native
from saccade.runtime import kernels, measure
from saccade.runtime.measure import ROWS, time_packings
from tiny import SENTENCES, ask, write_tiny_language_model, write_tiny_model


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.001)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("packing") / "model")


def test_every_packing_is_measured_and_only_those_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    found = time_packings()
    assert set(found) == ({"exact", "int16", "int8"} if native.kernels() else {"exact"})
    assert all(len(times) == len(ROWS) for times in found.values())
    monkeypatch.setattr(native, "_load", lambda: "no C compiler")
    assert set(time_packings()) == {"exact"}


def test_doctor_shows_the_machine() -> None:
    said = ask("doctor")
    assert said.code == 0
    assert "C kernels" in said.out
    record = json.loads(ask("doctor", "--format", "json").out)
    assert record["kernels"] == (native.why_not() or "compiled for this machine")
    assert "exact" in record["microseconds"]


def test_doctor_shows_what_runs_a_model_and_why(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if native.kernels():
        assert "kernels, int16: the C kernels know all parts" in ask("doctor", model).out
        later = write_tiny_language_model(tmp_path / "later", name="later turns")
        assert "kernels, int16: the C kernels know all parts" in ask("doctor", later).out
        monkeypatch.setattr(kernels, "KNOWN_NORMS", frozenset({"layer"}))
        assert "plain, exact: the C kernels do not know norm = 'rms'" in ask("doctor", later).out
    assert "kind = 'recurrent'" in ask("doctor", "en-es-rnn").out
    monkeypatch.setattr(native, "_load", lambda: "no C compiler")
    assert "no C kernels here: no C compiler" in ask("doctor", model).out


@pytest.mark.parametrize("option", ["--exact", "--int8"])
def test_the_arithmetic_can_be_chosen(model: Path, option: str) -> None:
    said = ask("run", model, SENTENCES[0], option, "--format", "json")
    how = option.removeprefix("--")
    expected = saccade.load(model, how)(SENTENCES[0])  # type: ignore[arg-type]
    assert json.loads(said.out) == expected.record()


def test_a_packing_that_is_not_there_is_not_replaced_silently(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_load", lambda: "no C compiler")
    said = ask("run", model, SENTENCES[0], "--int8")
    assert said.code == 0
    assert "int8 is not to be had here" in said.err
    assert "no C compiler" in said.err


def test_the_default_is_near_lossless(model: Path) -> None:
    exact, default = saccade.load(model, "exact"), saccade.load(model)
    for sentence in SENTENCES:
        assert default(sentence).score == pytest.approx(exact(sentence).score, abs=5e-2)


def test_both_choices_at_once_are_refused(model: Path) -> None:
    said = ask("run", model, "one", "--exact", "--int8")
    assert said.code == 2
    assert "exclude each other" in said.err

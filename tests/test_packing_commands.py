"""Which arithmetic is used, chosen by a measurement or by hand, and shown."""

import json
from pathlib import Path
from unittest import mock

import pytest
import torch

import saccade
from saccade import native
from saccade.decode import measure, timing
from saccade.decode.measure import Measurement, fastest, remembered
from tiny import SENTENCES, ask, write_tiny_model


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "memory_path", lambda: tmp_path / "cache" / "packing.json")
    monkeypatch.setattr(timing, "SECONDS", 0.001)
    fastest.cache_clear()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("packing") / "model")


def test_the_least_time_over_all_rows_wins_among_the_near_lossless() -> None:
    times = {"exact": [10.0, 10.0, 10.0], "fp16": [5.0, 9.0, 9.0], "int16": [8.0, 6.0, 6.0], "int8": [1.0, 1.0, 1.0]}
    assert Measurement(times).fastest == "int16"  # type: ignore[arg-type]
    assert Measurement(times | {"fp16": [2.0, 2.0, 2.0]}).fastest == "fp16"  # type: ignore[arg-type]
    assert Measurement({"exact": [1.0], "int8": [0.1]}).fastest == "exact"


def test_a_measurement_is_made_once_and_remembered() -> None:
    found = remembered()
    assert set(found.microseconds) >= {"exact"}
    with mock.patch.object(measure, "measure", side_effect=AssertionError("measured again")):
        assert remembered() == found


def test_measuring_leaves_the_random_numbers_alone() -> None:
    """Else a training that measures at its first validation would end unlike one that remembers."""
    before = torch.get_rng_state()
    measure.measure()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("content", ["", "{", '{"about": 1}', '{"about": [], "microseconds": {"exact": [1]}}'])
def test_a_measurement_of_elsewhere_or_damaged_is_made_anew(content: str) -> None:
    measure.memory_path().parent.mkdir(parents=True)
    measure.memory_path().write_text(content)
    assert len(remembered().microseconds["exact"]) == len(timing.ROWS)


def test_an_operator_that_is_missing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_load", lambda: "no C compiler")
    found = measure.measure()
    assert "int16" not in found.microseconds
    assert found.fastest in ("fp16", "exact")


def test_nowhere_to_remember_is_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(measure, "memory_path", lambda: tmp_path / "file" / "packing.json")
    assert fastest() in ("int16", "fp16", "exact")


def test_doctor_shows_what_is_used() -> None:
    said = ask("doctor")
    assert said.code == 0
    assert "used by default" in said.out
    record = json.loads(ask("doctor", "--format", "json").out)
    assert record["packing"] == fastest()
    assert record["kernels"] == (native.why_not() or "compiled for this machine")


@pytest.mark.parametrize("option", ["--exact", "--int8"])
def test_the_arithmetic_can_be_chosen(model: Path, option: str) -> None:
    said = ask("run", model, SENTENCES[0], option, "--format", "json")
    how = option.removeprefix("--")
    expected = saccade.load(model, how)(SENTENCES[0])  # type: ignore[arg-type]
    assert json.loads(said.out) == expected.record()


def test_the_default_is_near_lossless(model: Path) -> None:
    exact, default = saccade.load(model, "exact"), saccade.load(model)
    for sentence in SENTENCES:
        assert default(sentence).score == pytest.approx(exact(sentence).score, abs=5e-2)


def test_both_choices_at_once_are_refused(model: Path) -> None:
    said = ask("run", model, "one", "--exact", "--int8")
    assert said.code == 2
    assert "exclude each other" in said.err

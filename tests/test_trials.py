"""The best of several trainings: kept, told, and the same bit for bit however often it was killed."""

import json
import shutil
from pathlib import Path

import pytest

import saccade
from crash import Kill, batter, being_written, digests, undisturbed
from saccade.config import override, read_toml, to_toml
from saccade.errors import UserError
from saccade.tasks.training import Show, go_on
from saccade.tasks.trials import Trials
from test_fit import TINY, stop_at, write_rows
from toy_trainings import write_toy

TRIED = TINY | {
    "name": "toy",
    "trials": [{"seed": 1, "rate": 1e-5}, {"seed": 2, "rate": 1e-2}, {"seed": 3, "rate": 1e-4}],
}


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.tsv")


def test_the_best_is_kept_and_is_the_training_it_would_be_alone(rows: Path, tmp_path: Path) -> None:
    saccade.train("classification", rows, out=tmp_path / "three", settings=TRIED, quiet=True)
    found = Trials.read(json.loads((tmp_path / "three/trials.json").read_text()), where="test")
    assert [result.rate for result in found.results] == [1e-5, 1e-2, 1e-4]
    assert found.best == 1, "the rates beside it are too low to learn anything in twelve steps"
    card = (tmp_path / "three/README.md").read_text()
    assert "kept of these: seed 2, rate 0.01" in card
    assert "recipe: toy, seed 2" in card
    assert not (tmp_path / "three/trials").exists()
    alone = TINY | {"name": "toy", "train.seed": 2, "train.adam.rate": 1e-2}
    saccade.train("classification", rows, out=tmp_path / "one", settings=alone, quiet=True)
    assert digests(tmp_path / "three") == digests(tmp_path / "one")


@pytest.mark.parametrize("step", [2, 6])
def test_a_stopped_one_goes_on_bit_for_bit(rows: Path, tmp_path: Path, step: int) -> None:
    """Stopped in the first of them, and again in the next."""
    run = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, step)
        with pytest.raises(KeyboardInterrupt, match=f"stopped after step {step} and saved"):
            saccade.train("classification", rows, out=run, settings=TRIED, quiet=True)
        while not go_on(run, [], Show(quiet=True)).outcome.finished:
            pass
    saccade.train("classification", rows, out=tmp_path / "whole", settings=TRIED, quiet=True)
    assert digests(run) == digests(tmp_path / "whole")
    assert (run / "config.json").read_bytes() == (tmp_path / "whole/config.json").read_bytes()


def test_killed_at_any_moment_it_ends_the_same(tmp_path: Path) -> None:
    recipe = write_toy(tmp_path, task="classification", steps=8)
    trials = "trials=[{seed=1, rate=3e-3}, {seed=2, rate=1e-3}]"
    recipe.write_text(to_toml(override(read_toml(recipe), [trials, "linear=mixed"])), encoding="utf-8")
    expected = undisturbed(recipe, tmp_path / "undisturbed")
    config = (tmp_path / "undisturbed/config.json").read_bytes()
    for told in batter(recipe, tmp_path / "battered", kills=4, seed=1):
        if not isinstance(told, Kill):
            assert digests(told) == expected
            assert (told / "config.json").read_bytes() == config, "temperature and mixture too"
            assert being_written(told) == {}


def test_damaged_results_are_one_clear_line(rows: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, 6)
        with pytest.raises(KeyboardInterrupt):
            saccade.train("classification", rows, out=run, settings=TRIED, quiet=True)
    for content in (b"", b"[]", b'{"results": [3]}'):
        (run / "trials.json").write_bytes(content)
        with pytest.raises(UserError, match=r"trials\.json: damaged"):
            go_on(run, [], Show(quiet=True))
    shutil.rmtree(run)

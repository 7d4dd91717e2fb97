"""The figures of a run: the same in every file, once each after a resume, and a line that fits the terminal."""

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from saccade.errors import UserError
from saccade.train.bar import TrainingBar, fitting
from saccade.train.metrics import MetricFiles

STEPS = [{"step": step, "loss": 1 / step, "rate": 1e-3} for step in range(1, 9)]
FIGURES = [("loss 5.123", 5), ("rate 1.50e-03", 2), ("12,345 target tokens/s", 4), ("64 GFLOP/s", 1), ("epoch 1.23", 3)]


def run(folder: Path, after: int, *entries: dict[str, Any], **options: bool) -> None:
    files = MetricFiles(folder, **options)
    files.start(after)
    for entry in entries:
        files.write(entry)
    files.close()


def json_rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def csv_rows(folder: Path) -> list[dict[str, float]]:
    with (folder / "metrics.csv").open(newline="") as file:
        return [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]


def test_the_table_has_the_same_numbers_and_none_twice_after_a_resume(tmp_path: Path) -> None:
    validation = {"step": 4, "validation": {"loss": 0.5, "bleu": 12.25}}
    run(tmp_path, 0, *STEPS[:4], validation, *STEPS[4:7])
    run(tmp_path, 4, *STEPS[4:])  # killed after step 7, resumed from step 4
    assert json_rows(tmp_path) == [*STEPS[:4], validation, *STEPS[4:]]
    flat = {"step": 4, "validation.loss": 0.5, "validation.bleu": 12.25}
    assert csv_rows(tmp_path) == [*STEPS[:4], flat, *STEPS[4:]]


def test_a_table_that_was_cut_short_is_whole_again(tmp_path: Path) -> None:
    run(tmp_path, 0, *STEPS[:3])
    (tmp_path / "metrics.csv").write_text("step,lo")
    run(tmp_path, 3, STEPS[3])
    assert csv_rows(tmp_path) == STEPS[:4]


def test_tensorboard_that_is_not_there_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(UserError, match=r"pip install 'saccade\[tensorboard\]'"):
        MetricFiles(tmp_path, tensorboard=True)


def test_tensorboard_gets_every_figure(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event

    run(tmp_path, 0, *STEPS[:2], {"step": 2, "validation": {"bleu": 12.25}}, tensorboard=True)
    (file,) = (tmp_path / "tensorboard").iterdir()
    content, found = file.read_bytes(), {}
    while content:  # length, its checksum, the event, its checksum
        size = int.from_bytes(content[:8], "little")
        event = Event.FromString(content[12 : 12 + size])
        found |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
        content = content[16 + size :]
    assert found[("validation/bleu", 2)] == 12.25
    assert found[("training/loss", 1)] == 1
    assert found[("training/loss", 2)] == 0.5


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("steps", [300, 100_000])
def test_the_training_line_keeps_step_and_remaining_time(width: int, steps: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    bar = TrainingBar(console, live=False)
    bar.start(20, steps)
    bar.update(30, FIGURES)
    console.print(bar.bar.get_renderable())
    (line,) = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(line.rstrip()) <= width
    assert line.split()[0] == "step"
    assert re.search(r"ETA [-\d]:[-\d]{2}:[-\d]{2}$", line.rstrip())
    assert "30/" in line
    assert str(steps) in line
    assert "loss 5.123" in line
    assert ("GFLOP/s" in line) == (width == 200)
    assert ("tokens/s" in line) == (width >= 80)


def test_the_least_important_figure_is_left_out_first() -> None:
    lines = [fitting(FIGURES, room) for room in range(120)]
    counts = [len(line.split("  ")) if line else 0 for line in lines]
    assert counts == sorted(counts)
    assert "GFLOP/s" not in next(line for line in reversed(lines) if line != lines[-1])
    assert next(line for line in lines if line) == "loss 5.123"

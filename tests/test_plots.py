"""Plots of studies and trainings: labelled axes, legends beside the lines, text that stays text."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from saccade.study.plots import Panel, draw_panels
from saccade.train.log import draw_curve

LINES = {name: [(1.0, 1.0), (2.0, float(n))] for n, name in enumerate(["one line", "another", "a third"])}


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are written instead of the files."""
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **options: figures.append(self))
    return figures


def check(figure: Figure) -> None:
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        if (legend := axes.get_legend()) is not None:
            assert not legend.get_window_extent().overlaps(axes.get_window_extent()), "the legend covers lines"


def test_legends_of_studies_cover_nothing(saved: list[Figure], tmp_path: Path) -> None:
    draw_panels([Panel("title", "length", LINES, "seconds")] * 2, tmp_path / "x.png")
    assert saved[0].axes[0].get_legend() is not None
    check(saved[0])


def test_the_curve_of_a_training_has_labels(saved: list[Figure], tmp_path: Path) -> None:
    entries = [{"step": step, "loss": 1 / step} for step in range(1, 9)]
    scores = [{"step": step, "validation": {"bleu": step, "bleu.one": step, "loss": step}} for step in (4, 8)]
    draw_curve([*entries, *scores], tmp_path / "curve.png")
    assert [axes.get_ylabel() for axes in saved[0].axes] == ["loss", "bleu", "loss"]
    check(saved[0])


def test_text_in_an_svg_is_text(tmp_path: Path) -> None:
    content = draw_panels([Panel("the title", "length", LINES, "seconds")], tmp_path / "x.svg").read_text("utf-8")
    for text in ("the title", "seconds", "one line"):
        assert f">{text}<" in content

"""Line plots in the style of all reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Line = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One set of axes with some named lines."""

    title: str
    across: str
    lines: Mapping[str, Line]
    up: str = ""
    logarithmic: tuple[bool, bool] = (False, False)
    """Of the x and y axis."""
    faint: Mapping[str, Line] | None = None
    """Lines that only guide the eye."""
    dots: Mapping[str, Line] | None = None
    """Points that are not joined."""


def draw_panels(panels: Sequence[Panel], path: Path, columns: int = 3) -> Path:
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.4 * columns, 3.4 * rows), layout="constrained")
    for number, panel in enumerate(panels, 1):
        axes = figure.add_subplot(rows, columns, number)
        for name, points in panel.lines.items():
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1.2, label=name)
        for name, points in (panel.faint or {}).items():
            if points:
                axes.plot(*zip(*points, strict=True), linestyle=":", linewidth=1, color="#888888", label=name)
        for name, points in (panel.dots or {}).items():
            axes.plot(*zip(*points, strict=True), linestyle="", marker=".", color="#555555", label=name)
        if panel.logarithmic[0]:
            axes.set_xscale("log", base=2)
        if panel.logarithmic[1]:
            axes.set_yscale("log")
        axes.set_title(panel.title, fontsize=10)
        axes.set_xlabel(panel.across)
        axes.set_ylabel(panel.up)
        axes.grid(alpha=0.3)
        if axes.lines:
            # Below the axes: inside, a legend covers lines, wherever it stands.
            axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False)
    return save_figure(figure, path)


def save_figure(figure: "Figure", path: Path) -> Path:
    from matplotlib import rc_context

    try:
        with rc_context({"svg.fonttype": "none"}):  # text in an SVG stays text
            figure.savefig(path, dpi=120)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    return path


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"

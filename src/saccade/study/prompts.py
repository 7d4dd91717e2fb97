"""In-context learning as a picture: accuracy against the number of examples a prompt shows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from saccade.evaluate.curve import Point
from saccade.study.plots import save_figure


def draw_curves(
    curves: Mapping[str, Sequence[Point]], path: Path, *, title: str, mean: str = "", apart: str = ""
) -> Path:
    """One line per name: `mean` is thick, with its 95 % interval; `apart` is dashed.

    A single line is drawn as the mean.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    counts = sorted({point.k for points in curves.values() for point in points})
    # Counts begin with 0 and double: they are drawn at equal distances.
    places = {count: place for place, count in enumerate(counts)}
    for name, points in curves.items():
        at = [places[point.k] for point in points]
        values = [point.accuracy for point in points]
        if name == mean or len(curves) == 1:
            low, high = zip(*(point.interval for point in points), strict=True)
            axes.fill_between(at, low, high, color="black", alpha=0.12, linewidth=0)
            axes.plot(at, values, marker="o", linewidth=3, color="black", label=name, zorder=3)
        else:
            style = "--" if name == apart else "-"
            axes.plot(at, values, marker="o", markersize=3, linewidth=1.2, linestyle=style, label=name)
    axes.set_xticks(range(len(counts)), [str(count) for count in counts])
    axes.set_ylim(-3, 103)
    axes.set_xlabel("examples in the prompt")
    axes.set_ylabel("right answers, %")
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    if len(curves) > 1:
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return save_figure(figure, path)

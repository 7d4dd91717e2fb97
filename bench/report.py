"""A comparison's outcome: printed, and written as a Markdown table and a plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

Values = dict[str, list[float]]
"""Every single measurement of every engine."""
COLUMNS = 4


@dataclass(frozen=True)
class Report:
    title: str
    about: list[str]
    """Paragraphs: what was measured, and how."""
    header: list[str]
    rows: list[list[str]]
    unit: str
    """What the values count."""
    panels: dict[str, Values]
    """One plot for each kind of work, by its name."""
    digits: int = 0
    """Decimals that mean something."""


def write_report(report: Report, name: str, folder: Path) -> None:
    """Print the table, and write it as `folder/name.md` with the plot `folder/name.png`."""
    table = markdown_table(report.header, report.rows)
    print(table)
    folder.mkdir(parents=True, exist_ok=True)
    each = [
        f"- {f'{panel}, ' if panel else ''}{engine}: {', '.join(f'{value:,.{report.digits}f}' for value in measured)}"
        for panel, values in report.panels.items()
        for engine, measured in values.items()
    ]
    parts = [
        f"# {report.title}",
        *report.about,
        table,
        f"![{report.title}]({name}.png)",
        f"Every measurement, in {report.unit}, in the order of the rounds:",
        "\n".join(each),
    ]
    (folder / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    draw_panels(report, folder / f"{name}.png")
    print(f"\nwritten: {folder / name}.md, {folder / name}.png")


def spread(values: Sequence[float], digits: int = 0) -> str:
    return f"{min(values):,.{digits}f}–{max(values):,.{digits}f}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded so that it also reads well in a terminal: the first column left, numbers right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            f"{cell:<{width}}" if column == 0 else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if column == 0 else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return "\n".join([line(header), line(rule), *map(line, rows)])


def draw_panels(report: Report, path: Path) -> None:
    """The medians as bars, from the least to the most measured as a line."""
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(report.panels))
    lines = -(-len(report.panels) // columns)
    most = max(len(values) for values in report.panels.values())
    wide = 7 if columns == 1 else 4.5 * columns
    figure = Figure(figsize=(wide, lines * (1.2 + 0.5 * most)), layout="constrained")
    for number, (panel, values) in enumerate(report.panels.items(), 1):
        axes = figure.add_subplot(lines, columns, number)
        _draw_bars(axes, values, report.digits)
        axes.set_title(panel or report.title)
    figure.supxlabel(f"{report.unit} (median; line: least to most)")
    figure.savefig(path, dpi=130)


def _draw_bars(axes: Any, values: Values, digits: int) -> None:
    engines = list(values)[::-1]
    middles = [median(values[engine]) for engine in engines]
    below = [middle - min(values[engine]) for middle, engine in zip(middles, engines, strict=True)]
    above = [max(values[engine]) - middle for middle, engine in zip(middles, engines, strict=True)]
    axes.barh(engines, middles, xerr=[below, above], capsize=4, color="#4c78a8", height=0.6)
    for place, (engine, middle) in enumerate(zip(engines, middles, strict=True)):
        axes.text(max(values[engine]), place, f"  {middle:,.{digits}f}", va="center", fontweight="bold")
    axes.margins(x=0.2)
    axes.spines[["top", "right"]].set_visible(False)

"""A comparison's outcome: printed, and written as a Markdown table and a plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Report:
    title: str
    about: list[str]
    """Paragraphs: what was measured, and how."""
    header: list[str]
    rows: list[list[str]]
    unit: str
    """What the values count, more being better."""
    values: dict[str, list[float]]
    """Every single measurement of every engine."""


def write_report(report: Report, name: str, folder: Path) -> None:
    """Print the table, and write it as `folder/name.md` with the plot `folder/name.png`."""
    table = markdown_table(report.header, report.rows)
    print(table)
    folder.mkdir(parents=True, exist_ok=True)
    each = [
        f"- {engine}: {', '.join(f'{value:,.0f}' for value in measured)}" for engine, measured in report.values.items()
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
    draw_bars(report, folder / f"{name}.png")
    print(f"\nwritten: {folder / name}.md, {folder / name}.png")


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


def draw_bars(report: Report, path: Path) -> None:
    """The medians as bars, from the least to the most measured as a line."""
    from matplotlib.figure import Figure

    engines = list(report.values)[::-1]
    middles = [median(report.values[engine]) for engine in engines]
    below = [middle - min(report.values[engine]) for middle, engine in zip(middles, engines, strict=True)]
    above = [max(report.values[engine]) - middle for middle, engine in zip(middles, engines, strict=True)]
    figure = Figure(figsize=(7, 1.2 + 0.5 * len(engines)), layout="constrained")
    axes = figure.add_subplot()
    axes.barh(engines, middles, xerr=[below, above], capsize=4, color="#4c78a8", height=0.6)
    for place, middle in enumerate(middles):
        axes.text(0, place, f"  {middle:,.0f}", va="center", color="white", fontweight="bold")
    axes.set_xlabel(f"{report.unit} (median; line: least to most)")
    axes.set_title(report.title)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)

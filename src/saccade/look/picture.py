"""An alignment as a heat-map: PNG, SVG, or blocks of colour in the terminal."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from saccade.errors import UserError, WrongUse
from saccade.look.record import Alignment

SUFFIXES = (".png", ".svg")


def check_suffix(path: Path) -> None:
    """Refuse a picture that cannot be drawn before any work is done for it."""
    if path.suffix.lower() not in SUFFIXES:
        raise WrongUse(f"{path}: pictures are {' or '.join(SUFFIXES)}; a bare --look draws in the terminal")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")


def draw(alignment: Alignment, path: Path) -> Path:
    """Source words from left to right, target words downwards; darker is more."""
    from matplotlib.figure import Figure

    check_suffix(path)
    rows, columns = alignment.weights_TS.shape
    longest = max(len(word) for word in alignment.target)
    figure = Figure(figsize=(1.6 + 0.08 * longest + 0.42 * columns, 1.6 + 0.36 * rows), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(alignment.weights_TS, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    # Words are words: a pair of dollars is no formula.
    axes.set_xticks(range(columns), alignment.source, rotation=45, ha="left", rotation_mode="anchor", parse_math=False)
    axes.xaxis.tick_top()
    axes.set_yticks(range(rows), alignment.target, parse_math=False)
    axes.tick_params(length=0)
    axes.set_xticks([edge - 0.5 for edge in range(1, columns)], minor=True)
    axes.set_yticks([edge - 0.5 for edge in range(1, rows)], minor=True)
    axes.grid(which="minor", color="#dddddd", linewidth=0.6)
    axes.tick_params(which="minor", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(alignment.title, fontsize=8, color="#555555")
    figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    return path


def draw_in_terminal(alignment: Alignment, console: Console) -> None:
    """One row per target word; every cell is a block of colour with its per cent."""
    cell = 4
    margin = max(len(word) for word in alignment.target) + 2
    # Source words stand slanted down the columns they head, so that any length fits.
    for number, word in enumerate(alignment.source):
        bars = "".join("│".ljust(cell) for _ in range(number))
        console.print(Text(" " * margin + bars + "╭ " + word), soft_wrap=True)
    for word, row in zip(alignment.target, alignment.weights_TS, strict=True):
        line = Text(word.rjust(margin - 2) + "  ")
        for weight in row:
            shade = int(255 - 200 * min(1.0, float(weight)))
            ink = "black" if weight < 0.6 else "white"
            line.append(f"{100 * weight:3.0f} ", style=f"{ink} on rgb({shade},{shade},255)")
        console.print(line, soft_wrap=True)
    console.print(Text(" " * margin + alignment.title + ", per cent", style="dim"), soft_wrap=True)

"""An alignment as a heat-map: PNG, SVG, or blocks of colour in the terminal."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from saccade.errors import UserError, WrongUse
from saccade.folder import replace_file
from saccade.look.heatmap import Heatmap
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
    check_suffix(path)
    heatmap = Heatmap(alignment.weights_TS, alignment.source, alignment.target, alignment.title)
    replace_file(path, heatmap.svg() if path.suffix.lower() == ".svg" else heatmap.png())
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

"""An alignment as blocks of colour in the terminal, never wider than it."""

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from saccade.look.alignment import Alignment

CELL = 4
"""Columns of the terminal for one weight: three digits and a space."""


def draw_in_terminal(alignments: Sequence[Alignment], console: Console) -> None:
    """One row per target word; every cell is a block of colour with its per cent. What is too wide is drawn in panels,
    one below the other."""
    for number, alignment in enumerate(alignments):
        if number:
            console.print()
        _draw(alignment, console)


def _draw(alignment: Alignment, console: Console) -> None:
    room = max(24, console.width)
    margin = min(max(cell_len(word) for word in alignment.target), room // 3) + 2
    count = len(alignment.source)
    # The header of a panel's last column needs some letters of its word.
    fitting = max(1, (room - margin - min(8, max(cell_len(word) for word in alignment.source))) // CELL)
    if margin + CELL * count + 2 <= room:
        fitting = count
    panels = -(-count // fitting)
    across = -(-count // panels)  # even panels, rather than a last one of a single column
    for first in range(0, count, across):
        shown = range(first, min(first + across, count))
        _panel(alignment, shown, margin, room, console)
        if panels > 1:
            said = f"columns {shown[0] + 1} to {shown[-1] + 1} of {count}"
            console.print(Text(" " * margin + said, style="dim"), soft_wrap=True)
    caption = f"{alignment.title}, per cent{f', in {panels} panels' if panels > 1 else ''}"
    console.print(Text(" " * margin + caption, style="dim"), soft_wrap=True)


def _panel(alignment: Alignment, shown: range, margin: int, room: int, console: Console) -> None:
    # Source words stand slanted down the columns they head, so that any length fits.
    for number, column in enumerate(shown):
        before = " " * margin + "│".ljust(CELL) * number + "╭ "
        console.print(Text(before + elide(alignment.source[column], room - len(before))), soft_wrap=True)
    for word, row in zip(alignment.target, alignment.weights_TS, strict=True):
        name = elide(word, margin - 2)
        line = Text(" " * (margin - 2 - cell_len(name)) + name + "  ")
        for column in shown:
            share = min(1.0, float(row[column]) / alignment.top)
            shade, ink = int(255 - 200 * share), "black" if share < 0.6 else "white"
            line.append(f"{100 * row[column]:3.0f} ", style=f"{ink} on rgb({shade},{shade},255)")
        console.print(line, soft_wrap=True)


def elide(word: str, room: int) -> str:
    """A word in so many columns: letters of Chinese and Japanese take two."""
    if cell_len(word) <= room:
        return word
    return set_cell_size(word, max(0, room - 1)).rstrip() + "…"

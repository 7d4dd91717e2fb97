"""An alignment as blocks of colour in the terminal, never wider than it."""

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from saccade.axes import Grid
from saccade.look.alignment import Alignment

CELL = 4
"""Columns of the terminal for one weight: three digits and a space."""
LEAST = 0.005
"""The smallest weight that is not 0 per cent."""


def draw_in_terminal(alignments: Sequence[Alignment], console: Console) -> None:
    """One row per target word; every cell is a block of colour with its per cent. What is too wide is drawn in panels,
    one below the other."""
    for number, alignment in enumerate(alignments):
        if number:
            console.print()
        if alignment.grid is None:
            _draw(alignment, console)
        else:
            _draw_fields(alignment, alignment.grid, console)


def _draw_fields(alignment: Alignment, grid: Grid, console: Console) -> None:
    """For every word the fields of the picture it looked at, as many words side by side as fit."""
    room = max(24, console.width)
    wide = min(room, max(2 * grid.width, *(cell_len(word) for word in alignment.target)))
    each = max(1, (room + 2) // (wide + 2))
    for first in range(0, len(alignment.target), each):
        words = range(first, min(first + each, len(alignment.target)))
        names = (set_cell_size(elide(alignment.target[number], wide), wide) for number in words)
        console.print(Text("  ".join(names)), soft_wrap=True)
        for row in range(grid.height):
            line = Text()
            for number in words:
                weights_S = alignment.weights_TS[number]
                for weight in weights_S.reshape(grid.height, grid.width)[row]:
                    line.append("  ", style=f"on {_shade(float(weight / max(weights_S.max(), 1e-9)))}")
                line.append(" " * (wide - 2 * grid.width + 2))
            console.print(line, soft_wrap=True, overflow="crop", no_wrap=True)
    _say(f"{alignment.title}; each word's largest weight is darkest", 0, room, console)


def _shade(share: float) -> str:
    shade = int(255 - 200 * min(1.0, share))
    return f"rgb({shade},{shade},255)"


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
        # In a panel of several, most rows look elsewhere.
        rows = [n for n, row in enumerate(alignment.weights_TS) if panels == 1 or row[shown].max() >= LEAST]
        _panel(alignment, rows, shown, margin, room, console)
        if panels > 1:
            left_out = f"; {len(alignment.target) - len(rows)} rows of 0 left out"
            said = f"columns {shown[0] + 1} to {shown[-1] + 1} of {count}{left_out}"
            _say(said, margin, room, console)
    caption = f"{alignment.title}, per cent{f', in {panels} panels' if panels > 1 else ''}"
    _say(caption, margin, room, console)


def _say(text: str, margin: int, room: int, console: Console) -> None:
    """Below the cells, if there is room."""
    console.print(Text(" " * margin * (margin + cell_len(text) <= room) + text, style="dim"))


def _panel(alignment: Alignment, rows: list[int], shown: range, margin: int, room: int, console: Console) -> None:
    # Source words stand slanted down the columns they head, so that any length fits.
    for number, column in enumerate(shown):
        before = " " * margin + "│".ljust(CELL) * number + "╭ "
        console.print(Text(before + elide(alignment.source[column], room - len(before))), soft_wrap=True)
    for number in rows:
        row, name = alignment.weights_TS[number], elide(alignment.target[number], margin - 2)
        line = Text(" " * (margin - 2 - cell_len(name)) + name + "  ")
        for column in shown:
            share = float(row[column]) / alignment.top
            ink = "black" if share < 0.6 else "white"
            line.append(f"{100 * row[column]:3.0f} ", style=f"{ink} on {_shade(share)}")
        console.print(line, soft_wrap=True)


def elide(word: str, room: int) -> str:
    """A word in so many columns: letters of Chinese and Japanese take two."""
    if cell_len(word) <= room:
        return word
    return set_cell_size(word, max(0, room - 1)).rstrip() + "…"

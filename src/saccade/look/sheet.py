"""A table, and bars, as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from saccade.look.lettering import width
from saccade.look.shapes import FAINT, LINE, Box, Shape, Word

SIZE, ROW, GAP, EDGE = 15, 28, 22, 24
BAR, COLOUR = 360, "#3465a4"
NOTE_LETTERS = 150
"""Of a line of a footnote."""


@dataclass(frozen=True)
class Bars:
    """Amounts side by side; `logarithmic` where they differ by orders of magnitude."""

    title: str
    amounts: Sequence[tuple[str, float, str]]
    """Label, amount and what is written behind it."""
    logarithmic: bool = False

    def share(self, amount: float) -> float:
        """Of the longest bar."""
        largest = max(amount for _, amount, _ in self.amounts)
        if not self.logarithmic:
            return amount / largest
        least = min(amount for _, amount, _ in self.amounts if amount > 0) / 10
        return log10(amount / least) / log10(largest / least) if amount > least else 0.0


def draw_table(
    title: str, rows: Sequence[Sequence[str]], notes: Sequence[str] = (), *, top: int = 0
) -> tuple[list[Shape], int, int]:
    """The header first; columns of numbers stand to the right. The shapes, and the width and height they take."""
    head, *body = rows
    widths = [max(width(row[column], SIZE) for row in rows) for column in range(len(head))]
    lefts = [EDGE + sum(widths[:column]) + GAP * column for column in range(len(head))]
    across = lefts[-1] + widths[-1] + EDGE
    shapes: list[Shape] = [Word(EDGE, top + EDGE, title, SIZE + 3)]
    y = top + EDGE + ROW + 4
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            to_right = all(_is_number(one[column]) for one in body)
            x = lefts[column] + (widths[column] if to_right else 0)
            shapes.append(
                Word(x, y, text, SIZE, "end" if to_right else "start", colour=FAINT if number == 0 else "#000000")
            )
        shapes.append(Box(EDGE, y + ROW // 2, across - 2 * EDGE, 0, LINE))
        y += ROW
    y += ROW // 2
    for number, note in enumerate(notes, 1):
        for line in _lines(f"[{number}] {note}"):
            shapes.append(Word(EDGE, y, line, SIZE - 3, colour=FAINT))
            across = max(across, EDGE * 2 + width(line, SIZE - 3))
            y += ROW * 2 // 3
    return shapes, across, y + EDGE


def draw_bars(groups: Sequence[Bars], *, top: int = 0) -> tuple[list[Shape], int, int]:
    """Groups of bars below each other."""
    labels = max(width(label, SIZE) for group in groups for label, _, _ in group.amounts)
    behind = max(width(text, SIZE) for group in groups for _, _, text in group.amounts)
    shapes: list[Shape] = []
    y = top + EDGE
    for group in groups:
        shapes.append(Word(EDGE, y, group.title, SIZE + 1))
        y += ROW
        for label, amount, text in group.amounts:
            long = max(1, round(BAR * group.share(amount)))
            shapes.append(Word(EDGE + labels, y, label, SIZE, "end"))
            shapes.append(Box(EDGE + labels + 10, y - 8, long, 16, COLOUR))
            shapes.append(Word(EDGE + labels + 18 + long, y, text, SIZE, colour=FAINT))
            y += ROW - 4
        y += ROW // 2
    return shapes, EDGE * 2 + labels + BAR + 18 + behind, y


def _is_number(text: str) -> bool:
    return text == "–" or all(letter in "0123456789.,+-e" for letter in text)


def _lines(text: str) -> list[str]:
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > NOTE_LETTERS:
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines

"""The live line of a training on a terminal: step, bar, figures, remaining time."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

NARROW = 100
"""On a terminal with fewer columns the bar is short, and the time so far is left out."""


class TrainingBar:
    """Shows step and remaining time at any width; of the figures, those that fit, the most important ones first."""

    def __init__(self, console: Console, *, live: bool) -> None:
        self.console, self.live = console, live
        narrow = console.width < NARROW
        self.bar_width = 10 if narrow else 20
        self.elapsed = not narrow
        self.bar = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(bar_width=self.bar_width),
            TextColumn("{task.description}"),
            *([TimeElapsedColumn()] if self.elapsed else []),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
            disable=not live,
        )
        self.task = self.bar.add_task("", total=None)

    def start(self, step: int, steps: int) -> None:
        self.bar.update(self.task, total=steps, completed=step)
        if self.live:
            self.bar.start()

    def update(self, step: int, figures: Sequence[tuple[str, int]]) -> None:
        """The figures as texts, each with its importance, larger is more important."""
        self.bar.update(self.task, completed=step, description=fitting(figures, self._room()))

    def say_busy(self, doing: str) -> None:
        self.bar.update(self.task, description=f"{doing} …")

    def stop(self) -> None:
        self.bar.stop()

    def _room(self) -> int:
        """Columns that are left for the figures."""
        counts = 2 * len(str(int(self.bar.tasks[0].total or 0))) + 1
        clocks = (8 if self.elapsed else 0) + len("ETA 0:00:00")
        return self.console.width - len("step ") - (counts + 1) - (self.bar_width + 1) - clocks - 1


def fitting(figures: Sequence[tuple[str, int]], room: int) -> str:
    """The figures side by side; the least important ones are left out until the rest fits."""
    kept = list(figures)
    while kept and len(text := "  ".join(figure for figure, _ in kept)) > room:
        kept.remove(min(kept, key=lambda figure: figure[1]))
    return text if kept else ""

"""A progress bar with the time left, on stderr, for what takes more than a moment."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Bar = Callable[[int, int | None], None]
"""Told what is done, and of how much, if that is known."""


@contextmanager
def progress_bar(doing: str, *, shares: bool = False, quiet: bool = False) -> Iterator[Bar]:
    """Yields a report to be called with what is done and of how much; the bar goes when it is over.

    `shares`: show the percentage instead of two numbers that mean nothing to people.
    """
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True, quiet=quiet)
    columns = (
        progress.TextColumn(doing),
        progress.BarColumn(),
        progress.TaskProgressColumn() if shares else progress.MofNCompleteColumn(),
        progress.TextColumn("ETA"),
        progress.TimeRemainingColumn(),
    )
    hidden = quiet or not console.is_terminal
    with progress.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(doing, total=None)

        def report(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        yield report

"""A progress bar with the remaining time, on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Bar = Callable[[int, int | None], None]
"""Called with the amount done and the total, None if unknown."""


@contextmanager
def progress_bar(doing: str, *, shares: bool = False, quiet: bool = False) -> Iterator[Bar]:
    """Yields a function to report the amount done and the total. The bar disappears at the end.

    `shares`: show a percentage instead of two numbers.
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

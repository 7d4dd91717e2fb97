"""A progress bar with the remaining time, on stderr."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

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


def status_report(
    console: "Console", status: "Status", doing: str, *, after: float = 2.0, every: float = 15.0
) -> Callable[[int, int], None]:
    """A function to report to, for work that runs under a status: what is done in less than `after` seconds is not
    told. A terminal shows the share that is done; elsewhere it is a line of its own, now and then."""
    began, spoke = None, 0.0

    def report(done: int, total: int) -> None:
        nonlocal began, spoke
        now = time.perf_counter()
        began = began or now
        line = f"{doing}: {done / total:.0%}"
        if now - began < after:
            return
        if console.is_terminal:
            status.update(f"{line} …")
        elif now - spoke > every:
            spoke = now
            console.print(line, soft_wrap=True, markup=False)

    return report

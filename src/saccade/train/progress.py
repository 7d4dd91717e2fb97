"""What is shown before and after the steps of a training: how far the data is read, and the test part scored."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.status import Status

Report = Callable[[int, int], None]
"""Told how much is done, and of how much."""


@contextmanager
def preparing(console: Console) -> Iterator[Report]:
    """A status while the data is read."""
    with console.status("reading the data and learning the vocabulary …") as status:
        yield status_report(console, status, "encoding the training data")


@contextmanager
def scoring(console: Console) -> Iterator[Report]:
    """A bar, on a terminal, that disappears at the end."""
    columns = (TextColumn("scoring the test part"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"))
    hidden = console.quiet or not console.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


def status_report(console: Console, status: Status, doing: str, *, after: float = 2.0, every: float = 15.0) -> Report:
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

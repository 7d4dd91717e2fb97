"""Output of a run: a progress bar, files of figures, `curve.png`."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from rich.console import Console

from saccade.errors import UserError
from saccade.train.bar import TrainingBar
from saccade.train.metrics import Entry, MetricFiles


class Log:
    """Reports one run. On a terminal the bar is live; elsewhere a line is printed at intervals."""

    def __init__(self, folder: Path, *, quiet: bool = False, tensorboard: bool = False, every: float = 30.0) -> None:
        self.folder, self.quiet, self.every = folder, quiet, every
        self.console = Console(stderr=True, highlight=False, quiet=quiet)
        self.live = sys.stderr.isatty() and not quiet
        self.bar = TrainingBar(self.console, live=self.live)
        self.metrics = MetricFiles(folder, tensorboard=tensorboard)
        self.began = self.spoke = time.perf_counter()
        self.window = Window()

    def start(self, step: int, steps: int) -> None:
        """Start or resume at `step`; what an interrupted run wrote after it is dropped."""
        self.first, self.steps = step, steps
        with _saying_what_is_kept(self.folder):
            self.metrics.start(step)
        self.bar.start(step, steps)
        self.began = self.spoke = time.perf_counter()

    def step(
        self, step: int, losses: dict[str, float], *, rate: float, norm: float, tokens: int, flops: float, epoch: float
    ) -> None:
        self.window.add(tokens, flops)
        now = time.perf_counter()
        tokens_per_second, gigaflops = self.window.speed(now)
        loss = losses.get("nll", losses["loss"])
        figures = [
            (f"loss {loss:.3f}", 5),
            (f"rate {rate:.2e}", 2),
            (f"{tokens_per_second:,.0f} target tokens/s", 4),
            (f"{gigaflops:.0f} GFLOP/s", 1),
            (f"epoch {epoch:.2f}", 3),
        ]
        if self.live:
            self.bar.update(step, figures)
        elif now - self.spoke > self.every or step == self.steps:
            self.spoke = now
            left = (now - self.began) / (step - self.first) * (self.steps - step)
            text = "  ".join(figure for figure, _ in figures)
            self.console.print(f"step {step}/{self.steps}  {text}  ETA {_clock(left)}", soft_wrap=True)
        if step % 10 == 0 or step == self.steps:
            self._write(
                {"step": step, **losses, "rate": rate, "norm": norm, "epoch": round(epoch, 4)}
                | {"tokens_per_second": round(tokens_per_second, 1), "gigaflops": round(gigaflops, 2)}
            )

    def validation(self, step: int, scores: dict[str, float]) -> None:
        self._write({"step": step, "validation": scores})
        self.console.print(f"step {step}: " + "  ".join(f"{k} {v:.4g}" for k, v in scores.items()), soft_wrap=True)
        with _saying_what_is_kept(self.folder):
            draw_curve(self.metrics.entries, self.folder / "curve.png")

    def restart_clock(self) -> None:
        """Speed is that of training: validating and saving do not count."""
        self.window = Window()

    def say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True, markup=False)

    def say_busy(self, doing: str) -> None:
        if self.live:
            self.bar.say_busy(doing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
        self.metrics.close()

    def _write(self, entry: Entry) -> None:
        with _saying_what_is_kept(self.folder):
            self.metrics.write(entry)


class SilentLog(Log):
    """Of a process that is not the first of a training: it writes nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.quiet, self.live = folder, True, False
        self.console = Console(stderr=True, quiet=True)

    def start(self, step: int, steps: int) -> None:
        pass

    def step(
        self, step: int, losses: dict[str, float], *, rate: float, norm: float, tokens: int, flops: float, epoch: float
    ) -> None:
        pass

    def validation(self, step: int, scores: dict[str, float]) -> None:
        pass

    def restart_clock(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class Window:
    """Speed over the last steps, validation left out."""

    def __init__(self) -> None:
        self.since = time.perf_counter()
        self.tokens = 0
        self.flops = 0.0

    def add(self, tokens: int, flops: float) -> None:
        self.tokens += tokens
        self.flops += flops

    def speed(self, now: float) -> tuple[float, float]:
        """Target tokens and GFLOP per second."""
        seconds = max(now - self.since, 1e-9)
        return self.tokens / seconds, self.flops / seconds / 1e9


@contextmanager
def _saying_what_is_kept(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"could not write in {folder}: {error.strerror or error}; "
            f"the last good checkpoint is kept: free some space and run saccade resume {folder}"
        ) from None


def draw_curve(entries: list[Entry], path: Path) -> None:
    """Training loss, and every validation figure, against steps; `bleu.tatoeba` is drawn beside `bleu`, the mean."""
    from matplotlib.figure import Figure

    losses = [(entry["step"], entry.get("nll", entry["loss"])) for entry in entries if "loss" in entry]
    validations = [(entry["step"], entry["validation"]) for entry in entries if "validation" in entry]
    figures = list(validations[0][1]) if validations else []
    names = [name for name in figures if "." not in name]
    figure = Figure(figsize=(4.2 * (1 + len(names)), 3.2), layout="constrained")
    for number, name in enumerate(["training loss", *names], 1):
        axes = figure.add_subplot(1, 1 + len(names), number)
        if number == 1 and losses:
            axes.plot(*zip(*losses, strict=True), linewidth=1)
        shown = [other for other in figures if number > 1 and other.partition(".")[0] == name]
        for other in shown:
            points = [(step, scores[other]) for step, scores in validations]
            label = other.partition(".")[2] or "mean"
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1, label=label)
        if len(shown) > 1:
            # Below the axes: inside, a legend covers lines.
            axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, frameon=False)
        axes.set_title(name if number == 1 else f"validation {name}")
        axes.set_xlabel("step")
        axes.set_ylabel("loss" if number == 1 else name)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"

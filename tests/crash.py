"""Kills trainings again and again, half of the time while they save, and holds their end equal to an undisturbed one.

python tests/crash.py --kills 30
python tests/crash.py --kills 200 --task all   # the long form: every task, about half an hour
"""

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

from saccade.config import read_toml
from toy_trainings import TOYS, write_toy

PATIENCE = 600.0
"""Seconds after which a process that does not get on is a failure."""
LUCKY = 5
"""Trainings for each kill that may end before they are hit."""


def command(*arguments: str | Path) -> list[str]:
    """`saccade …` as the interpreter that runs this file runs it."""
    return [sys.executable, "-c", "from saccade.cli.main import main; main()", *map(str, arguments)]


def train_words(recipe: Path, run: Path) -> list[str]:
    return command("train", recipe, "--data", recipe.parent, "--out", run, "--quiet")


def resume_words(run: Path) -> list[str]:
    return command("resume", run, "--quiet")


def environment() -> dict[str, str]:
    """One thread: so tiny a model only loses by more, and the number of threads is part of what must be the same."""
    return os.environ | {"OMP_NUM_THREADS": "1"}


def digests(run: Path) -> dict[str, str]:
    """What two runs must agree in: the last checkpoint, optimiser and random numbers included, and the model kept."""
    last = finished(run)[-1]
    files = [last / "weights.safetensors", last / "training.safetensors", run / "model.safetensors"]
    return {str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def checkpoint_folders(run: Path) -> list[Path]:
    """The training's own, and those of the trainings of which it keeps the best."""
    return [run / "checkpoints", *sorted(run.glob("trials/*/checkpoints"))]


def finished(run: Path) -> list[Path]:
    return [step for folder in checkpoint_folders(run) for step in sorted(folder.glob("step-*"))]


def being_written(run: Path) -> dict[str, int]:
    """Checkpoints that are half written, each with the moment its folder last changed."""
    found = {}
    for folder in checkpoint_folders(run):
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(folder):
                if entry.name.startswith(".writing-"):
                    found[entry.path] = entry.stat().st_mtime_ns
    return found


class Ended(Exception):
    """A training came to its end before it could be killed."""


class Life:
    """One process of a training, from its start to its end, by itself or by us; as a context it leaves none behind."""

    def __init__(self, words: list[str], complaints: Path) -> None:
        self.complaints = complaints
        self.began = time.monotonic()
        with complaints.open("wb") as errors:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=environment()
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.kill()

    def wait_for(self, there: Callable[[], bool]) -> None:
        """Look as often as we can until it is there."""
        while not there():
            if self.process.poll() == 0:
                raise Ended
            if self.process.poll() is not None:
                raise RuntimeError(
                    f"the training ended too early, with exit code {self.process.returncode}; {self.said()}"
                )
            if time.monotonic() - self.began > PATIENCE:
                raise RuntimeError(f"the training did not get on in {PATIENCE:.0f} s; {self.said()}")
            time.sleep(0.0002)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Wait for it to end by itself; its exit code."""
        return self.process.wait(timeout=PATIENCE)

    def insist_on_success(self) -> None:
        if self.end() != 0:
            raise RuntimeError(f"exit code {self.process.returncode}, not 0; {self.said()}")

    def said(self) -> str:
        return f"it said: {self.complaints.read_text(encoding='utf-8', errors='replace')[-2000:]!r}"


@dataclass(frozen=True)
class Kill:
    """How one life ended."""

    number: int
    seconds: float
    in_a_save: bool
    """Told by what it left behind, not by what was meant."""
    step: int
    """The last finished checkpoint; 0 before the first."""
    resumable: bool
    after_last: bool
    """While weights are chosen, stored and tested."""

    def __str__(self) -> str:
        where = "in a save" if self.in_a_save else "between saves" if self.resumable else "before the first step"
        where = "after the last step" if self.after_last else where
        return f"kill {self.number}: after {self.seconds:5.2f} s, {where}, last checkpoint at step {self.step}"


def start(recipe: Path, run: Path) -> Life:
    """Begin, or go on with, a training, as a person would after a crash."""
    words = resume_words(run) if (run / "recipe.toml").exists() else train_words(recipe, run)
    if not (run / "recipe.toml").exists():
        # Killed before step 1: there is nothing to resume, and the command says so.
        shutil.rmtree(run, ignore_errors=True)
    return Life(words, run.with_suffix(".stderr"))


def undisturbed(recipe: Path, run: Path) -> dict[str, str]:
    with start(recipe, run) as life:
        life.insist_on_success()
    return digests(run)


def batter(recipe: Path, runs: Path, *, kills: int, seed: int | str) -> Iterator[Kill | Path]:
    """Train, killed so many times: every second kill in a save, the others at random moments. Whenever a training comes
    to its end, as the last one does, its folder is told, and the next one begins."""
    chance, number = random.Random(seed), 0
    last = read_toml(recipe)["train"]["steps"]
    for place in count(1):
        if place > LUCKY * (kills + 1):
            raise RuntimeError(f"{place - 1} trainings came to their end, but only {number} of {kills} kills hit one")
        run = runs / str(place)
        run.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(Ended):
            while number < kills:
                yield _kill(recipe, run, number + 1, chance, last)
                number += 1
            with start(recipe, run) as life:
                life.insist_on_success()
        yield run
        if number == kills:
            return


def _kill(recipe: Path, run: Path, number: int, chance: random.Random, last: int) -> Kill:
    """Begin, or go on, and be killed. Ended: it came to its end instead."""
    leftover = being_written(run)
    with start(recipe, run) as life:
        _wait_for_moment(life, run, number, chance, leftover, last)
        seconds = time.monotonic() - life.began
    if life.process.returncode == 0:
        raise Ended
    if life.process.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the training ended before kill {number}, by itself; {life.said()}")
    step = last_step(run)
    return Kill(
        number=number,
        seconds=seconds,
        in_a_save=any(leftover.get(name) != changed for name, changed in being_written(run).items()),
        step=step,
        resumable=(run / "recipe.toml").exists(),
        after_last=step == last,
    )


def last_step(run: Path) -> int:
    """Of the last finished checkpoint; 0 before the first."""
    whole = finished(run)
    return int(whole[-1].name.removeprefix("step-")) if whole else 0


def _wait_for_moment(
    life: Life, run: Path, number: int, chance: random.Random, leftover: dict[str, int], last: int
) -> None:
    if number % 2:
        # A save of this life is one whose folder was not there before, or not so.
        saves, begun = chance.randint(1, 3), set[str]()

        def in_a_save() -> bool:
            begun.update(name for name, changed in being_written(run).items() if leftover.get(name) != changed)
            return len(begun) == saves

        life.wait_for(in_a_save)
    elif number % 4:
        # Once it is known to train: any moment.
        before = finished(run)[-1:]
        life.wait_for(lambda: finished(run)[-1:] != before)
        time.sleep(chance.uniform(0.0, 0.5))
    elif number % 8:
        # Any moment at all: while it starts, reads, learns the vocabulary or trains.
        time.sleep(chance.uniform(0.2, 5.0))
    else:
        # While the weights are chosen, compared, stored and tested.
        life.wait_for(lambda: last_step(run) == last)
        time.sleep(chance.uniform(0.0, 2.0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=3, help="how many times trainings are killed, in all")
    parser.add_argument("--task", choices=[*TOYS, "all"], default="translation", help="what is trained")
    parser.add_argument("--steps", type=int, default=40, help="of each training")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other moments")
    options = parser.parse_args()
    # Asked to stop, it takes the training under way with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    tasks = list(TOYS) if options.task == "all" else [options.task]
    began, wrong, kills = time.monotonic(), 0, list[Kill]()
    for place, task in enumerate(tasks):
        # The remainder goes to the first tasks.
        share = options.kills // len(tasks) + (place < options.kills % len(tasks))
        with tempfile.TemporaryDirectory(prefix="saccade-crash-") as folder:
            recipe = write_toy(Path(folder), task=task, steps=options.steps)
            expected = undisturbed(recipe, Path(folder) / "undisturbed")
            for told in batter(recipe, Path(folder) / "battered", kills=share, seed=f"{options.seed} {task}"):
                if isinstance(told, Kill):
                    kills.append(told)
                    print(f"{task}: {told}", flush=True)
                else:
                    found = digests(told)
                    wrong += found != expected
                    print(f"{task}: {_verdict(found, expected)}", flush=True)
    in_saves, late = sum(kill.in_a_save for kill in kills), sum(kill.after_last for kill in kills)
    minutes = (time.monotonic() - began) / 60
    print(f"{len(kills)} kills, {in_saves} in a save, {late} after the last step; {minutes:.0f} minutes; {wrong} wrong")
    return 1 if wrong else 0


def _verdict(found: dict[str, str], expected: dict[str, str]) -> str:
    def shown(some: dict[str, str]) -> str:
        return ", ".join(f"{name} {digest[:16]}" for name, digest in some.items())

    if found == expected:
        return f"ended the same, bit for bit: {shown(found)}"
    return f"ended NOT THE SAME: {shown(found)}; undisturbed: {shown(expected)}"


if __name__ == "__main__":
    sys.exit(main())

"""Kills a training again and again, half of the time while it saves, and holds its end equal to an undisturbed one.

python tests/crash.py --kills 30
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
from pathlib import Path
from typing import Self

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
RECIPE = """task = "translation"
name = "toy"

[data]
train = ["train.tsv"]
valid = ["valid.tsv"]

[tokens]
vocabulary = 300

[model.encoder]
layers = 1
width = 16
heads = 2
feedforward = 32

[model.decoder]
layers = 1
width = 16
heads = 2
feedforward = 32

[search]
beam = 2
factor = 1.0
extra = 4

[train]
steps = {steps}
batch_tokens = 256
warmup = 5
validate_every = 2
average = 3
adam = {{rate = 3e-3}}
"""
PATIENCE = 600.0
"""Seconds after which a process that does not get on is a failure."""


def write_toy(folder: Path, *, steps: int = 60, pairs: int = 200) -> Path:
    """Spelt digits and their reverse as train.tsv and valid.tsv, and a tiny recipe for them; the recipe's path."""
    chance = random.Random(1)
    rows = [[chance.choice(DIGITS) for _ in range(chance.randint(2, 6))] for _ in range(pairs)]
    lines = [f"{' '.join(row)}\t{' '.join(reversed(row))}\n" for row in rows]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.tsv").write_text("".join(lines), encoding="utf-8")
    (folder / "valid.tsv").write_text("".join(lines[:4]), encoding="utf-8")
    recipe = folder / "toy.toml"
    recipe.write_text(RECIPE.format(steps=steps), encoding="utf-8")
    return recipe


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


def finished(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("step-*"))


def being_written(run: Path) -> dict[str, int]:
    """Checkpoints that are half written, each with the moment its folder last changed."""
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(run / "checkpoints"):
            if entry.name.startswith(".writing-"):
                found[entry.name] = entry.stat().st_mtime_ns
    return found


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

    def __str__(self) -> str:
        where = "in a save" if self.in_a_save else "between saves" if self.resumable else "before the first step"
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


def batter(recipe: Path, run: Path, *, kills: int, seed: int) -> Iterator[Kill]:
    """Train, killed so many times: every second kill in a save, the others at random moments; then to the end."""
    chance = random.Random(seed)
    for number in range(1, kills + 1):
        leftover = being_written(run)
        with start(recipe, run) as life:
            _wait_for_moment(life, run, number, chance, leftover)
            seconds = time.monotonic() - life.began
        if life.process.returncode != -signal.SIGKILL:
            raise RuntimeError(f"the training ended before kill {number}, by itself; {life.said()}")
        whole = finished(run)
        yield Kill(
            number=number,
            seconds=seconds,
            in_a_save=any(leftover.get(name) != changed for name, changed in being_written(run).items()),
            step=int(whole[-1].name.removeprefix("step-")) if whole else 0,
            resumable=(run / "recipe.toml").exists(),
        )
    with start(recipe, run) as life:
        life.insist_on_success()


def _wait_for_moment(life: Life, run: Path, number: int, chance: random.Random, leftover: dict[str, int]) -> None:
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
    else:
        # Any moment at all: while it starts, reads, learns the vocabulary or trains.
        time.sleep(chance.uniform(0.2, 5.0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=3, help="how many times the training is killed")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other moments")
    options = parser.parse_args()
    # Asked to stop, it takes the training under way with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="saccade-crash-") as folder:
        # Enough steps that the training cannot end before the last kill: a life gets on by a few saves.
        recipe = write_toy(Path(folder), steps=48 + 4 * options.kills)
        expected = undisturbed(recipe, Path(folder) / "undisturbed")
        in_saves = 0
        for kill in batter(recipe, Path(folder) / "battered", kills=options.kills, seed=options.seed):
            print(kill, flush=True)
            in_saves += kill.in_a_save
        found = digests(Path(folder) / "battered")
    verdict = "the same, bit for bit" if found == expected else "NOT THE SAME"
    shown = ", ".join(f"{name} {digest[:16]}" for name, digest in found.items())
    print(f"{options.kills} kills, {in_saves} in a save; {verdict}: {shown}")
    if found != expected:
        print(f"undisturbed: {', '.join(f'{name} {digest[:16]}' for name, digest in expected.items())}")
    return 0 if found == expected else 1


if __name__ == "__main__":
    sys.exit(main())

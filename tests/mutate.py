"""Mutated model folders and corrupted caches: a command on one ends in bounded time and memory, with one clear line.

    python tests/mutate.py                                # 60 folders, 40 caches
    python tests/mutate.py --folders 1500 --caches 500    # the long form
    python tests/mutate.py --only 17                      # one folder again, its output shown

Each case runs in a forked process of its own. A third of the folders get new digests after the mutation, so that what
is behind the digests is reached. A corrupted cache must not even be noticed in the answer.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mutations import CACHE_FAULTS, good_cache, mutate_folder

SECONDS = 60
"""Of processor time that a command may take."""
MEMORY = 10**9
"""Bytes that a command may hold."""
ADDRESSES = 6 * 10**9
"""Bytes of address space: a command that asks for much more than `MEMORY` gets none, and must say so."""
TEXT = "one cat sees three dogs"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    """Its exit code; minus the signal that ended it."""
    out: str
    err: str
    memory: int
    seconds: float


def run(words: list[str], environment: dict[str, str], *, mapped: bool = False) -> Ended:
    """A command in a fork of this process, which has imported everything and computed nothing."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        child = os.fork()
        if not child:
            _command(words, environment, out.fileno(), err.fileno(), mapped=mapped)
        # Processor time is limited by the system. One that waits uses none: for that there is the clock, with much time
        # to spare, because the machine may be busy.
        while not (found := os.wait4(child, os.WNOHANG))[0] and time.monotonic() - began < 10 * SECONDS:
            time.sleep(0.005)
        if not found[0]:
            os.kill(child, signal.SIGKILL)
            found = os.wait4(child, 0)
        said, complained = (os.pread(file.fileno(), 10**6, 0).decode("utf-8", "replace") for file in (out, err))
        memory = found[2].ru_maxrss * 1024
        return Ended(os.waitstatus_to_exitcode(found[1]), said, complained, memory, time.monotonic() - began)


def _command(words: list[str], environment: dict[str, str], out: int, err: int, *, mapped: bool) -> None:
    """Never returns."""
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ.update(environment)
        from saccade import folder
        from saccade.cli.main import main

        if mapped:  # as a large model is
            vars(folder)["LARGE"] = 0
        sys.stdout, sys.stderr = open(1, "w", encoding="utf-8"), open(2, "w", encoding="utf-8")  # noqa: SIM115
        try:
            main(words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 71
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def complaint(ended: Ended) -> str | None:
    """What is wrong with how a command ended, if anything."""
    if ended.status < 0:
        return f"ended by {signal.Signals(-ended.status).name}"
    if ended.status not in (0, 1, 2):
        return f"exit code {ended.status}"
    if ended.memory > MEMORY:
        return f"{ended.memory:,} bytes"
    if "Traceback" in ended.err or "--debug" in ended.err:
        return "an error that nobody expected"
    if ended.status and not (ended.err.startswith("saccade: ") and ended.err.count("\n") == 1):
        return "not one clear line"
    return None


def folder_case(number: int, models: list[Path], room: Path, cache: Path) -> tuple[str, Ended]:
    """The mutation of this number, and how a command on it ended."""
    chance = random.Random(number)
    folder = room / f"folder-{number}"
    shutil.copytree(chance.choice(models), folder)
    name = mutate_folder(folder, chance, digested=number % 3 == 0)
    words = chance.choice([["run"], ["run"], ["run", "--exact"], ["run", "--int8"], ["doctor"], ["show"]])
    words = [words[0], str(folder), *([TEXT] if words[0] == "run" else []), *words[1:]]
    ended = run(words, {"XDG_CACHE_HOME": str(cache)}, mapped=chance.random() < 0.3)
    shutil.rmtree(folder)
    return f"{' '.join(words)}: {name}", ended


def cache_case(number: int, model: Path, room: Path, good: Path, answers: set[str]) -> tuple[str, Ended, str | None]:
    """A corrupted cache, and what is wrong with the answer, if anything."""
    chance = random.Random(number)
    home = room / f"cache-{number}"
    shutil.copytree(good, home)
    (home / "saccade").chmod(0o700)
    fault = chance.choice(CACHE_FAULTS)
    fault(home / "saccade", chance)
    # The compiler of a good cache copies the library that it has made once; or there is none.
    path = str(good / "bin") if chance.random() < 0.5 else "/nowhere"
    ended = run(["run", str(model), TEXT], {"XDG_CACHE_HOME": str(home), "PATH": path}, mapped=chance.random() < 0.5)
    wrong = None if ended.status == 0 and ended.out in answers else f"the answer was {ended.out!r}"
    os.system(f"chmod -R u+rwx {home} 2>/dev/null")
    shutil.rmtree(home, ignore_errors=True)
    return fault.__name__, ended, wrong


def prepare(room: Path) -> tuple[list[Path], Path]:
    """Models to mutate, and a good cache; made in another process: this one must stay without PyTorch and kernels."""
    child = os.fork()
    if not child:
        code = 1
        try:
            from tiny import write_tiny_language_model, write_tiny_model

            write_tiny_model(room / "translation")
            write_tiny_model(room / "stored", storage="int8")
            write_tiny_language_model(room / "language", name="later turns")
            write_tiny_language_model(room / "characters", kind="characters")
            good_cache(room / "good")
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("no models could be made")
    import saccade.cli.main
    import saccade.pipelines.load
    import saccade.runtime.open  # noqa: F401

    good = room / "good"
    models = [room / name for name in ("translation", "stored", "language", "characters")]
    # A first use fills the cache, with packed weights too.
    for model in models[:1]:
        if (ended := run(["run", str(model), TEXT], {"XDG_CACHE_HOME": str(good)}, mapped=True)).status:
            raise RuntimeError(ended.err)
    return models, good


def check(folders: int, caches: int, *, first: int = 0, shown: bool = False) -> list[str]:
    """Run so many cases; a line for each that went wrong."""
    wrong: list[str] = []
    codes: Counter[int] = Counter()
    largest = slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        models, good = prepare(room)
        answers = {
            run(["run", str(models[0]), TEXT, *how], {"XDG_CACHE_HOME": str(good)}).out for how in ([], ["--exact"])
        }
        for number in range(first, first + folders + caches):
            if number < first + folders:
                name, ended = folder_case(number, models, room, good)
                found = complaint(ended)
            else:
                name, ended, answer = cache_case(number, models[0], room, good, answers)
                found = complaint(ended) or answer
            codes[ended.status] += 1
            largest, slowest = max(largest, ended.memory), max(slowest, ended.seconds)
            if found or shown:
                wrong.append(f"{number} {name}: {found}: {ended.err[:300]!r}")
                print(wrong[-1], file=sys.stderr, flush=True)
    ends = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
    most = f"at most {largest / 1e6:.0f} MB and {slowest:.1f} s"
    print(f"{folders} folders, {caches} caches: {len(wrong)} wrong; exit codes: {ends}; {most}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folders", type=int, default=60)
    parser.add_argument("--caches", type=int, default=40)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    if options.only is not None:
        return 1 if check(1, 0, first=options.only, shown=True) else 0
    return 1 if check(options.folders, options.caches) else 0


if __name__ == "__main__":
    sys.exit(main())

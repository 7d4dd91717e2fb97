"""Hostile commands and pictures for what walks and acts: each is answered, or refused by one clear line.

    python tests/hostile_acting.py [COUNT]             # 10,000 by default
    python tests/hostile_acting.py COUNT --walker FOLDER --agent FOLDER

Without folders untrained models are asked: what is read and refused does not depend on their weights.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from agents import WORDS, write_agent
from hostile_lines import PIECES, hostile_line
from mutated_pictures import FORMATS, mutated, whole
from saccade.data.scan import COMMAND
from saccade.data.scan import WORDS as SCAN_WORDS
from saccade.errors import UserError
from saccade.pipelines.load import load
from saccade.pipelines.walker import CommandReader

READER = CommandReader(tuple(sorted(SCAN_WORDS)), "scan")


def hostile_command(chance: random.Random, words: tuple[str, ...]) -> str:
    """Known words in any order, misspelt, or anything at all."""
    kind = chance.random()
    if kind < 0.3:
        return hostile_line(chance).decode("utf-8", "surrogateescape")
    some = [chance.choice(words) for _ in range(chance.randint(1, 9))]
    if kind < 0.6:
        place = chance.randrange(len(some))
        letters = list(some[place])
        letters[chance.randrange(len(letters))] = chance.choice([*"abcxyz", "", *PIECES])
        some[place] = "".join(letters)
    elif kind < 0.7:
        some.insert(chance.randrange(len(some) + 1), chance.choice(PIECES))
    return chance.choice([" ", "  ", "\t", ", "]).join(some)


def hostile_picture(number: int) -> Any:
    """Damaged files, whole ones of odd sizes and modes, arrays of all kinds."""
    kind = FORMATS[number % len(FORMATS)]
    chance = np.random.default_rng(number)
    match number % 4:
        case 0:
            return mutated(kind, number)
        case 1:
            return whole(kind, number)
        case 2:
            shape = tuple(chance.integers(0, 70, size=int(chance.integers(1, 5))).tolist())
            return chance.integers(0, 256, size=shape).astype(chance.choice(["uint8", "float32", "int64", "bool"]))
    return chance.integers(0, 256, (56, 56, 3), dtype=np.uint8)


def fault_of(ask: Any) -> tuple[str, str]:
    """How an input ended, and what is wrong with that; empty if nothing is."""
    try:
        answer = ask()
    except UserError as error:
        answer = error
    except Exception as error:
        return "broken", repr(error)[:300]
    if isinstance(answer, UserError):
        said = str(answer)
        return "refused", "" if said.strip() and len(said.splitlines()) == 1 and len(said) < 2000 else repr(said)[:300]
    return "answered", ""


def walk_faults(count: int, walker: Any = None) -> tuple[Counter[str], list[str]]:
    """Commands of SCAN, or what looks like some; read alone, or walked where there is a model."""
    chance, ends, faults = random.Random(1), Counter[str](), list[str]()
    for _ in range(count):
        command = hostile_command(chance, SCAN_WORDS)

        def ask(command: str = command) -> Any:
            if walker is not None:
                return walker.answer([command], _request())[0]
            read, _ = READER.read(command)
            assert COMMAND.fullmatch(read), read
            return read

        end, fault = fault_of(ask)
        ends[end] += 1
        faults += [f"{command!r}: {fault}"] if fault else []
    return ends, faults


def act_faults(count: int, agent: Any) -> tuple[Counter[str], list[str]]:
    """Pictures with commands."""
    chance, ends, faults = random.Random(2), Counter[str](), list[str]()
    for number in range(count):
        # Every other picture comes with a good command, else it would never be opened.
        command = "go to the red ball" if number % 2 else hostile_command(chance, tuple(WORDS))
        picture = hostile_picture(number)
        end, fault = fault_of(lambda: agent.answer([(picture, command)], _request())[0])  # noqa: B023
        ends[end] += 1
        faults += [f"picture {number}, {command!r}: {fault}"] if fault else []
    return ends, faults


def _request() -> Any:
    from saccade.pipelines.pipeline import Request

    return Request()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=10_000)
    parser.add_argument("--walker", default="")
    parser.add_argument("--agent", default="")
    options = parser.parse_args()
    began, wrong = time.time(), 0
    with tempfile.TemporaryDirectory() as folder:
        agent = load(options.agent or str(write_agent(Path(folder) / "agent")))
        walker = load(options.walker) if options.walker else None
        for what, (ends, faults) in (
            ("commands to walk", walk_faults(options.count, walker)),
            ("pictures and commands to act", act_faults(options.count, agent)),
        ):
            for fault in faults[:20]:
                print(fault)
            told = ", ".join(f"{number:,} {end}" for end, number in sorted(ends.items()))
            print(f"{options.count:,} {what}: {told}; {len(faults)} wrong")
            wrong += len(faults)
    print(f"{time.time() - began:.0f} seconds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

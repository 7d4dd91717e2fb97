"""Demonstrations in many worlds, made by several processes, kept as arrays and read as episodes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from saccade.data.episodes import Episodes, Render
from saccade.data.prepared import keep, kept
from saccade.data.ragged import Ragged
from saccade.errors import UserError
from saccade.tokens.vocabulary import Vocabulary
from saccade.worlds.demonstrations import Demonstration

CHUNK = 200
"""Worlds that a process is given at a time."""
Told = Callable[[int, int], None]
Make = Callable[[range], list[Demonstration]]
"""Demonstrations in the worlds of these seeds; processes can be given it."""
Arrays = Mapping[str, np.ndarray]


def demonstrations(
    folder: Path, makers: Sequence[Make], seeds: Sequence[range], processes: int, report: Told, *, resume: bool
) -> Arrays:
    """One in each world: `makers` and their seeds stand side by side, one pair for every level. They are kept in the
    folder; a training that goes on finds them there."""
    found = kept(folder) if resume else None
    if found is not None:
        return found
    jobs = [
        partial(make, some[first : first + CHUNK])
        for make, some in zip(makers, seeds, strict=True)
        for first in range(0, len(some), CHUNK)
    ]
    total, made = sum(map(len, seeds)), list[Demonstration]()
    done = 0
    for job, chunk in zip(jobs, _chunks(jobs, processes), strict=True):
        made += chunk
        done += len(job.args[-1])
        report(done, total)
    if not made:
        raise UserError(f"no demonstration came of {total} worlds")
    return keep(folder, _arrays(made))


def _chunks(jobs: Sequence[Callable[[], list[Demonstration]]], processes: int) -> Iterator[list[Demonstration]]:
    if processes == 1 or len(jobs) == 1:
        yield from (job() for job in jobs)
        return
    # Fresh processes: threads of the kernels and of PyTorch do not survive a fork.
    with ProcessPoolExecutor(processes or None, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_call, jobs)


def _call(job: Callable[[], list[Demonstration]]) -> list[Demonstration]:
    return job()


def _arrays(made: Sequence[Demonstration]) -> dict[str, np.ndarray]:
    commands = sorted({one.command for one in made})
    numbers = {command: number for number, command in enumerate(commands)}
    letters = "\n".join(commands).encode()
    return {
        "commands": np.frombuffer(letters, dtype=np.uint8).copy(),
        "command": np.array([numbers[one.command] for one in made], dtype=np.int32),
        "lengths": np.array([len(one.advised_N) for one in made], dtype=np.int64),
        "advised": np.concatenate([one.advised_N for one in made]).astype(np.uint8),
        "done": np.concatenate([one.done_N for one in made]).astype(np.uint8),
        "views": np.concatenate([one.views_NX for one in made]),
    }


def commands_of(arrays: Arrays) -> list[str]:
    """All commands that were given, each once."""
    return bytes(np.asarray(arrays["commands"])).decode().split("\n")


def episodes_from(
    arrays: Arrays, vocabulary: Vocabulary, actions: Sequence[str], render: Render, *, blind: bool
) -> Episodes:
    """The world ends by itself, so there is no last view, and nothing to say about stopping."""
    ids = np.array([vocabulary.encode([action])[0][0] for action in actions], dtype=np.int32)
    read = vocabulary.read(commands_of(arrays))
    lengths = np.array(arrays["lengths"])
    ends = np.zeros(int(lengths.sum()), dtype=bool)
    ends[np.cumsum(lengths) - 1] = True
    done = ids[np.asarray(arrays["done"])]
    return Episodes(
        commands=Ragged.of([read[number] for number in arrays["command"]]),
        actions=Ragged(done[~ends], lengths - 1),
        views=np.asarray(arrays["views"]),
        render=render,
        marks=vocabulary.marks,
        blind=blind,
        advised=Ragged(ids[np.asarray(arrays["advised"])], lengths),
    )

"""An agent acts, and who knows better notes what should have been done: demonstrations from where it gets to by itself
(Ross et al. 2011, DAgger)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from saccade.errors import UserError
from saccade.folder import read_folder
from saccade.pipelines.agent import AT_ONCE, Agent
from saccade.worlds.contract import Noted, TaughtWorld, World
from saccade.worlds.demonstrations import Demonstration, kept


def open_agent(path: Path) -> Agent:
    """The agent of a model folder."""
    folder = read_folder(path)
    if folder.config.task != "acting":
        raise UserError(f"{path}: a model for {folder.config.task}, which does not act")
    return Agent.open(folder)


def demonstrate_after(path: Path, make: Callable[[], World], longest: int, seeds: Sequence[int]) -> list[Demonstration]:
    """One in the world of each seed: the agent of the folder does what it wants, and is advised all the time."""
    agent = open_agent(path)
    found = []
    for first in range(0, len(seeds), AT_ONCE):
        part = seeds[first : first + AT_ONCE]
        worlds = [Noted(make(), _advice) for _ in part]
        for run, world in zip(agent.play(worlds, part, longest=longest, keep=True), worlds, strict=True):
            advised = _whole_part(world.notes)
            done = [agent.actor.actions.index(action) for action in run.episode.actions[: len(advised)]]
            if advised:
                views = np.stack([kept(view) for view in run.episode.views[: len(advised)]])
                found.append(Demonstration(run.episode.command, views, np.array(advised), np.array(done)))
    return found


def _advice(world: World) -> int | None:
    return cast(TaughtWorld, world).advise()


def _whole_part(advice: Sequence[int | None]) -> list[int]:
    """What was advised before nobody knew any more."""
    found = []
    for one in advice:
        if one is None:
            break
        found.append(one)
    return found

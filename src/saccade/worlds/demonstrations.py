"""Demonstrations: who knows what to do is asked before every action; what was seen, advised and done is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from saccade.errors import UserError
from saccade.worlds.contract import TaughtWorld, View
from saccade.worlds.opening import MakeWorld

LONGEST_STRAY = 4
"""Random actions in a row."""


@dataclass(frozen=True)
class Demonstration:
    """What was known, advised and done in one world, from its beginning."""

    command: str
    views_NX: np.ndarray
    """What was seen before each action, packed if the world packs."""
    advised_N: np.ndarray
    """What should have been done each time."""
    done_N: np.ndarray
    """What was done."""


@dataclass(frozen=True)
class Straying:
    """Who only ever saw what an expert does is lost after a first mistake. So some demonstrations stray at random for
    some steps and go on from there; what counts is the advice (Laskey et al. 2017)."""

    share: float = 0.5
    """Of the worlds: in the others everything is done as advised."""
    rate: float = 0.15
    """How often, of all steps, somebody begins to stray."""


def demonstrate(make: MakeWorld, straying: Straying, longest: int, seeds: Sequence[int]) -> list[Demonstration]:
    """One in the world of each seed, of at most `longest` actions."""
    world = make()
    if not hasattr(world, "advise"):
        raise UserError(f"{type(world).__name__} has no advise(): nobody can demonstrate in it")
    found = (_demonstrated(cast(TaughtWorld, world), seed, straying, longest) for seed in seeds)
    return [one for one in found if len(one.advised_N)]


def _demonstrated(world: TaughtWorld, seed: int, straying: Straying, longest: int) -> Demonstration:
    # Of the seed alone: as many processes as there may be make the same demonstrations.
    random = np.random.default_rng([seed, 1])
    rate = straying.rate if random.random() < straying.share else 0.0
    view, left = world.reset(seed), 0
    command = view.command
    views, advised, done = list[np.ndarray](), list[int](), list[int]()
    while len(done) < longest:
        advice = world.advise()
        if advice is None:
            break
        if not left and random.random() < rate:
            left = int(random.integers(1, LONGEST_STRAY + 1))
        action = advice if not left else int(random.integers(len(world.actions)))
        left = max(0, left - 1)
        views.append(kept(view))
        advised.append(advice)
        done.append(action)
        effect = world.step(action)
        view = effect.view
        if effect.over:
            break
    seen = np.stack(views) if views else np.zeros(0, dtype=np.uint8)
    return Demonstration(command, seen, np.array(advised, dtype=np.int64), np.array(done, dtype=np.int64))


def kept(view: View) -> np.ndarray:
    """What is kept of a view."""
    return view.picture_HWC if view.packed is None else view.packed

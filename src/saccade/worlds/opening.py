"""Worlds by name: BabyAI's levels, and those that a program adds."""

from collections.abc import Callable
from functools import partial

from saccade.errors import UserError
from saccade.worlds.babyai import LEVEL, LEVELS, BabyAI
from saccade.worlds.contract import World

MakeWorld = Callable[[], World]
_ADDED: dict[str, MakeWorld] = {}


def add_world(name: str, make: MakeWorld) -> None:
    """From now on a world can be named so, in `data.levels` too; `make` is mostly its class. To be trained in by
    several processes it must stand in a module, not in a function."""
    if LEVEL.fullmatch(name):
        raise UserError(f"{name!r} is the name of a level of BabyAI; give the world another one")
    _ADDED[name] = make


def maker_of(name: str) -> MakeWorld:
    """What makes worlds of this name. A name never makes anything be imported."""
    if name in _ADDED:
        return _ADDED[name]
    if not LEVEL.fullmatch(name):
        known = ", ".join([*LEVELS, *_ADDED])
        raise UserError(f"no world {name[:60]!r}; these are known: {known}, and minigrid's other levels of BabyAI")
    return partial(BabyAI, name)


def short_name(name: str) -> str:
    """What people call a level: GoToLocal."""
    return name.removeprefix("BabyAI-").removesuffix("-v0")

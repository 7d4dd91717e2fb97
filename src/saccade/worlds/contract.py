"""What a world promises to whoever acts in it, after the manner of Gymnasium: `reset`, then `step` until it is over."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np


@dataclass(frozen=True)
class View:
    """What is known before an action is chosen."""

    command: str
    """What is to be done."""
    picture_HWC: np.ndarray = field(repr=False)
    """What is seen, uint8."""
    packed: np.ndarray | None = field(default=None, repr=False)
    """The same in less memory, where the world's `unpack` makes pictures of it again."""


@dataclass(frozen=True)
class Effect:
    """What an action led to."""

    view: View
    reward: float = 0.0
    """Above 0 where the command was fulfilled."""
    over: bool = False
    """Nothing more can be done."""


class World(Protocol):
    """One of them at a time is acted in; a batch of them is a list."""

    @property
    def actions(self) -> Sequence[str]:
        """The names of all actions, in order."""
        ...

    @property
    def ends(self) -> bool:
        """It says itself when it is over; else whoever acts has to stop."""
        ...

    def reset(self, seed: int) -> View:
        """A new beginning: the same seed, the same world."""
        ...

    def step(self, action: int) -> Effect:
        """Do the action of this number."""
        ...


class TaughtWorld(World, Protocol):
    """A world with somebody in it who knows what to do: demonstrations can be made in it."""

    def advise(self) -> int | None:
        """What should be done now, whatever was done before; None: nobody knows any more."""
        ...


@runtime_checkable
class PackedWorld(Protocol):
    """A world whose views can be kept in less memory than their pictures take."""

    def unpack(self, packed_N: np.ndarray) -> np.ndarray:
        """Pictures [N, H, W, C] of what views are packed in."""
        ...


@runtime_checkable
class PointedWorld(Protocol):
    """A world that knows where in the picture the goal is."""

    def goals(self) -> list[tuple[int, int]]:
        """Rows and columns of the fields with what the command is about; none while it cannot be seen."""
        ...


@runtime_checkable
class ShownWorld(Protocol):
    """A world that can be seen as a whole, by people."""

    def whole(self) -> np.ndarray:
        """A picture of all of it, uint8; who acts does not see it."""
        ...


Note = TypeVar("Note")


class Noted(Generic[Note]):
    """A world with a spectator, who notes something before each action."""

    def __init__(self, world: World, note: Callable[[World], Note]) -> None:
        self.world, self.note, self.notes = world, note, list[Note]()

    @property
    def actions(self) -> Sequence[str]:
        return self.world.actions

    @property
    def ends(self) -> bool:
        return self.world.ends

    def reset(self, seed: int) -> View:
        self.notes = []
        return self.world.reset(seed)

    def step(self, action: int) -> Effect:
        self.notes.append(self.note(self.world))
        return self.world.step(action)

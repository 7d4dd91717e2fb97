"""What a world promises to whoever acts in it, after the manner of Gymnasium: `reset`, then `step` until it is over."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class View:
    """What is known before an action is chosen."""

    command: str
    """What is to be done."""
    picture_HWC: np.ndarray = field(repr=False)
    """What is seen, uint8."""


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

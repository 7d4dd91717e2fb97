"""What a plain recurrent decoder carries from step to step, and the memories its rows look at."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from saccade.runtime.contract import Booleans, Floats, Ids, join_memories

Carried = tuple[Floats, ...]
"""What is carried on, [B, H] each; the first is also what others see."""


@dataclass(frozen=True)
class SeenRows:
    """A memory as each row sees it."""

    keys_BSA: Floats
    """Keys as the score wants them, prepared once."""
    values_BSD: Floats
    mask_BS: Booleans | None

    @property
    def nbytes(self) -> int:
        return self.keys_BSA.nbytes + self.values_BSD.nbytes

    def reorder(self, rows: Ids) -> "SeenRows":
        mask_BS = None if self.mask_BS is None else self.mask_BS[rows]
        return SeenRows(self.keys_BSA[rows], self.values_BSD[rows], mask_BS)

    def join(self, other: "SeenRows") -> "SeenRows":
        (keys, values), mask = join_memories(
            [self.keys_BSA, self.values_BSD], [other.keys_BSA, other.values_BSD], self.mask_BS, other.mask_BS
        )
        return SeenRows(keys, values, mask)


@dataclass(frozen=True)
class RecurrentRows:
    """What is carried from step to step, what is fed into the next one, and each row's memories."""

    layers: list[Carried]
    fed_BE: Floats | None
    seen: Mapping[str, SeenRows]
    """The memories that are looked at, by name."""
    summary_BC: Floats
    """All memories in one vector."""

    @property
    def rows(self) -> int:
        return len(self.summary_BC)

    @property
    def nbytes(self) -> int:
        carried = sum(part.nbytes for layer in self.layers for part in layer)
        return carried + sum(one.nbytes for one in self.seen.values()) + self.summary_BC.nbytes

    def reorder(self, rows: Ids) -> "RecurrentRows":
        return RecurrentRows(
            layers=[tuple(part[rows] for part in layer) for layer in self.layers],
            fed_BE=None if self.fed_BE is None else self.fed_BE[rows],
            seen={name: one.reorder(rows) for name, one in self.seen.items()},
            summary_BC=self.summary_BC[rows],
        )

    def repeat(self, times: int) -> "RecurrentRows":
        return self.reorder(np.arange(self.rows).repeat(times))

    def join(self, other: "RecurrentRows") -> "RecurrentRows":
        fed = None if self.fed_BE is None or other.fed_BE is None else np.concatenate([self.fed_BE, other.fed_BE])
        layers = [
            tuple(np.concatenate(parts) for parts in zip(mine, theirs, strict=True))
            for mine, theirs in zip(self.layers, other.layers, strict=True)
        ]
        seen = {name: one.join(other.seen[name]) for name, one in self.seen.items()}
        return RecurrentRows(layers, fed, seen, np.concatenate([self.summary_BC, other.summary_BC]))

    def where(self, here_B: Booleans, other: "RecurrentRows") -> "RecurrentRows":
        """The rows marked True, and the other state's rows elsewhere."""
        if here_B.all():
            return self
        layers = [
            tuple(np.where(here_B[:, None], new, old) for new, old in zip(layer, before, strict=True))
            for layer, before in zip(self.layers, other.layers, strict=True)
        ]
        fed = None
        if self.fed_BE is not None and other.fed_BE is not None:
            fed = np.where(here_B[:, None], self.fed_BE, other.fed_BE)
        return replace(self, layers=layers, fed_BE=fed)

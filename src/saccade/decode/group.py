"""Rows of a session that choose their tokens together, because their strategies are alike."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, Self

import numpy as np

from saccade.decode.beam import Beams
from saccade.decode.row import Beam, Greedy, Sample, Strategy, Text
from saccade.decode.single import Singles
from saccade.runtime.contract import Floats, Ids


class Group(Protocol):
    """Texts that choose their tokens together: `Singles` or `Beams`."""

    shared: Strategy
    """What their strategies have in common."""
    begun: bool
    """Every text has all of its rows."""
    texts: list[Text]
    rows: Ids
    """Where their rows stand in the decoder's state, or among what is still to be read."""
    tokens: Ids
    """What the rows write next."""

    def choose(self, logits_BV: Floats) -> list[Text]:
        """Choose every row's next token; texts that are over leave. The texts that have something new."""
        ...

    def keep(self, places: list[int]) -> None:
        """Only the texts at these places stay."""
        ...

    def split(self, places: list[int]) -> Self:
        """The texts at these places, apart."""
        ...

    def join(self, other: Self) -> None:
        """The other texts come behind these."""
        ...

    def windows(self, length: int) -> list[list[int]]:
        """The last tokens of every row, prompts included."""
        ...


def shared_part(strategy: Strategy) -> Strategy:
    """A strategy without what every text may have for itself."""
    match strategy:
        case Greedy():
            return Greedy()
        case Sample():
            return Sample(replace(strategy.drawing, seed=0))
        case Beam():
            return Beam(strategy.width)


def group_of(shared: Strategy, end: int, texts: Sequence[Text], rows: list[int]) -> Group:
    chosen = [texts[row] for row in rows]
    if isinstance(shared, Beam):
        return Beams(shared, end, chosen, np.array(rows))
    return Singles(shared, end, chosen, np.array(rows))


def number_rows(groups: Sequence[Group]) -> None:
    """The groups' rows stand one group after the other."""
    first = 0
    for group in groups:
        after = first + len(group.rows)
        group.rows = np.arange(first, after)
        first = after


def joined(parts: list[Ids]) -> Ids:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)

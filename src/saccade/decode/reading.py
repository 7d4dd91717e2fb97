"""What a session's decoder is to read before rows can write: as many prompts as possible in one call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from saccade.decode.group import Group, joined, number_rows
from saccade.decode.row import Strategy
from saccade.runtime.contract import AnyArrayMemory


@dataclass
class Reading:
    """Texts that the decoder is to read in one call."""

    memory: AnyArrayMemory | None
    prompts: Sequence[Sequence[int]]
    groups: list[Group]
    """Their rows are places among the prompts."""


def as_few(readings: Sequence[Reading]) -> Iterator[Reading]:
    """As few readings as will do: all that look at no memory are one. Rows that were dropped are left out."""
    alone = [reading for reading in readings if reading.memory is None]
    if len(alone) > 1:
        prompts: list[Sequence[int]] = []
        groups: list[Group] = []
        for reading in alone:
            for group in reading.groups:
                group.rows = group.rows + len(prompts)
            prompts += reading.prompts
            groups += reading.groups
        alone = [Reading(None, prompts, _merged(groups))]
    for reading in (*alone, *(reading for reading in readings if reading.memory is not None)):
        groups = [group for group in reading.groups if group.texts]
        if groups:
            yield _wanted(reading, groups)


def _merged(groups: Sequence[Group]) -> list[Group]:
    """Groups that can choose together become one."""
    merged: dict[tuple[Strategy, bool], Group] = {}
    for group in groups:
        if (group.shared, group.begun) in merged:
            merged[group.shared, group.begun].join(group)
        else:
            merged[group.shared, group.begun] = group
    return list(merged.values())


def _wanted(reading: Reading, groups: list[Group]) -> Reading:
    """Only what these groups want to read, one group after the other."""
    rows = joined([group.rows for group in groups])
    if len(groups) == 1 and len(rows) == len(reading.prompts):
        return reading
    number_rows(groups)
    memory = None if reading.memory is None else reading.memory.rows(rows)
    return Reading(memory, [reading.prompts[row] for row in rows.tolist()], groups)

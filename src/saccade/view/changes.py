"""Changes that a visitor makes to a model, as the page writes them down, and the edit of `saccade.watch` they are."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from saccade.config import Record
from saccade.sites import Edit

MOST_CHANGES = 2_000


class HeadOff(Record):
    """A head whose output is zero."""

    kind: Literal["head"] = "head"
    site: str = Field(max_length=500)
    head: int = Field(ge=0, lt=10_000)


class LayerOff(Record):
    """All heads of a layer."""

    kind: Literal["layer"] = "layer"
    site: str = Field(max_length=500)


class Hidden(Record):
    """A position that nobody may look at."""

    kind: Literal["hide"] = "hide"
    memory: str = Field(max_length=500)
    place: int = Field(ge=0, lt=10_000_000)


Change = Annotated[HeadOff | LayerOff | Hidden, Field(discriminator="kind")]


def edit_from(changes: Sequence[HeadOff | LayerOff | Hidden]) -> Edit:
    """All changes together."""
    hidden: dict[str, list[int]] = {}
    for change in changes:
        if isinstance(change, Hidden):
            hidden.setdefault(change.memory, []).append(change.place)
    return Edit(
        without_heads=[(change.site, change.head) for change in changes if isinstance(change, HeadOff)],
        without_layers=[change.site for change in changes if isinstance(change, LayerOff)],
        without_memory=hidden,
    )

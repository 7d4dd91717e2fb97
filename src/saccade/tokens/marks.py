"""The ids that are no text. They belong to a vocabulary: a model folder says its own, other modules ask for them."""

from pydantic import Field

from saccade.config import Record

SPECIALS = ["<pad>", "<s>", "</s>"]
"""The marks of a vocabulary that is trained here, in the order of their ids."""


class Marks(Record):
    """Which id has which meaning. The defaults are those of vocabularies that are trained here."""

    pad: int = Field(0, ge=0)
    """Fills short rows of a batch."""
    begin: int = Field(1, ge=0)
    """Where a text begins."""
    end: int = Field(2, ge=0)
    """Where a text ends."""
    start: int = Field(1, ge=0)
    """What a decoder reads before its first token; mostly the same as `begin`."""
    mask: int | None = Field(None, ge=0)
    """Stands for a hidden token, in models that fill gaps."""
    unknown: int | None = Field(None, ge=0)
    """Stands for what the vocabulary cannot spell."""

    @property
    def never_written(self) -> tuple[int, ...]:
        """Ids that no search may choose."""
        found = {self.pad, self.begin, self.start, self.mask} - {self.end, None}
        return tuple(sorted(i for i in found if i is not None))

    @property
    def special(self) -> frozenset[int]:
        """All of them."""
        return frozenset(i for i in self.model_dump().values() if i is not None)

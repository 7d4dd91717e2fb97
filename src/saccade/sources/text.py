"""A text as input, and texts as padded rows of token ids."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saccade.errors import UserError, WrongUse
from saccade.sources.source import Collated, Source, shown

if TYPE_CHECKING:
    from saccade.axes import Pieces
    from saccade.tokens.marks import Marks
    from saccade.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class TextItem:
    """A text that was read."""

    text: str
    ids: list[int] = field(default_factory=list, repr=False)
    """Its tokens, the end of the text left out; none where the source has no vocabulary."""


@dataclass(frozen=True)
class TextSource(Source[TextItem, Collated]):
    """A text. With a vocabulary it is cut into tokens; without one, what reads it does so in its own way."""

    longest: int = 1_000_000
    """Characters of one text that are read."""
    most_tokens: int | None = None
    """Tokens beyond which a text is refused."""
    vocabulary: "Vocabulary | None" = field(default=None, repr=False, compare=False)
    """What cuts texts into tokens."""

    kind: ClassVar[str] = "text"
    takes: ClassVar[str] = "a text is a string"

    def is_one(self, raw: Any) -> bool:
        return isinstance(raw, str)

    def read(self, raw: Any) -> TextItem:
        text = self.check(raw)
        return self._item(text, [] if self.vocabulary is None else self.vocabulary.read([text])[0])

    def read_all(self, raws: Sequence[Any]) -> list[TextItem | UserError]:
        """In one call of the tokenizer, which is faster than one by one."""
        if self.vocabulary is None:
            return super().read_all(raws)
        try:
            texts = [self.check(raw) for raw in raws]
            ids = self.vocabulary.read(texts)
        except UserError:  # find out which
            return super().read_all(raws)
        return [self._item_or_tell(raw, some) for raw, some in zip(texts, ids, strict=True)]

    def check(self, raw: Any) -> str:
        """The text itself, if it is one and not too long."""
        if not isinstance(raw, str):
            raise WrongUse(f"{self.takes}, not {shown(raw)}")
        if len(raw) > self.longest:
            raise UserError(f"{len(raw):,} characters; at most {self.longest:,} are read in one text")
        return str(raw)  # NumPy's strings are strings, but show themselves as np.str_

    def label(self, item: TextItem) -> str:
        return item.text

    def size(self, item: TextItem) -> int:
        return len(item.text) if self.vocabulary is None else len(item.ids) + 1

    def collate(self, items: Sequence[TextItem]) -> Collated:
        return Collated(*pad_sources([item.ids for item in items], self._known.marks))

    def labels(self, item: TextItem) -> "Pieces":
        from saccade.axes import Pieces

        return Pieces.of(self._known, item.ids, end=True)

    @property
    def _known(self) -> "Vocabulary":
        if self.vocabulary is None:
            raise ValueError("a source without a vocabulary has no tokens")
        return self.vocabulary

    def _item(self, text: str, ids: list[int]) -> TextItem:
        if self.most_tokens is not None and len(ids) > self.most_tokens:
            raise UserError(f"{len(ids)} tokens; at most {self.most_tokens} can be read in one text")
        return TextItem(text, ids)

    def _item_or_tell(self, text: str, ids: list[int]) -> TextItem | UserError:
        try:
            return self._item(text, ids)
        except UserError as error:
            return error


def pad_sources(
    sequences: Sequence[Sequence[int] | np.ndarray], marks: "Marks"
) -> tuple[np.ndarray, np.ndarray | None]:
    """Source rows, each closed by </s>, and their padding mask (None where nothing is padded)."""
    lengths = np.array([len(sequence) + 1 for sequence in sequences])
    rows = np.full((len(sequences), int(lengths.max())), marks.pad, dtype=np.int64)
    for row, sequence in enumerate(sequences):
        rows[row, : len(sequence)] = sequence
        rows[row, len(sequence)] = marks.end
    return rows, None if (lengths == lengths[0]).all() else np.arange(rows.shape[1]) < lengths[:, None]

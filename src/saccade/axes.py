"""What stands along the edges of a table of looks: pieces of text, a picture's grid, time, actions, bare positions."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from saccade.config import Record
from saccade.tokens.vocabulary import Vocabulary

BEGIN_LABEL, END_LABEL = "(begin)", "(end)"
LARGEST_GRID = 4_096
"""Rows or columns."""
UNFINISHED = "\ufffd"
"""What some bytes of a character look like."""
LONGEST_CHARACTER = 4
"""Bytes of UTF-8."""
MOST_MOMENTS = 60
"""Of a recording, in a picture."""
Groups = list[list[int]]
"""Positions that are drawn as one."""


class Pieces(Record):
    """Pieces of a text; those of a word are drawn as one."""

    kind: Literal["pieces"] = "pieces"
    labels: tuple[str, ...]
    """A piece that begins a word begins with a space; one that only begins a character is empty."""
    alone: tuple[int, ...] = ()
    """Positions that are drawn by themselves, such as marks and letters, counted from 0."""

    @classmethod
    def of(cls, vocabulary: Vocabulary, ids: Sequence[int], *, end: bool = False) -> "Pieces":
        """Tokens by their text; `end`: and the end mark, which the ids leave out."""
        marks = vocabulary.marks
        ids = [*ids, marks.end] if end else ids
        named = {marks.begin: BEGIN_LABEL, marks.start: BEGIN_LABEL, marks.end: END_LABEL}
        labels = (named.get(i, piece) for i, piece in zip(ids, _spelt(vocabulary, ids), strict=True))
        return cls(labels=tuple(labels), alone=tuple(place for place, i in enumerate(ids) if i in marks.special))

    @classmethod
    def letters(cls, labels: Iterable[str]) -> "Pieces":
        """Each by itself."""
        kept = tuple(labels)
        return cls(labels=kept, alone=tuple(range(len(kept))))

    def __len__(self) -> int:
        return len(self.labels)

    def groups(self) -> Groups:
        """A word begins at a space; a mark of punctuation, and what is said to be alone, stands alone."""
        found: Groups = []
        alone = set(self.alone)
        for place, piece in enumerate(self.labels):
            apart = place in alone or place - 1 in alone
            begins = not found or piece[:1].isspace() or apart
            if begins or _is_punctuation(piece) or _is_punctuation(self.labels[place - 1]):
                found.append([place])
            else:
                found[-1].append(place)
        return found

    def name(self, group: Sequence[int]) -> str:
        """As it can be drawn: what has no shape, such as a control character, is shown as U+FFFD."""
        text = "".join(self.labels[place] for place in group)
        word = text.strip() or ("␣" if text else "…")
        return "".join(letter if letter.isprintable() else "\ufffd" for letter in word)


class _Single(Record):
    """An axis whose positions are each drawn by themselves."""

    def __len__(self) -> int:
        raise NotImplementedError

    def groups(self) -> Groups:
        return [[place] for place in range(len(self))]


class Grid(_Single):
    """The fields of a picture, row after row."""

    kind: Literal["grid"] = "grid"
    height: int = Field(ge=1, le=LARGEST_GRID)
    width: int = Field(ge=1, le=LARGEST_GRID)

    def __len__(self) -> int:
        return self.height * self.width

    def name(self, group: Sequence[int]) -> str:
        """Row and column, counted from 1."""
        row, column = divmod(group[0], self.width)
        return f"{row + 1},{column + 1}"


class Time(_Single):
    """Moments of a recording."""

    kind: Literal["time"] = "time"
    count: int = Field(ge=0)
    seconds: float = Field(gt=0)
    """Between two positions."""

    def __len__(self) -> int:
        return self.count

    def groups(self) -> Groups:
        """Moments of equal length, as many as can be told apart."""
        each = max(1, -(-self.count // MOST_MOMENTS))
        return [list(range(first, min(first + each, self.count))) for first in range(0, self.count, each)]

    def name(self, group: Sequence[int]) -> str:
        return f"{group[0] * self.seconds:.2f} s"


class Actions(_Single):
    """What was done, step by step."""

    kind: Literal["actions"] = "actions"
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def name(self, group: Sequence[int]) -> str:
        return self.labels[group[0]]


class Positions(_Single):
    """Nothing is known but how many there are."""

    kind: Literal["positions"] = "positions"
    count: int = Field(ge=0)

    def __len__(self) -> int:
        return self.count

    def name(self, group: Sequence[int]) -> str:
        return str(group[0] + 1)


Axis = Annotated[Pieces | Grid | Time | Actions | Positions, Field(discriminator="kind")]


def _spelt(vocabulary: Vocabulary, ids: Sequence[int]) -> list[str]:
    """Each id as text; a character that several ids make stands at the last of them."""
    found: list[str] = []
    waiting: list[int] = []
    for place, (i, piece) in enumerate(zip(ids, vocabulary.pieces(ids), strict=True)):
        if i in vocabulary.marks.special:
            found.append(piece)
            continue
        waiting.append(i)
        text = piece if len(waiting) == 1 else vocabulary.decode(waiting, continues=True)
        last = place + 1 == len(ids) or ids[place + 1] in vocabulary.marks.special
        unfinished = text.endswith(UNFINISHED) and len(waiting) < LONGEST_CHARACTER and not last
        found.append("" if unfinished else text)
        waiting = waiting if unfinished else []
    return found


def _is_punctuation(piece: str) -> bool:
    """Only punctuation; a part of a character (shown as U+FFFD) is none."""
    text = piece.strip()
    return bool(text) and not any(letter.isalnum() for letter in text) and UNFINISHED not in text

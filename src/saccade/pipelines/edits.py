"""What a corrector may change: plain words, into words not far from them. All else stays as it was typed."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from saccade.data.misspell import distance
from saccade.data.noise import Found, find_words, like

FARTHEST = 3
"""A word may be changed into one that differs by one slip in so many of its letters, and always by two."""


@dataclass(frozen=True)
class TextEdit:
    """One change of a text."""

    start: int
    """Where in the source, in characters."""
    stop: int
    wrong: str
    right: str


def edits(source: str, output: str) -> list[TextEdit]:
    """The changes from source to output that may be made.

    Words are laid beside words; a change is believed where plain words stand on both sides, near enough to be one
    another's misspelling, or where the same letters are only spaced otherwise. Capitals stay.
    """
    before, after = list(find_words(source)), list(find_words(output))
    words, written = (
        [source[word.start : word.stop] for word in before],
        [output[word.start : word.stop] for word in after],
    )
    found: list[TextEdit] = []
    for kind, a, b, c, d in SequenceMatcher(None, words, written, autojunk=False).get_opcodes():
        if kind == "replace":
            found += _changes(source, before[a:b], written[c:d])
    return found


def apply(source: str, changes: list[TextEdit]) -> str:
    """The source with the changes made."""
    parts, end = [], 0
    for change in changes:
        parts += [source[end : change.start], change.right]
        end = change.stop
    return "".join([*parts, source[end:]])


def _changes(source: str, before: list[Found], after: list[str]) -> Iterator[TextEdit]:
    if len(before) == len(after):
        for word, right in zip(before, after, strict=True):
            wrong = source[word.start : word.stop]
            if right.lower() != wrong.lower() and _near(wrong, right):
                yield TextEdit(word.start, word.stop, wrong, like(wrong, right))
        return
    start, stop = before[0].start, before[-1].stop
    wrong, right = source[start:stop], " ".join(after)
    # A space lost, or one too many.
    if wrong.replace(" ", "") == right.replace(" ", ""):
        yield TextEdit(start, stop, wrong, right)


def _near(wrong: str, right: str) -> bool:
    return distance(right.lower(), wrong.lower()) <= max(2, len(wrong) // FARTHEST)

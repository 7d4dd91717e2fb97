"""A trained speller: a text in, the text with its misspellings mended out, and which changes were made."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from saccade.data.noise import find_words
from saccade.errors import UserError
from saccade.look.record import TextLooks
from saccade.tasks.contract import Report, Request, unreported
from saccade.tasks.edits import Edit, apply, edits
from saccade.tasks.translator import Translation, Translator

LONGEST = 160
"""Characters that are corrected at once; longer texts are cut at spaces, after a sentence where there is one."""
CUTS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\s+")


@dataclass(frozen=True)
class Correction:
    """A text and what was changed in it."""

    source: str
    text: str
    score: float
    """Log-probability of all that was written, with the length penalty."""
    edits: list[Edit]
    parts: list[Translation] = field(repr=False)
    others: list["Correction"] = field(default_factory=list, repr=False)

    @property
    def best(self) -> list["Correction"]:
        return [self, *self.others]

    @cached_property
    def looks(self) -> TextLooks:
        """Of the first part of a long text."""
        if not self.parts:
            raise UserError("there is no word in it that could be misspelt, and nothing was looked at")
        return self.parts[0].looks

    def record(self) -> dict[str, Any]:
        changes = [
            {"start": edit.start, "stop": edit.stop, "wrong": edit.wrong, "right": edit.right} for edit in self.edits
        ]
        record: dict[str, Any] = {"source": self.source, "text": self.text, "edits": changes}
        record["score"] = round(self.score, 5)
        if self.others:
            record["best"] = [{"text": one.text, "score": round(one.score, 5)} for one in self.best]
        return record


class Corrector(Translator):
    """Corrects: `corrector("I recieve teh letter.")`. Case, punctuation, numbers, addresses and code stay."""

    def answer(  # type: ignore[override]
        self,
        texts: Sequence[str],
        request: Request,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[Correction | UserError]:
        stretches = [list(_stretches(text)) for text in texts]
        asked = [text[a:b] for text, parts in zip(texts, stretches, strict=True) for a, b in parts]
        places = range(len(texts)) if numbers is None else numbers
        owners = [place for place, parts in zip(places, stretches, strict=True) for _ in parts]
        written = iter(super().answer(asked, request, numbers=owners, report=report))
        return [
            self._correction(text, parts, [next(written) for _ in parts])
            for text, parts in zip(texts, stretches, strict=True)
        ]

    def _correction(
        self, text: str, stretches: list[tuple[int, int]], written: list[Translation | UserError]
    ) -> Correction | UserError:
        found: list[Translation] = []
        for one in written:
            if isinstance(one, UserError):
                return one
            found.append(one)
        score = sum(one.score for one in found)
        others = []
        if len(found) == 1:  # several ways to correct are shown of short texts; a long one has too many
            others = [self._one(text, stretches, [other], other.score) for other in found[0].others]
        first = self._one(text, stretches, found, score)
        seen = {first.text}
        for other in others:
            if other.text not in seen:
                seen.add(other.text)
                first.others.append(other)
        return first

    def _one(self, text: str, stretches: list[tuple[int, int]], parts: list[Translation], score: float) -> Correction:
        changes = [
            Edit(start + edit.start, start + edit.stop, edit.wrong, edit.right)
            for (start, stop), part in zip(stretches, parts, strict=True)
            for edit in edits(text[start:stop], part.text)
        ]
        return Correction(text, apply(text, changes), score, changes, parts)


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """The parts of a text that are corrected, each by itself: those with a plain word in them, and not too long."""
    start = 0
    while start < len(text):
        stop = len(text)
        if stop - start > LONGEST:
            cuts = [cut.end() for cut in CUTS.finditer(text, start, start + LONGEST)]
            ends = [cut for cut in cuts if text[start:cut].rstrip()[-1:] in (".", "!", "?", "…")]
            stop = (ends or cuts or [_end_of_run(text, start)])[-1]
        part = text[start:stop].rstrip()
        begin = stop - len(text[start:stop].lstrip())
        if begin < start + len(part) <= begin + LONGEST and any(find_words(part)):
            yield begin, start + len(part)
        start = stop


def _end_of_run(text: str, start: int) -> int:
    """Where a run without spaces ends, which is no word."""
    found = re.compile(r"\s").search(text, start)
    return found.end() if found else len(text)

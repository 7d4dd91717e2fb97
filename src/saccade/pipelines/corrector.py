"""A trained speller: a text in, the text with its misspellings mended out, and which changes were made."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from saccade.axes import Axis, Pieces
from saccade.data.lexicon import Lexicon
from saccade.data.misspell import distance
from saccade.data.noise import find_words, like, plainly
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.look.record import Looks
from saccade.pipelines.doubt import Guess, chances, doubts, mended_before
from saccade.pipelines.edits import TextEdit, apply, edits
from saccade.pipelines.pipeline import Report, Request, Requests, Values, once_each, request_of_each, unreported
from saccade.pipelines.translator import Translation, Translator

MOST_PRICE = 100.0
NEAR = 5
"""Words that are tried for a strange one because they are near."""
SLIP = 2.0
"""What each slip costs there, in natural logarithms: how rare words are spelt, the model does not know by itself."""
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
    edits: list[TextEdit]
    parts: list[Translation] = field(repr=False)
    others: list["Correction"] = field(default_factory=list, repr=False)

    @property
    def best(self) -> list["Correction"]:
        return [self, *self.others]

    @cached_property
    def looks(self) -> Looks:
        if not self.parts:
            raise UserError("there is no word in it that could be misspelt, and nothing was looked at")
        return Looks.join([part.looks for part in self.parts])

    def record(self) -> Values:
        changes = [
            {"start": edit.start, "stop": edit.stop, "wrong": edit.wrong, "right": edit.right} for edit in self.edits
        ]
        record: Values = {"source": self.source, "text": self.text, "edits": changes}
        record["score"] = round(self.score, 5)
        if self.others:
            record["best"] = [{"text": one.text, "score": round(one.score, 5)} for one in self.best]
        return record


class Strange(NamedTuple):
    """A word that may stand for others."""

    text: str
    before: str
    """What stands before it, mended."""
    start: int
    stop: int
    word: str
    meant: list[str]


class Corrector(Translator):
    """Corrects: `corrector("I recieve teh letter.")`. Case, punctuation, numbers, addresses and code stay."""

    caution = 1.0
    """A word is changed only if the model gives less than this probability to leaving it as it is."""
    lexicon: Lexicon | None = None
    """A word is changed only into one of these; None: into any."""

    def configure(self, folder: ModelFolder) -> None:
        where = folder.path / "config.json"
        caution = folder.config.get("caution", 1.0)
        price = folder.config.get("unknown_word_cost", folder.config.get("price", 0.0))
        if not isinstance(caution, int | float) or not 0 < caution <= 1:
            raise UserError(f"{where}: caution is {caution!r}, not a number above 0, at most 1")
        if not isinstance(price, int | float) or not 0 <= price <= MOST_PRICE:
            raise UserError(f"{where}: unknown_word_cost is {price!r}, not a number from 0 to {MOST_PRICE}")
        self.caution = caution
        if folder.words is not None:
            self.lexicon = Lexicon(folder.words, price)

    def answer(  # type: ignore[override]
        self,
        texts: Sequence[str],
        request: Requests,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[Correction | UserError]:
        stretches = [list(_stretches(text)) for text in texts]
        requests = request_of_each(request, len(texts))
        asked = [text[a:b] for text, parts in zip(texts, stretches, strict=True) for a, b in parts]
        places = range(len(texts)) if numbers is None else numbers
        owners = [place for place, parts in zip(places, stretches, strict=True) for _ in parts]
        wider = zip(once_each(self._wider, requests), stretches, strict=True)
        each = [one for one, parts in wider for _ in parts]
        answers = super().answer(asked, each, numbers=owners, report=report)
        written = iter(zip(answers, self._changes(asked, answers), strict=True))
        return [
            self._correction(text, parts, [next(written) for _ in parts], one.best)
            for text, parts, one in zip(texts, stretches, requests, strict=True)
        ]

    def _wider(self, request: Request) -> Request:
        """The search does not know the lexicon: its second choice may be a word where its first one is none."""
        if self.lexicon is None:
            return request
        return replace(request, best=max(request.best, request.beam or self.config.beam, 2 * request.best - 1))

    def source_axis(self, ids: list[int]) -> Axis:
        """Letters: each stands for itself."""
        return Pieces.letters(Pieces.of(self.vocabulary, ids, end=True).labels)

    def target_axis(self, ids: list[int], *, end: bool = False) -> Axis:
        """Pieces, each with the letters it was read from."""
        return Pieces.letters(Pieces.of(self.vocabulary, ids, end=end).labels)

    def _changes(self, asked: Sequence[str], answers: Sequence[Translation | UserError]) -> list[list[TextEdit]]:
        """Those changes of each text that the model is sure enough of."""
        found = [
            [] if isinstance(answer, UserError) else self._edits(text, answer)
            for text, answer in zip(asked, answers, strict=True)
        ]
        doubtful = [n for n, answer in enumerate(answers) if not self._is_sure(asked[n], answer, found[n])]
        strange = {n: list(self._strange(asked[n], answers[n], found[n])) for n in doubtful} if self.lexicon else {}
        likeliest = self._likeliest([place for some in strange.values() for place in some])
        if self.caution < 1:
            self._give_up(asked, found, doubtful)
        for n, places in strange.items():
            kept = [edit for edit in found[n] if not any(edit.start == place.start for place in places)]
            found[n] = sorted([*kept, *filter(None, (next(likeliest) for _ in places))], key=lambda edit: edit.start)
        return found

    def _give_up(self, asked: Sequence[str], found: list[list[TextEdit]], doubtful: Sequence[int]) -> None:
        """The changes that it is not sure of."""
        doubted = doubts(self.model, self.vocabulary, [asked[n] for n in doubtful], [found[n] for n in doubtful])
        for n, each in zip(doubtful, doubted, strict=True):
            found[n] = [edit for edit, doubt in zip(found[n], each, strict=True) if doubt < self.caution]

    def _strange(self, text: str, answer: Translation | UserError, found: Sequence[TextEdit]) -> Iterator[Strange]:
        """The words of a text that are neither on the list nor names, and all that could be meant: what the answers
        have there, and what is near on the list."""
        if isinstance(answer, UserError) or self.lexicon is None:
            return
        written: dict[tuple[int, int], list[str]] = {}
        for one in answer.best:
            for edit in self._known(edits(text, one.text)):
                written.setdefault((edit.start, edit.stop), []).append(edit.right)
        for start, stop, opens in find_words(text):
            word = text[start:stop]
            elsewhere = any(edit.start < stop and start < edit.stop and edit.start != start for edit in found)
            spaced = any(edit.start == start and edit.stop != stop for edit in found)
            if not (elsewhere or spaced or self.lexicon.knows(word, opens=opens)):
                near = [like(word, one) for one in self.lexicon.near(plainly(word), NEAR)]
                meant = list(dict.fromkeys([*written.get((start, stop), []), *near]))
                if meant:
                    yield Strange(text, mended_before(text, found, start), start, stop, word, meant)

    def _likeliest(self, places: Sequence[Strange]) -> Iterator[TextEdit | None]:
        """For each strange word the likeliest of what could be meant, if it is likelier than the word itself at its
        price."""
        guesses = [
            Guess(place.text, place.before, word, place.stop) for place in places for word in (place.word, *place.meant)
        ]
        likely = iter(chances(self.model, self.vocabulary, guesses) if guesses else [])
        for place in places:
            left, *others = [next(likely) for _ in range(1 + len(place.meant))]
            slips = [distance(plainly(word), plainly(place.word)) for word in place.meant]
            chance, right = max(
                (chance * math.exp(-SLIP * far), chance, word)
                for chance, far, word in zip(others, slips, place.meant, strict=True)
            )[1:]
            assert self.lexicon is not None
            sure = left * math.exp(-self.lexicon.price) < self.caution * chance
            yield TextEdit(place.start, place.stop, place.word, right) if sure else None

    def _edits(self, text: str, answer: Translation) -> list[TextEdit]:
        """The changes of the answer; or, by a lexicon, for every word but names the first of the answers that has a
        known word there."""
        lexicon = self.lexicon
        if lexicon is None:
            return edits(text, answer.text)
        ways = [{(edit.start, edit.stop): edit for edit in edits(text, one.text)} for one in answer.best]
        opens = {word.start: word.opens for word in find_words(text)}
        chosen: list[TextEdit] = []
        for start, stop in sorted({place for way in ways for place in way}):
            left = lexicon.knows(text[start:stop], opens=opens[start])
            if left and not lexicon.has(text[start:stop]):
                continue  # a name
            for edit in (way.get((start, stop)) for way in ways):
                if (edit is None and not left) or (edit is not None and not self._known([edit])):
                    continue
                if edit is not None and (not chosen or chosen[-1].stop <= start):
                    chosen.append(edit)
                break
        return chosen

    def _known(self, changes: list[TextEdit]) -> list[TextEdit]:
        """Those into words of the lexicon, if there is one."""
        if self.lexicon is None:
            return changes
        return [edit for edit in changes if all(map(self.lexicon.has, edit.right.split()))]

    def _is_sure(self, text: str, answer: Translation | UserError, changes: list[TextEdit]) -> bool:
        """Whether no word can be doubted: what was written is so likely that all else together is not enough."""
        if isinstance(answer, UserError):
            return True
        if apply(text, changes) != answer.text:
            return False
        return 1 - math.exp(answer.logprob) < self.caution

    def _correction(
        self,
        text: str,
        stretches: list[tuple[int, int]],
        written: list[tuple[Translation | UserError, list[TextEdit]]],
        best: int,
    ) -> Correction | UserError:
        found: list[Translation] = []
        for one, _ in written:
            if isinstance(one, UserError):
                return one
            found.append(one)
        first = _one(text, stretches, found, [changes for _, changes in written])
        if len(found) > 1:  # several ways to correct are shown of short texts; a long one has too many
            return first
        seen = {first.text}
        for (start, stop), part in zip(stretches, found, strict=True):
            for other in part.others:
                correction = _one(text, stretches, [other], [self._known(edits(text[start:stop], other.text))])
                if len(first.others) + 1 < best and correction.text not in seen:
                    seen.add(correction.text)
                    first.others.append(correction)
        return first


def _one(
    text: str, stretches: list[tuple[int, int]], parts: list[Translation], changes: list[list[TextEdit]]
) -> Correction:
    """A text with the changes of each of its stretches, which count from there."""
    moved = [
        TextEdit(start + edit.start, start + edit.stop, edit.wrong, edit.right)
        for (start, _), some in zip(stretches, changes, strict=True)
        for edit in some
    ]
    return Correction(text, apply(text, moved), sum(part.score for part in parts), moved, parts)


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

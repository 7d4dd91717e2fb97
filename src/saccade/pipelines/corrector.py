"""A trained speller: a text in, the text with its misspellings mended out, and which changes were made."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, NamedTuple, cast

from pydantic import Field

from saccade.axes import Pieces
from saccade.data.lexicon import Lexicon
from saccade.data.misspell import distance
from saccade.data.noise import find_words, like, plainly
from saccade.errors import UserError
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.doubt import Guess, chances, doubts, mended_before
from saccade.pipelines.edits import TextEdit, apply, edits
from saccade.pipelines.forced import Forced, only_part
from saccade.pipelines.pipeline import Pipeline, Report, Request, once_each
from saccade.pipelines.table import TASKS
from saccade.pipelines.translator import Translation, Translator
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sources.text import TextItem, TextSource

MOST_PRICE = 100.0
NEAR = 5
"""Words that are tried for a strange one because they are near."""
SLIP = 2.0
"""What each slip costs there, in natural logarithms: how rare words are spelt, the model does not know by itself."""
LONGEST = 160
"""Characters that are corrected at once; longer texts are cut at spaces, after a sentence where there is one."""
CUTS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\s+")


@dataclass(frozen=True)
class Correction(Answer):
    """A text and what was changed in it; its score is the log-probability of all that was written, with the length
    penalty."""

    edits: list[TextEdit]
    """What was changed, in the order of the text."""
    parts: list[Translation] = field(repr=False)
    """What was written for each stretch of the text."""

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


class CorrectorSettings(TaskSettings):
    """What a model folder says about how to correct."""

    renamed: ClassVar[Mapping[str, str]] = {"price": "unknown_word_cost"}

    caution: Annotated[float, Field(gt=0, le=1)] = 1.0
    """A word is changed only if the model gives less than this probability to leaving it as it is."""
    unknown_word_cost: Annotated[float, Field(ge=0, le=MOST_PRICE)] = 0.0
    """What a word that is not in the lexicon costs, in natural logarithms."""
    real_word_caution: Annotated[float, Field(ge=0, le=1)] = 1.0
    """The same as `caution` for words that are in the lexicon; the smaller of both counts."""
    written_words: Annotated[int, Field(ge=0)] = 0
    """How many words of the list, its first ones, may be written; the others are only known to be right. 0: all."""


class Corrector(Pipeline[TextItem, Correction]):
    """Mends misspellings. Case, punctuation, numbers, addresses and code stay.

    >>> corrector = saccade.load("speller")
    >>> corrector("Did you recieve a leter?").text
    'Did you receive a letter?'

    A translator of misspelt into right text is asked, and believed where it is sure enough.
    """

    options = Translator.options

    def __init__(
        self,
        translator: Translator,
        *,
        caution: float = 1.0,
        real_word_caution: float = 1.0,
        lexicon: Lexicon | None = None,
    ) -> None:
        """`caution`: a word is changed only if the model gives less than this probability to leaving it as it is.
        `real_word_caution`: the same for words of the lexicon, if it is less. `lexicon`: a word is changed only into
        one of its words; None: into any."""
        self.translator, self.caution, self.lexicon = translator, caution, lexicon
        self.real_word_caution = real_word_caution

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Corrector":
        """The model of a folder."""
        settings = folder.settings(CorrectorSettings)
        translator = Translator.open(folder, how, whole=True)
        return cls(
            translator,
            caution=settings.caution,
            real_word_caution=settings.real_word_caution,
            lexicon=_lexicon(folder, settings),
        )

    @property
    def source(self) -> TextSource:
        return cast(TextSource, TASKS["correction"].source)

    @property
    def choice(self) -> Choice:
        return self.translator.choice

    def answer_items(
        self, items: Sequence[TextItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Correction | UserError]:
        texts = [item.text for item in items]
        cuts = [list(stretches(text)) for text in texts]
        asked = [text[a:b] for text, parts in zip(texts, cuts, strict=True) for a, b in parts]
        owners = [place for place, parts in zip(places, cuts, strict=True) for _ in parts]
        wider = zip(once_each(self._wider, requests), cuts, strict=True)
        each = [one for one, parts in wider for _ in parts]
        answers = self.translator.answer(asked, each, numbers=owners, report=report)
        written = iter(zip(answers, self._changes(asked, answers), strict=True))
        return [
            self._correction(text, parts, [next(written) for _ in parts], one.best)
            for text, parts, one in zip(texts, cuts, requests, strict=True)
        ]

    def _wider(self, request: Request) -> Request:
        """The search does not know the lexicon: its second choice may be a word where its first one is none."""
        if self.lexicon is None:
            return request
        return replace(
            request, best=max(request.best, request.beam or self.translator.config.beam, 2 * request.best - 1)
        )

    def look(self, answer: Correction) -> Looks:
        """Of every part: letters, and what was written while looking at them; each stands for itself."""
        if not answer.parts:
            raise UserError("there is no word in it that could be misspelt, and nothing was looked at")
        return Looks.join([self.translator.look_as(part, _letters, _letters) for part in answer.parts])

    def forced(self, answer: Correction, inputs: Sequence[str] | None = None) -> Forced:
        """Of what the model wrote, whatever of it was taken."""
        if inputs is None:
            found = Forced.join([self.translator.forced(part) for part in answer.parts])
        else:
            only_part(len(answer.parts), "part")
            found = self.translator.forced(answer.parts[0], inputs)
        return Forced(_letters(found.pieces), found.logprobs_IP)

    def _changes(self, asked: Sequence[str], answers: Sequence[Translation | UserError]) -> list[list[TextEdit]]:
        """Those changes of each text that the model is sure enough of."""
        found = [
            [] if isinstance(answer, UserError) else self._edits(text, answer)
            for text, answer in zip(asked, answers, strict=True)
        ]
        doubtful = [n for n, answer in enumerate(answers) if not self._is_sure(asked[n], answer, found[n])]
        strange = {n: list(self._strange(asked[n], answers[n], found[n])) for n in doubtful} if self.lexicon else {}
        likeliest = self._likeliest([place for some in strange.values() for place in some])
        if self._least_caution < 1:
            self._give_up(asked, found, doubtful)
        for n, places in strange.items():
            kept = [edit for edit in found[n] if not any(edit.start == place.start for place in places)]
            found[n] = sorted([*kept, *filter(None, (next(likeliest) for _ in places))], key=lambda edit: edit.start)
        return found

    def _give_up(self, asked: Sequence[str], found: list[list[TextEdit]], doubtful: Sequence[int]) -> None:
        """The changes that it is not sure of."""
        doubted = doubts(
            self.translator.model,
            self.translator.vocabulary,
            [asked[n] for n in doubtful],
            [found[n] for n in doubtful],
        )
        for n, each in zip(doubtful, doubted, strict=True):
            found[n] = [edit for edit, doubt in zip(found[n], each, strict=True) if doubt < self._caution(edit)]

    def _caution(self, edit: TextEdit) -> float:
        """A word that is right by itself is seldom wrong: more is asked before it is changed."""
        known = self.lexicon is not None and all(map(self.lexicon.has, edit.wrong.split()))
        return self._least_caution if known else self.caution

    @property
    def _least_caution(self) -> float:
        return min(self.caution, self.real_word_caution)

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
                plain = plainly(word)
                near = [like(word, one) for one in (*self.lexicon.near(plain, NEAR), *self.lexicon.halves(plain))]
                meant = list(dict.fromkeys([*written.get((start, stop), []), *near]))
                if meant:
                    yield Strange(text, mended_before(text, found, start), start, stop, word, meant)

    def _likeliest(self, places: Sequence[Strange]) -> Iterator[TextEdit | None]:
        """For each strange word the likeliest of what could be meant, if it is likelier than the word itself at its
        price."""
        guesses = [
            Guess(place.text, place.before, word, place.stop) for place in places for word in (place.word, *place.meant)
        ]
        likely = iter(chances(self.translator.model, self.translator.vocabulary, guesses) if guesses else [])
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
                continue  # a name, or a word that the model has not met
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
        return 1 - math.exp(answer.logprob) < self._least_caution

    def _correction(
        self,
        text: str,
        cuts: list[tuple[int, int]],
        written: list[tuple[Translation | UserError, list[TextEdit]]],
        best: int,
    ) -> Correction | UserError:
        found: list[Translation] = []
        for one, _ in written:
            if isinstance(one, UserError):
                return one
            found.append(one)
        first = self._one(text, cuts, found, [changes for _, changes in written])
        if len(found) > 1:  # several ways to correct are shown of short texts; a long one has too many
            return first
        seen = {first.text}
        for (start, stop), part in zip(cuts, found, strict=True):
            for other in part.others:
                known = self._known(edits(text[start:stop], other.text))
                correction = self._one(text, cuts, [other], [known])
                if len(first.others) + 1 < best and correction.text not in seen:
                    seen.add(correction.text)
                    first.others.append(correction)
        return first

    def _one(
        self, text: str, cuts: list[tuple[int, int]], parts: list[Translation], changes: list[list[TextEdit]]
    ) -> Correction:
        """A text with the changes of each of its stretches, which count from there."""
        moved = [
            TextEdit(start + edit.start, start + edit.stop, edit.wrong, edit.right)
            for (start, _), some in zip(cuts, changes, strict=True)
            for edit in some
        ]
        score = sum(part.score for part in parts)
        return Correction(text, apply(text, moved), score, moved, parts, pipeline=self)


def _lexicon(folder: ModelFolder, settings: CorrectorSettings) -> Lexicon | None:
    if folder.words is None:
        return None
    written = settings.written_words or len(folder.words)
    return Lexicon(folder.words[:written], settings.unknown_word_cost, rare=folder.words[written:])


def _letters(pieces: Pieces) -> Pieces:
    return Pieces.letters(pieces.labels)


def stretches(text: str) -> Iterator[tuple[int, int]]:
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

"""A model that pronounces: a word or a text in, its phonemes out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from saccade.axes import Pieces
from saccade.data.noise import WORD
from saccade.data.phonemes import as_ipa, as_phonemes, spelling
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced, only_part
from saccade.pipelines.pipeline import Pipeline, Report, Request
from saccade.pipelines.table import TASKS
from saccade.pipelines.translator import Translation, Translator
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sources.text import TextItem, TextSource

BETWEEN = " / "
"""Between the words of a text."""


@dataclass(frozen=True)
class Pronunciation(Answer):
    """How a word, or every word of a text, is said: phonemes with spaces between them, words with a stroke; what is no
    word stands as it is. Its score is the log-probability with the length penalty."""

    ipa: str
    """The same in the International Phonetic Alphabet."""
    parts: list[Translation] = field(repr=False)
    """What was written for each word."""

    def record(self) -> Values:
        record: Values = {"source": self.source, "phonemes": self.text, "ipa": self.ipa}
        record["score"] = round(self.score, 5)
        if self.others:
            best = [{"phonemes": one.text, "ipa": one.ipa, "score": round(one.score, 5)} for one in self.best]
            record["best"] = best
        return record


class Pronouncer(Pipeline[TextItem, Pronunciation]):
    """Says how words are pronounced, in the phonemes of CMUdict. A translator of letters into phonemes is asked word by
    word.

    >>> pronouncer = saccade.load("pronouncer")
    >>> pronouncer("eye").text, pronouncer("eye").ipa
    ('AY', 'aɪ')
    """

    options = Translator.options

    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Pronouncer":
        """The model of a folder."""
        return cls(Translator.open(folder, how, whole=True))

    @property
    def source(self) -> TextSource:
        return cast(TextSource, TASKS["pronunciation"].source)

    @property
    def choice(self) -> Choice:
        return self.translator.choice

    def answer_items(
        self, items: Sequence[TextItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Pronunciation | UserError]:
        words = [[word for word in pieces(item.text) if spelling(word)] for item in items]
        owners = [place for place, some in zip(places, words, strict=True) for _ in some]
        asked = [spelling(word) for some in words for word in some]
        each = [one for one, some in zip(requests, words, strict=True) for _ in some]
        said = iter(self.translator.answer(asked, each, numbers=owners, report=report))
        return [self._joined(item.text, [next(said) for _ in some]) for item, some in zip(items, words, strict=True)]

    def look(self, answer: Pronunciation) -> Looks:
        """Of every word: letters, and the phoneme that was written while looking at them."""
        if not answer.parts:
            raise UserError("there is no word in it, and nothing was looked at")
        return Looks.join([self.translator.look_as(part, _letters, _phonemes) for part in answer.parts])

    def forced(self, answer: Pronunciation, inputs: Sequence[str] | None = None) -> Forced:
        if inputs is None:
            found = Forced.join([self.translator.forced(part) for part in answer.parts])
        else:
            only_part(len(answer.parts), "word")
            found = self.translator.forced(answer.parts[0], [spelling(text) for text in inputs])
        return Forced(_phonemes(found.pieces), found.logprobs_IP)

    def _joined(self, text: str, said: Sequence[Translation | UserError]) -> Pronunciation | UserError:
        for one in said:
            if isinstance(one, UserError):
                return one
        parts = [one for one in said if isinstance(one, Translation)]
        first = self._pronunciation(text, parts)
        if len(parts) == 1:  # several ways to say it are shown of single words
            first.others.extend(self._pronunciation(text, [other]) for other in parts[0].others)
        return first

    def _pronunciation(self, text: str, parts: list[Translation]) -> Pronunciation:
        phonemes, ipa, left = [], [], iter(parts)
        for piece in pieces(text):
            said = as_phonemes(next(left).text) if spelling(piece) else ""
            phonemes.append(said or piece)
            ipa.append(as_ipa(said) or piece)
        score = sum(part.score for part in parts)
        return Pronunciation(text, BETWEEN.join(phonemes), score, " ".join(ipa), parts, pipeline=self)


def _letters(read: Pieces) -> Pieces:
    return Pieces.letters(read.labels)


def _phonemes(written: Pieces) -> Pieces:
    marks = set(written.alone)
    labels = (label if place in marks else as_phonemes(label) for place, label in enumerate(written.labels))
    return Pieces.letters(labels)


def pieces(text: str) -> list[str]:
    """A text's words, and what stands between them, without spaces."""
    found, end = [], 0
    for word in WORD.finditer(text):
        found += [*text[end : word.start()].split(), word[0]]
        end = word.end()
    return [*found, *text[end:].split()]

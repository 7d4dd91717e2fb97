"""A model that pronounces: a word or a text in, its phonemes out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from saccade.axes import Axis, Pieces
from saccade.data.noise import WORD
from saccade.data.phonemes import as_ipa, as_phonemes, spelling
from saccade.errors import UserError
from saccade.look.record import Looks
from saccade.pipelines.pipeline import Report, Requests, Values, request_of_each, unreported
from saccade.pipelines.translator import Translation, Translator

BETWEEN = " / "
"""Between the words of a text."""


@dataclass(frozen=True)
class Pronunciation:
    """How a word, or every word of a text, is said."""

    source: str
    text: str
    """Phonemes with spaces between them, words with a stroke; what is no word stands as it is."""
    ipa: str
    score: float
    """Log-probability with the length penalty."""
    parts: list[Translation] = field(repr=False)
    others: list["Pronunciation"] = field(default_factory=list, repr=False)

    @property
    def best(self) -> list["Pronunciation"]:
        return [self, *self.others]

    @cached_property
    def looks(self) -> Looks:
        """Of every word: letters, and the phoneme that was written while looking at them."""
        if not self.parts:
            raise UserError("there is no word in it, and nothing was looked at")
        return Looks.join([part.looks for part in self.parts])

    def record(self) -> Values:
        record: Values = {"source": self.source, "phonemes": self.text, "ipa": self.ipa}
        record["score"] = round(self.score, 5)
        if self.others:
            best = [{"phonemes": one.text, "ipa": one.ipa, "score": round(one.score, 5)} for one in self.best]
            record["best"] = best
        return record


class Pronouncer(Translator):
    """Pronounces: `pronouncer("saccade")`."""

    def source_axis(self, ids: list[int]) -> Axis:
        """Letters."""
        return Pieces.letters(Pieces.of(self.vocabulary, ids, end=True).labels)

    def target_axis(self, ids: list[int], *, end: bool = False) -> Axis:
        """Phonemes."""
        pieces = Pieces.of(self.vocabulary, ids, end=end)
        marks = set(pieces.alone)
        return Pieces.letters(
            label if place in marks else as_phonemes(label) for place, label in enumerate(pieces.labels)
        )

    def answer(  # type: ignore[override]
        self,
        texts: Sequence[str],
        request: Requests,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[Pronunciation | UserError]:
        words = [[word for word in pieces(text) if spelling(word)] for text in texts]
        places = range(len(texts)) if numbers is None else numbers
        owners = [place for place, some in zip(places, words, strict=True) for _ in some]
        asked = [spelling(word) for some in words for word in some]
        requests = zip(request_of_each(request, len(texts)), words, strict=True)
        each = [one for one, some in requests for _ in some]
        said = iter(super().answer(asked, each, numbers=owners, report=report))
        return [_joined(text, [next(said) for _ in some]) for text, some in zip(texts, words, strict=True)]


def pieces(text: str) -> list[str]:
    """A text's words, and what stands between them, without spaces."""
    found, end = [], 0
    for word in WORD.finditer(text):
        found += [*text[end : word.start()].split(), word[0]]
        end = word.end()
    return [*found, *text[end:].split()]


def _joined(text: str, said: Sequence[Translation | UserError]) -> Pronunciation | UserError:
    for one in said:
        if isinstance(one, UserError):
            return one
    parts = [one for one in said if isinstance(one, Translation)]
    first = _pronunciation(text, parts)
    if len(parts) == 1:  # several ways to say it are shown of single words
        first.others.extend(_pronunciation(text, [other]) for other in parts[0].others)
    return first


def _pronunciation(text: str, parts: list[Translation]) -> Pronunciation:
    phonemes, ipa, left = [], [], iter(parts)
    for piece in pieces(text):
        said = as_phonemes(next(left).text) if spelling(piece) else ""
        phonemes.append(said or piece)
        ipa.append(as_ipa(said) or piece)
    return Pronunciation(text, BETWEEN.join(phonemes), " ".join(ipa), sum(part.score for part in parts), parts)

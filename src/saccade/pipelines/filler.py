"""A pre-trained model that fills gaps: a text with [MASK] in it in, the words that fit out."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np

from saccade.arch.heads import WordsHead
from saccade.axes import Pieces
from saccade.data.ragged import Ragged, real_positions
from saccade.decode.filters import softmax
from saccade.errors import UserError, WrongUse
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced, in_batches
from saccade.pipelines.opening import TextModel, encoder_vocabulary, open_encoder
from saccade.pipelines.pipeline import Pipeline, Report, Request
from saccade.pipelines.table import TASKS
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE
from saccade.sources.text import TextItem, TextSource
from saccade.tokens.vocabulary import Vocabulary

GAP = "[MASK]"
MOST_GAPS = 64
BATCH = 32


class FillerSettings(TaskSettings):
    """What a model folder says about its head."""

    renamed: ClassVar[Mapping[str, str]] = {"follows": "next_sentence"}

    next_sentence: bool = False
    """It was also trained to say whether a sentence follows another."""


@dataclass(frozen=True)
class Filling(Answer):
    """A text whose gaps are filled; its score is the product of the words' probabilities, each guessed by itself."""

    words: list[str]
    """What fills each gap."""
    ids: list[int] = field(repr=False)
    """The tokens that fill each gap."""
    read_ids: list[int] = field(repr=False)
    """As it was read, with masks in the gaps."""

    def record(self) -> Values:
        record: Values = {"source": self.source, "text": self.text, "words": self.words}
        record["probability"] = round(self.score, 6)
        if self.others:
            best = [{"words": one.words, "text": one.text, "probability": round(one.score, 6)} for one in self.best]
            record["best"] = best
        return record


@dataclass(frozen=True)
class _Gapped:
    """A text as ids, a mask in every gap."""

    parts: list[str]
    """What stands before, between and after the gaps."""
    ids: list[int]
    gaps: list[int]
    """Where in the ids."""
    spaced: list[bool]
    """Whether a space stands before each gap."""


class Filler(Pipeline[TextItem, Filling]):
    """Fills gaps in a text. A gap is one piece of the vocabulary, mostly a word.

    >>> filler = saccade.load("bert-mini")
    >>> filler("the cat sat on the [MASK]").words
    ['tree']
    """

    def __init__(self, model: TextModel, vocabulary: Vocabulary) -> None:
        if vocabulary.marks.mask is None:
            raise UserError("this vocabulary has no mask, and gaps cannot be filled without one")
        self.model, self.vocabulary, self.mask = model, vocabulary, vocabulary.marks.mask
        self.texts = vocabulary.pieces(range(len(vocabulary)))
        marks = vocabulary.marks.special
        whole = np.array(
            [i not in marks and "\ufffd" not in text and bool(text.strip()) for i, text in enumerate(self.texts)]
        )
        begins = np.array([text[:1] == " " for text in self.texts])
        # Where a space stands before the gap, only what begins with one can stand in it.
        self.fits = {True: whole & begins, False: whole & ~begins}

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Filler":
        """The model of a folder."""
        settings, vocabulary = folder.settings(FillerSettings), encoder_vocabulary(folder)
        head = WordsHead(next_sentence=settings.next_sentence)
        return cls(open_encoder(folder, vocabulary, head, how), vocabulary)

    @property
    def source(self) -> TextSource:
        return cast(TextSource, TASKS["masked"].source)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[TextItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Filling | UserError]:
        best, read = [one.best for one in requests], [self._read(item.text) for item in items]
        gapped = {i: one for i, one in enumerate(read) if isinstance(one, _Gapped)}
        answers: dict[int, Filling | UserError] = {i: one for i, one in enumerate(read) if isinstance(one, UserError)}
        order = sorted(gapped, key=lambda i: len(gapped[i].ids))
        for first in range(0, len(order), BATCH):
            part = order[first : first + BATCH]
            found = self._likely([gapped[i] for i in part], max(best[i] for i in part))
            for i, likely in zip(part, found, strict=True):
                answers[i] = self._filling(items[i].text, gapped[i], likely, best[i])
            report(first + len(part), len(order))
        return [answers[i] for i in range(len(items))]

    def _read(self, text: str) -> _Gapped | UserError:
        parts = text.split(GAP)
        if len(parts) == 1:
            return UserError(f"no {GAP} in it: write {GAP} where a word is missing")
        if len(parts) > MOST_GAPS:
            return UserError(f"{len(parts) - 1} gaps; at most {MOST_GAPS} are filled in one text")
        spaced = [part[-1:] == " " for part in parts[:-1]]
        marks = self.vocabulary.marks
        ids, gaps = [marks.begin], []
        try:
            for number, part in enumerate(parts):
                if number:
                    gaps.append(len(ids))
                    ids.append(self.mask)
                # The space before a gap belongs to the word that is missing.
                kept = part[:-1] if number < len(spaced) and spaced[number] else part
                ids += self.vocabulary.encode([kept], continues=True)[0]
        except UserError as error:
            return error
        context = self.model.context
        if len(ids) + 1 > context:
            return UserError(f"{len(ids) + 1} tokens; at most {context} can be read in one text")
        return _Gapped(parts, [*ids, marks.end], gaps, spaced)

    def _likely(self, rows: Sequence[_Gapped], best: int) -> list[list[list[tuple[float, int]]]]:
        """For each gap of each row its likeliest pieces, with their probabilities."""
        pad = self.vocabulary.marks.pad
        tokens_BT = Ragged.of([row.ids for row in rows]).padded(np.arange(len(rows)), pad=pad)
        chosen_BT = tokens_BT == self.mask
        logits_NV = self.model.outputs(tokens_BT, real_positions(tokens_BT, pad), chosen_BT=chosen_BT)
        fits_NV = np.stack([self.fits[spaced] for row in rows for spaced in row.spaced])
        chances_NV = np.where(fits_NV, softmax(logits_NV)[:, : len(self.texts)], 0.0)
        order_NK = np.argsort(-chances_NV, axis=1, kind="stable")[:, :best]
        values_NK = np.take_along_axis(chances_NV, order_NK, axis=1)
        gaps = iter(zip(values_NK.tolist(), order_NK.tolist(), strict=True))
        return [[list(zip(*next(gaps), strict=True)) for _ in row.gaps] for row in rows]

    def _filling(self, source: str, row: _Gapped, likely: list[list[tuple[float, int]]], best: int) -> Filling:
        """The likeliest fillings of all gaps together, found one gap after the other."""
        chosen: list[tuple[float, list[int]]] = [(1.0, [])]
        for gap in likely:
            longer = [(score * chance, [*ids, piece]) for score, ids in chosen for chance, piece in gap[:best]]
            chosen = heapq.nlargest(best, longer, key=lambda one: one[0])
        first, *others = (self._one(source, row, score, pieces) for score, pieces in chosen)
        first.others.extend(others)
        return first

    def _one(self, source: str, row: _Gapped, score: float, pieces: list[int]) -> Filling:
        words = [self.texts[piece].removeprefix(" ") for piece in pieces]
        text = row.parts[0] + "".join(word + part for word, part in zip(words, row.parts[1:], strict=True))
        ids = list(row.ids)
        for place, piece in zip(row.gaps, pieces, strict=True):
            ids[place] = piece
        return Filling(source, text, score, words, ids, row.ids, pipeline=self)

    def forced(self, answer: Filling, inputs: Sequence[str] | None = None) -> Forced:
        chosen = [i for i, masked in zip(answer.ids, answer.read_ids, strict=True) if masked == self.mask]
        pieces = Pieces.letters(answer.words)
        read = [_known(self._read(text)) for text in ([answer.source] if inputs is None else inputs)]
        if any(len(one.gaps) != len(chosen) for one in read):
            raise WrongUse(f"each input must have {len(chosen)} gaps, as the answer has")

        def find(part: slice) -> Forced:
            pad = self.vocabulary.marks.pad
            tokens_BT = Ragged.of([row.ids for row in read[part]]).padded(np.arange(len(read[part])), pad=pad)
            logits_NV = self.model.outputs(tokens_BT, real_positions(tokens_BT, pad), chosen_BT=tokens_BT == self.mask)
            chances_NV = softmax(logits_NV)
            found_N = chances_NV[np.arange(len(chances_NV)), np.tile(chosen, len(read[part]))]
            return Forced(pieces, np.log(np.maximum(found_N, 1e-30)).reshape(-1, len(chosen)))

        return in_batches(len(read), find)

    def look(self, answer: Filling) -> Looks:
        """Where each token looked while the gaps were filled."""
        heard = self.model.look(np.array([answer.read_ids]))
        return Looks.of(heard, {SOURCE: Pieces.of(self.vocabulary, answer.read_ids)})


def _known(row: _Gapped | UserError) -> _Gapped:
    if isinstance(row, UserError):
        raise row
    return row

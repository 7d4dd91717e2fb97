"""A loaded translation model: texts in, translations out, sentence by sentence."""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, ClassVar, cast

import numpy as np
from pydantic import Field

from saccade.axes import Axis, Pieces
from saccade.config import Record
from saccade.data.ragged import in_order
from saccade.data.variants import is_shouted, spoken, upper
from saccade.decode.hypothesis import Hypothesis, length_penalty
from saccade.decode.parallel import side_by_side
from saccade.decode.repetition import repeats, without_loops
from saccade.decode.row import RowRequest
from saccade.decode.search import SearchConfig, search
from saccade.errors import UserError
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced, forced_text, in_batches, only_part
from saccade.pipelines.opening import SequenceModel, open_sequence
from saccade.pipelines.pipeline import Pipeline, Report, Request, once_each
from saccade.pipelines.searching import asked_search
from saccade.pipelines.table import TASKS
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE, TARGET
from saccade.sources.sentences import Span, halve, split_sentences
from saccade.sources.text import TextItem, TextSource, pad_sources
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

SEARCH = SearchConfig()
BETWEEN_SENTENCES = 15_485_863
"""From the number of a sentence's random draws to that of the next one; texts are numbered from 0."""
Relabel = Callable[[Pieces], Axis]
"""Other labels for the pieces of a text, such as letters."""


class TaughtHead(Record):
    """A head of cross-attention that was taught to align, once a token is read."""

    layer: Annotated[int, Field(ge=1)]
    """Counted from 1."""
    head: Annotated[int, Field(ge=1)]
    """Counted from 1."""
    weight: float
    """Of its loss in training."""


class TranslatorSettings(TaskSettings):
    """What a model folder says about how to translate."""

    renamed: ClassVar[Mapping[str, str]] = {"spelt": "source_bytes"}

    search: SearchConfig = SEARCH
    """How the text is searched for where nothing else is asked."""
    source_bytes: bool = False
    """Sources are read as bytes."""
    layer: Annotated[int, Field(ge=1)] = 1
    """The cross-attention layer that is drawn by default."""
    split_sentences: bool = True
    """Texts are cut into sentences, which are translated one by one."""
    lower_capitals: bool = False
    """Sentences all in capitals are read in small letters, and their translations written in capitals."""
    alignment: TaughtHead | None = None
    """The head that was taught to align."""


@dataclass(frozen=True)
class TranslatedSentence:
    """One sentence of a text, and its translation."""

    source: Span
    """Where it stands in the text."""
    target: Span
    """Where its translation stands in the translated text."""
    hypothesis: Hypothesis = field(repr=False)
    """What was written for it."""
    source_ids: list[int] = field(repr=False)
    """The tokens that were read."""
    part: bool = False
    """It is a part of a sentence that was too long."""
    capitals: bool = False
    """It stands there in capitals, which the model did not see."""

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of what was written: a bad translation has a low one."""
        return math.exp(self.hypothesis.logprob / (len(self.hypothesis.tokens) + 1))

    def record(self) -> Values:
        record: Values = {"start": self.source[0], "stop": self.source[1]}
        record |= {"target_start": self.target[0], "target_stop": self.target[1]}
        record |= {"score": round(self.hypothesis.score, 5), "confidence": round(self.confidence, 4)}
        return record | ({"part": True} if self.part else {}) | ({} if self.hypothesis.finished else {"cut_off": True})


@dataclass(frozen=True)
class Translation(Answer):
    """A translated text; its score is the sum over its sentences of the log-probability with the length penalty."""

    sentences: list[TranslatedSentence] = field(repr=False)
    """Its sentences, in order; one where the text was read as a whole."""

    @property
    def logprob(self) -> float:
        """The natural log of its probability, without the length penalty."""
        return sum(sentence.hypothesis.logprob for sentence in self.sentences)

    @property
    def confidence(self) -> float:
        """Of its least certain sentence: the geometric mean of the probabilities of what was written."""
        return min((sentence.confidence for sentence in self.sentences), default=1.0)

    @property
    def source_ids(self) -> list[int]:
        """The tokens that were read."""
        return [token for sentence in self.sentences for token in sentence.source_ids]

    @property
    def target_ids(self) -> list[int]:
        """The tokens that were written."""
        return [token for sentence in self.sentences for token in sentence.hypothesis.tokens]

    @property
    def warnings(self) -> list[str]:
        return [
            f"the translation of {self.source[slice(*sentence.source)][:40]!r} was cut off "
            f"after {len(sentence.hypothesis.tokens)} tokens"
            for sentence in self.sentences
            if not sentence.hypothesis.finished
        ]

    def record(self) -> Values:
        """`best` comes last."""
        record = super().record()
        others = {"best": record.pop("best")} if self.others else {}
        record |= {"logprob": round(self.logprob, 5), "confidence": round(self.confidence, 4)}
        return record | {"sentences": [sentence.record() for sentence in self.sentences]} | others


@dataclass(frozen=True)
class _Asked:
    """A request as the search wants it."""

    config: SearchConfig
    prefix: list[int]
    best: int


@dataclass(frozen=True)
class _Part:
    """What is read at once: a sentence, or a part of one that is too long."""

    span: Span
    ids: list[int]
    part: bool = False
    capitals: bool = False


class Translator(Pipeline[TextItem, Translation]):
    """Translates texts, sentence by sentence. What stands between sentences, line ends too, stays as it is.

    >>> translator = saccade.load("en-es")
    >>> translator("this cat is very large").text
    'este gato es muy grande'
    >>> [one.text for one in translator(["good night", "we are eating bread"])]
    ['buenas noches', 'estamos comiendo pan']
    """

    options = frozenset({"beam", "alpha", "best", "prefix", "temperature", "seed"})
    longest_source = 1_000
    """Tokens beyond which a sentence is refused."""
    long_sentence = 120
    """Tokens beyond which a sentence is read in parts: models are trained on shorter ones, and drop the end."""
    batch_tokens = 2048
    """Padded source tokens of all beams decoded at once."""

    def __init__(
        self,
        model: SequenceModel,
        vocabulary: Vocabulary,
        config: SearchConfig = SEARCH,
        *,
        layer: int = 1,
        split: bool = True,
        lower_capitals: bool = False,
        alignment: TaughtHead | None = None,
    ) -> None:
        """`layer`: the cross-attention layer that is drawn by default. `split`: texts are cut into sentences; False:
        each is read as a whole. `lower_capitals`: the model reads small letters where a sentence is all in capitals.
        `alignment`: the head that was taught to align."""
        self.model = model
        self.vocabulary = vocabulary
        self.config = config
        self.layer = layer
        self.split = split
        self.lower_capitals = lower_capitals
        self.alignment = alignment

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None, *, whole: bool = False) -> "Translator":
        """The model of a folder. `whole`: texts are not cut into sentences, whatever the folder says."""
        settings, path = folder.settings(TranslatorSettings), folder.path / "tokenizer.json"
        vocabulary = read_vocabulary(folder.tokenizer, path, source_bytes=settings.source_bytes, marks=folder.marks)
        model = open_sequence(folder, vocabulary, how)
        if settings.layer > max(1, looks := model.config.decoder.looks):
            raise UserError(f"{folder.where}: layer is {settings.layer}, not one of the decoder's 1 to {looks}")
        # Folders of format 1 answer as they did when they were written: lines were read as a whole then.
        split = settings.split_sentences and folder.config.format > 1 and not whole
        capitals = settings.lower_capitals and not whole
        return cls(
            model,
            vocabulary,
            settings.search,
            layer=settings.layer,
            split=split,
            lower_capitals=capitals,
            alignment=settings.alignment,
        )

    @cached_property
    def source(self) -> TextSource:
        return cast(TextSource, TASKS["translation"].source)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[TextItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Translation | UserError]:
        asked = once_each(self._asked, requests)
        parts = self._parts([item.text for item in items], asked)
        rows = [
            (part, one, place + number * BETWEEN_SENTENCES)
            for some, one, place in zip(parts, asked, places, strict=True)
            if not isinstance(some, UserError)
            for number, part in enumerate(some)
        ]
        found = iter(self._search(rows, report))
        return [
            some
            if isinstance(some, UserError)
            else self._translation(item.text, some, [next(found) for _ in some], one.best)
            for item, some, one in zip(items, parts, asked, strict=True)
        ]

    def _parts(self, texts: Sequence[str], asked: Sequence["_Asked"]) -> list[list[_Part] | UserError]:
        """What is read of every text, or why it is not."""
        # A prefix is the beginning of the whole translation: it may be longer than that of the first sentence.
        spans = [
            split_sentences(text) if self.split and not one.prefix else [(0, len(text))]
            for text, one in zip(texts, asked, strict=True)
        ]
        capitals = [
            [False] * len(some) if one.prefix else self._capitals(text, some)
            for text, some, one in zip(texts, spans, asked, strict=True)
        ]
        ids = iter(
            self._read(
                [text[a:b] for text, some in zip(texts, spans, strict=True) for a, b in some],
                [one for some in capitals for one in some],
            )
        )
        found: list[list[_Part] | UserError] = []
        for text, some, lowered, one in zip(texts, spans, capitals, asked, strict=True):
            parts = [_Part(span, next(ids), capitals=low) for span, low in zip(some, lowered, strict=True)]
            longest = max((len(part.ids) for part in parts), default=0)
            if longest > self.longest_source:
                where = " in one sentence" if self.split else ""
                found.append(UserError(f"{longest} tokens{where}; at most {self.longest_source} can be read"))
            elif self.split and not one.prefix:
                found.append([short for part in parts for short in self._shorten(text, part)])
            else:
                found.append(parts)
        return found

    def _capitals(self, text: str, spans: Sequence[Span]) -> list[bool]:
        """Which sentences are read in small letters: those in capitals, or all if the whole text is."""
        if not self.lower_capitals:
            return [False] * len(spans)
        # Once for all: a line can hold ten thousand sentences.
        whole = is_shouted(text)
        return [whole or is_shouted(text[a:b]) for a, b in spans]

    def _read(self, sentences: Sequence[str], capitals: Sequence[bool]) -> list[list[int]]:
        read = [spoken(one) if lowered else one for one, lowered in zip(sentences, capitals, strict=True)]
        return self.vocabulary.read(read)

    def _shorten(self, text: str, part: _Part) -> Iterator[_Part]:
        """A sentence in parts that are short enough."""
        start, stop = part.span
        if len(part.ids) <= self.long_sentence or stop - start < 2:
            yield part
            return
        middle = start + halve(text[start:stop])
        left = text[start:middle].rstrip()
        for first, last in ((start, start + len(left)), (middle, stop)):
            (ids,) = self._read([text[first:last]], [part.capitals])
            yield from self._shorten(text, _Part((first, last), ids, part=True, capitals=part.capitals))

    def _search(self, rows: Sequence[tuple[_Part, "_Asked", int]], report: Report) -> list[list[Hypothesis]]:
        """What was written for every part, best first."""
        # Tokens of all of a text's beams.
        sizes = np.array([(len(part.ids) + 1) * one.config.beam for part, one, _ in rows], dtype=np.int64)
        answers: dict[int, list[Hypothesis]] = {}

        def find(chosen: np.ndarray) -> tuple[np.ndarray, list[list[Hypothesis]]]:
            requests = [self._row(len(part.ids), one, place) for part, one, place in (rows[i] for i in chosen)]
            memory = self.model.read(*pad_sources([rows[i][0].ids for i in chosen], self.vocabulary.marks))
            return chosen, search(self.model.decoder, requests, memory, marks=self.vocabulary.marks)

        # Finished sentences leave their batch. Waiting ones do not join it: measured, it saves 2 % of the steps, since
        # lengths in a batch are alike, and costs more.
        for chosen, found in side_by_side(find, list(in_order(sizes, self.batch_tokens))):
            for i, hypotheses in zip(chosen.tolist(), found, strict=True):
                part, one, _ = rows[i]
                answers[i] = _without_repetition(hypotheses, part.ids) if self.split else hypotheses
                del answers[i][one.best :]
            report(len(answers), len(rows))
        return [answers[i] for i in range(len(rows))]

    def _translation(
        self, text: str, parts: Sequence[_Part], found: Sequence[list[Hypothesis]], best: int
    ) -> Translation:
        first, *others = (self._joined(text, parts, chosen) for chosen in likeliest(found, best))
        first.others.extend(others)
        return first

    def _joined(self, text: str, parts: Sequence[_Part], written: Sequence[Hypothesis]) -> Translation:
        """The text with every sentence in its place."""
        sentences, whole, end = [], "", 0
        for part, hypothesis in zip(parts, written, strict=True):
            whole += text[end : part.span[0]]
            start, end = len(whole), part.span[1]
            written_here = self.vocabulary.decode(hypothesis.tokens)
            whole += upper(written_here) if part.capitals else written_here
            span = (start, len(whole))
            sentences.append(TranslatedSentence(part.span, span, hypothesis, part.ids, part.part, part.capitals))
        score = sum(hypothesis.score for hypothesis in written)
        return Translation(text, whole + text[end:], score, sentences, pipeline=self)

    def _asked(self, request: Request) -> "_Asked":
        """A request with the model's own settings where it says nothing."""
        config = asked_search(self.config, request, "translate")
        # A prefix that ends in a space would force the next word to begin inside a token.
        prefix = request.prefix.rstrip()
        return _Asked(config, self.vocabulary.encode([prefix])[0] if prefix else [], request.best)

    def _row(self, source: int, asked: "_Asked", place: int) -> RowRequest:
        """What is asked of the decoder for a source of so many tokens."""
        strategy, limit = asked.config.strategy(place), asked.config.limit(source)
        return RowRequest([self.vocabulary.marks.start], limit, strategy, asked.prefix)

    def forced(self, answer: Translation, inputs: Sequence[str] | None = None) -> Forced:
        if inputs is None:
            return Forced.join([self._forced(one.hypothesis, [one.source_ids]) for one in answer.sentences])
        only_part(len(answer.sentences), "sentence")
        ids = self._read(inputs, [answer.sentences[0].capitals] * len(inputs))
        return in_batches(len(ids), lambda part: self._forced(answer.sentences[0].hypothesis, ids[part]))

    def _forced(self, hypothesis: Hypothesis, sources: Sequence[list[int]]) -> Forced:
        memory = self.model.read(*pad_sources(sources, self.vocabulary.marks))
        return forced_text(self.model.decoder, memory, len(sources), hypothesis, self.vocabulary)

    def given(self, source: str, target: str) -> Translation:
        """A translation that somebody else made, as if this model had written it: its looks and how likely it is."""
        (read,), (written,) = self.vocabulary.read([source]), self.vocabulary.encode([target])
        longest = max(len(read), len(written))
        if longest > self.longest_source:
            raise UserError(f"{longest} tokens in one sentence; at most {self.longest_source} can be read")
        if not read or not written:
            raise UserError("a text to translate and its translation are needed; one of them is empty")
        found = Hypothesis(written, 0.0, 0.0, finished=True)
        one = TranslatedSentence((0, len(source)), (0, len(target)), found, read)
        logprob = float(self._forced(found, [read]).total_I[0])
        found = replace(found, logprob=logprob, score=logprob / length_penalty(len(written) + 1, self.config.alpha))
        return Translation(source, target, found.score, [replace(one, hypothesis=found)], pipeline=self)

    def look(self, answer: Translation) -> Looks:
        """Every look of a translation, each sentence heard in one teacher-forced pass over it."""
        return self.look_as(answer, lambda pieces: pieces, lambda pieces: pieces)

    def look_as(self, answer: Translation, source: Relabel, target: Relabel) -> Looks:
        """The same, what was read and what was written under other labels."""
        if not answer.sentences:
            raise UserError("there is nothing in it to translate, and nothing was looked at")
        return Looks.join([self._look(one, source, target) for one in answer.sentences])

    def _look(self, sentence: TranslatedSentence, source: Relabel, target: Relabel) -> Looks:
        marks, written_ids = self.vocabulary.marks, sentence.hypothesis.tokens
        tokens, _ = pad_sources([sentence.source_ids], marks)
        read = [marks.start, *written_ids]
        heard = self.model.look(tokens, np.array([read]))
        axes: dict[str, Axis] = {
            SOURCE: source(Pieces.of(self.vocabulary, sentence.source_ids, end=True)),
            TARGET: target(Pieces.of(self.vocabulary, read)),
        }
        # The look from position t decides the token that comes next, so rows are labelled with that token.
        written = target(Pieces.of(self.vocabulary, written_ids, end=True))
        return Looks.of(heard, axes, written=written, layer=self.layer)


def likeliest(found: Sequence[Sequence[Hypothesis]], count: int) -> list[tuple[Hypothesis, ...]]:
    """The best ways to choose one hypothesis for every sentence, by the sum of their scores."""
    ways: list[tuple[Hypothesis, ...]] = [()]
    for hypotheses in found:
        longer = [(*way, one) for way in ways for one in hypotheses]
        ways = (
            heapq.nlargest(count, longer, key=lambda way: sum(one.score for one in way)) if len(longer) > 1 else longer
        )
    return ways


def _without_repetition(hypotheses: list[Hypothesis], read: list[int]) -> list[Hypothesis]:
    """Those that do not go in circles, then the others, with every loop written once and ranked below all of those."""
    clean = [one for one in hypotheses if not repeats(one.tokens, read)]
    below = min((one.score for one in clean), default=0.0)
    looping = [one for one in hypotheses if repeats(one.tokens, read)]
    mended = [replace(one, tokens=without_loops(one.tokens, read), score=min(one.score, below)) for one in looping]
    return [*clean, *mended]

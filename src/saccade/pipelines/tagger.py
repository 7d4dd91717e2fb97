"""A trained tagger: a sentence in, its words with their tags out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np
from pydantic import Field

from saccade.arch.heads import TagsHead
from saccade.axes import Pieces
from saccade.config import Record
from saccade.data.conllu import Sentence, TagColumn, retagged, sentence_of
from saccade.data.encoded import Words
from saccade.data.ragged import in_order
from saccade.data.word_rules import word_spans
from saccade.decode.filters import softmax
from saccade.errors import WrongUse
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced
from saccade.pipelines.opening import TextModel, encoder_vocabulary, open_encoder
from saccade.pipelines.pipeline import Pipeline, Report, Request, unreported
from saccade.pipelines.table import TASKS
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE
from saccade.sources.text import TextItem, TextSource
from saccade.tokens.vocabulary import Vocabulary

BATCH_TOKENS = 4096


class TaggedColumn(Record):
    """The part of the trained data's settings that a tagger wants."""

    model_config = TaskSettings.model_config
    column: TagColumn = "upos"
    """The column of CoNLL-U that the tags are of."""


class TaggerSettings(TaskSettings):
    """What a model folder says about its tags."""

    tags: Annotated[list[str], Field(min_length=1)]
    """Their names."""
    data: TaggedColumn = TaggedColumn()


@dataclass(frozen=True)
class Tagged(Answer):
    """A sentence and the tags of its words; its score is the mean probability of the tags."""

    sentence: Sentence
    """Its words, and the spaces between them."""
    tags: list[str]
    """One for each word."""
    column: TagColumn
    """The column of CoNLL-U that the tags are of."""

    @property
    def words(self) -> list[tuple[str, str]]:
        """Each word with its tag."""
        return list(zip(self.sentence.words, self.tags, strict=True))

    @property
    def conllu(self) -> str:
        """As a CoNLL-U sentence, an empty line at its end."""
        return retagged(self.sentence, self.tags, self.column)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where each word begins and ends in the source, in characters."""
        return word_spans(self.source)

    def record(self) -> Values:
        places = zip(self.words, self.spans, strict=True)
        words = [{"word": word, "tag": tag, "start": start, "end": end} for (word, tag), (start, end) in places]
        return {"source": self.source, "words": words, "probability": round(self.score, 6)}


class Tagger(Pipeline[TextItem, Tagged]):
    """Tags the words of sentences.

    >>> tagger = saccade.load("tagger")
    >>> tagger("The cat sat.").text
    'The/DET cat/NOUN sat/VERB ./PUNCT'
    """

    options = frozenset()

    def __init__(
        self, model: TextModel, vocabulary: Vocabulary, tags: Sequence[str], column: TagColumn = "upos"
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.tags = list(tags)
        self.column = column

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Tagger":
        """The model of a folder."""
        settings, vocabulary = folder.settings(TaggerSettings), encoder_vocabulary(folder)
        model = open_encoder(folder, vocabulary, TagsHead(outputs=len(settings.tags)), how)
        return cls(model, vocabulary, settings.tags, settings.data.column)

    @property
    def source(self) -> TextSource:
        return cast(TextSource, TASKS["tagging"].source)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[TextItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Tagged]:
        sentences = [sentence_of(item.text, place + 1) for item, place in zip(items, places, strict=True)]
        found = self._tags([one.words for one in sentences], [one.spaces for one in sentences], report)
        return [
            self._tagged(item.text, sentence, [self.tags[tag] for tag in tags], float(np.mean(chances)))
            for item, sentence, (tags, chances) in zip(items, sentences, found, strict=True)
        ]

    def _tagged(self, source: str, sentence: Sentence, tags: list[str], score: float) -> Tagged:
        text = " ".join(f"{word}/{tag}" for word, tag in zip(sentence.words, tags, strict=True))
        return Tagged(source, text, score, sentence, tags, self.column, pipeline=self)

    def tag(
        self, sentences: Sequence[Sequence[str]], spaces: Sequence[Sequence[bool]], report: Report = unreported
    ) -> list[list[str]]:
        """The tags of sentences that are cut into words already."""
        return [[self.tags[tag] for tag in tags] for tags, _ in self._tags(sentences, spaces, report)]

    def _tags(
        self, sentences: Sequence[Sequence[str]], spaces: Sequence[Sequence[bool]], report: Report
    ) -> list[tuple[list[int], list[float]]]:
        """For each sentence its words' tags and their probabilities."""
        words = Words.of(self.vocabulary, sentences, spaces, self.model.context)
        rows: dict[int, tuple[list[int], list[float]]] = {}
        for indices in in_order(words.rows.lengths, BATCH_TOKENS):
            batch = words.arrays(indices)
            chances_NC = softmax(self.model.outputs(batch.tokens_BT, batch.mask_BT, chosen_BT=batch.words_BT))
            ends = np.cumsum(words.begins.lengths[indices])[:-1]
            tags, chances = np.split(chances_NC.argmax(axis=1), ends), np.split(chances_NC.max(axis=1), ends)
            for row, some, chance in zip(indices, tags, chances, strict=True):
                rows[int(row)] = (some.tolist(), chance.tolist())
            report(len(rows), len(words))
        stops = np.cumsum(words.counts)
        return [
            (
                [tag for row in range(end - count, end) for tag in rows[row][0]],
                [chance for row in range(end - count, end) for chance in rows[row][1]],
            )
            for count, end in zip(words.counts.tolist(), stops.tolist(), strict=True)
        ]

    def forced(self, answer: Tagged, inputs: Sequence[str | Sentence] | None = None) -> Forced:
        """One piece for each word: its tag. Inputs have as many words, and may be cut into words already."""
        given = [answer.sentence] if inputs is None else inputs
        sentences = [one if isinstance(one, Sentence) else sentence_of(one, 1) for one in given]
        wanted = [self.tags.index(tag) for tag in answer.tags]
        if any(len(one.words) != len(wanted) for one in sentences):
            raise WrongUse(f"each input must have {len(wanted)} words, as the answer has")
        words = Words.of(
            self.vocabulary, [one.words for one in sentences], [one.spaces for one in sentences], self.model.context
        )
        rows: dict[int, np.ndarray] = {}
        for indices in in_order(words.rows.lengths, BATCH_TOKENS):
            batch = words.arrays(indices)
            chances_NC = softmax(self.model.outputs(batch.tokens_BT, batch.mask_BT, chosen_BT=batch.words_BT))
            ends = np.cumsum(words.begins.lengths[indices])[:-1]
            rows |= dict(zip(indices.tolist(), np.split(chances_NC, ends), strict=True))
        chances_IPC = np.concatenate([rows[row] for row in range(len(rows))]).reshape(len(sentences), len(wanted), -1)
        chosen_IP = chances_IPC[:, np.arange(len(wanted)), wanted]
        labels = [f"{word}/{tag}" for word, tag in answer.words]
        return Forced(Pieces.letters(labels), np.log(np.maximum(chosen_IP, 1e-30)))

    def read_tokens(self, answer: Tagged) -> np.ndarray:
        """[1, T]: the sentence as it was read; of a long one the first part."""
        sentence = answer.sentence
        words = Words.of(self.vocabulary, [sentence.words], [sentence.spaces], self.model.context)
        return words.arrays(np.array([0])).tokens_BT

    def look(self, answer: Tagged) -> Looks:
        """Where each token looked; of a long sentence, in its first part."""
        tokens_1T = self.read_tokens(answer)
        return Looks.of(self.model.look(tokens_1T), {SOURCE: Pieces.of(self.vocabulary, tokens_1T[0].tolist())})

"""A trained tagger: a sentence in, its words with their tags out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import get_args

import numpy as np

from saccade.arch.heads import TagsHead
from saccade.axes import Pieces
from saccade.data.conllu import Sentence, TagColumn, retagged, sentence_of
from saccade.data.encoded import Words
from saccade.data.ragged import in_order
from saccade.decode.filters import softmax
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.look.record import Looks
from saccade.pipelines.opening import TextModel, encoder_vocabulary, open_encoder
from saccade.pipelines.pipeline import Pipeline, Report, Requests, Values, unreported
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE
from saccade.tokens.vocabulary import Vocabulary

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class Tagged:
    """A sentence and the tags of its words."""

    source: str
    sentence: Sentence
    tags: list[str]
    score: float
    """The mean probability of the tags."""
    tagger: "Tagger" = field(repr=False)

    @property
    def text(self) -> str:
        return " ".join(f"{word}/{tag}" for word, tag in zip(self.sentence.words, self.tags, strict=True))

    @property
    def conllu(self) -> str:
        """As a CoNLL-U sentence, an empty line at its end."""
        return retagged(self.sentence, self.tags, self.tagger.column)

    @property
    def best(self) -> list["Tagged"]:
        return [self]

    @cached_property
    def looks(self) -> Looks:
        return self.tagger.look(self.sentence)

    def record(self) -> Values:
        words = [{"word": word, "tag": tag} for word, tag in zip(self.sentence.words, self.tags, strict=True)]
        return {"source": self.source, "words": words, "probability": round(self.score, 6)}


class Tagger(Pipeline[Tagged]):
    """Tags: `tagger("The cat sat.")`."""

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
        where = folder.path / "config.json"
        tags, column = folder.config.get("tags"), folder.table("data").get("column", "upos")
        if not isinstance(tags, list) or not tags or not all(isinstance(tag, str) for tag in tags):
            raise UserError(f"{where}: tags is not a list of names")
        if column not in get_args(TagColumn):
            raise UserError(f"{where}: column is {column!r}, not one of {', '.join(get_args(TagColumn))}")
        vocabulary = encoder_vocabulary(folder)
        return cls(open_encoder(folder, vocabulary, TagsHead(outputs=len(tags)), how), vocabulary, tags, column)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer(
        self,
        texts: Sequence[str],
        request: Requests,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[Tagged | UserError]:
        places = range(len(texts)) if numbers is None else numbers
        sentences = [sentence_of(text, place + 1) for text, place in zip(texts, places, strict=True)]
        found = self._tags([one.words for one in sentences], [one.spaces for one in sentences], report)
        return [
            Tagged(text, sentence, [self.tags[tag] for tag in tags], float(np.mean(chances)), self)
            for text, sentence, (tags, chances) in zip(texts, sentences, found, strict=True)
        ]

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

    def look(self, sentence: Sentence) -> Looks:
        """Where each token looked; of a long sentence, in its first part."""
        words = Words.of(self.vocabulary, [sentence.words], [sentence.spaces], self.model.context)
        tokens_1T = words.arrays(np.array([0])).tokens_BT
        return Looks.of(self.model.look(tokens_1T), {SOURCE: Pieces.of(self.vocabulary, tokens_1T[0].tolist())})

"""A trained tagger: a sentence in, its words with their tags out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from saccade.data.conllu import Sentence, TagColumn, retagged, sentence_of
from saccade.data.labelled import Words
from saccade.data.ragged import in_order
from saccade.errors import UserError
from saccade.look.record import TextLooks
from saccade.models.heads import Tagger as TaggerModel
from saccade.nn.watch import watch
from saccade.tasks.asked import Asked, Report, Request, unreported
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
    def looks(self) -> TextLooks:
        return self.tagger.look(self.sentence)

    def record(self) -> dict[str, Any]:
        words = [{"word": word, "tag": tag} for word, tag in zip(self.sentence.words, self.tags, strict=True)]
        return {"source": self.source, "words": words, "probability": round(self.score, 6)}


class Tagger(Asked[Tagged]):
    """Tags: `tagger("The cat sat.")`."""

    model: TaggerModel

    def __init__(
        self, model: TaggerModel, vocabulary: Vocabulary, tags: Sequence[str], column: TagColumn = "upos"
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.tags = list(tags)
        self.column = column

    def answer(
        self,
        texts: Sequence[str],
        request: Request,
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
        words = Words.of(self.vocabulary, sentences, spaces, self.model.encoder.context)
        rows: dict[int, tuple[list[int], list[float]]] = {}
        training = self.model.training
        self.model.eval()
        with torch.inference_mode():
            for indices in in_order(words.rows.lengths, BATCH_TOKENS):
                batch = words.batch(indices)
                chances, tags = self.model(batch.tokens_BT, batch.mask_BT, batch.words_BT).softmax(dim=1).max(dim=1)
                sizes = words.begins.lengths[indices].tolist()
                for row, some, chance in zip(indices, tags.split(sizes), chances.split(sizes), strict=True):
                    rows[int(row)] = (some.tolist(), chance.tolist())
                report(len(rows), len(words))
        self.model.train(training)
        ends = np.cumsum(words.counts)
        return [
            (
                [tag for row in range(end - count, end) for tag in rows[row][0]],
                [chance for row in range(end - count, end) for chance in rows[row][1]],
            )
            for count, end in zip(words.counts.tolist(), ends.tolist(), strict=True)
        ]

    def look(self, sentence: Sentence) -> TextLooks:
        """Where each token looked; of a long sentence, in its first part."""
        words = Words.of(self.vocabulary, [sentence.words], [sentence.spaces], self.model.encoder.context)
        batch = words.batch(np.array([0]))
        with torch.inference_mode(), watch(self.model) as looks:
            self.model(batch.tokens_BT, batch.mask_BT, batch.words_BT)
        pieces = self.vocabulary.pieces(batch.tokens_BT[0].tolist())
        return TextLooks.at_itself(pieces, looks.encoder[:, 0].numpy())

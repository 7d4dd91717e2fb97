"""A loaded translation model: sentences in, translations out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, cast

import numpy as np
from pydantic import Field

from saccade.axes import Axis, Pieces
from saccade.data.ragged import in_order
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.parallel import side_by_side
from saccade.decode.row import RowRequest
from saccade.decode.search import SearchConfig, search
from saccade.errors import UserError
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.opening import SequenceModel, open_sequence
from saccade.pipelines.pipeline import Pipeline, Report, Request, once_each
from saccade.pipelines.table import TASKS
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE, TARGET
from saccade.sources.text import TextItem, TextSource, pad_sources
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

SEARCH = SearchConfig()
Relabel = Callable[[Pieces], Axis]
"""Other labels for the pieces of a text, such as letters."""


class TranslatorSettings(TaskSettings):
    """What a model folder says about how to translate."""

    renamed: ClassVar[Mapping[str, str]] = {"spelt": "source_bytes"}

    search: SearchConfig = SEARCH
    """How the text is searched for where nothing else is asked."""
    source_bytes: bool = False
    """Sources are read as bytes."""
    layer: Annotated[int, Field(ge=1)] = 1
    """The cross-attention layer that is drawn by default."""


@dataclass(frozen=True)
class Translation(Answer):
    """One translated sentence; its score is the log-probability with the length penalty."""

    logprob: float
    """The natural log of its probability, without the length penalty."""
    source_ids: list[int]
    """The tokens that were read."""
    target_ids: list[int]
    """The tokens that were written."""

    def record(self) -> Values:
        """`best` comes last."""
        record = super().record()
        others = {"best": record.pop("best")} if self.others else {}
        return record | {"logprob": round(self.logprob, 5)} | others


@dataclass(frozen=True)
class _Asked:
    """A request as the search wants it."""

    config: SearchConfig
    prefix: list[int]
    best: int


class Translator(Pipeline[TextItem, Translation]):
    """Translates sentences.

    >>> translator = saccade.load("en-es")
    >>> translator("this cat is very large").text
    'este gato es muy grande'
    >>> [one.text for one in translator(["good night", "we are eating bread"])]
    ['buenas noches', 'estamos comiendo pan']
    """

    options = frozenset({"beam", "alpha", "best", "prefix", "temperature", "seed"})
    longest_source = 1_000
    """Tokens beyond which a text is no sentence, and is refused."""
    batch_tokens = 2048
    """Padded source tokens of all beams decoded at once."""

    def __init__(
        self, model: SequenceModel, vocabulary: Vocabulary, config: SearchConfig = SEARCH, *, layer: int = 1
    ) -> None:
        """`layer`: the cross-attention layer that is drawn by default."""
        self.model = model
        self.vocabulary = vocabulary
        self.config = config
        self.layer = layer

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Translator":
        """The model of a folder."""
        settings, path = folder.settings(TranslatorSettings), folder.path / "tokenizer.json"
        vocabulary = read_vocabulary(folder.tokenizer, path, source_bytes=settings.source_bytes, marks=folder.marks)
        model = open_sequence(folder, vocabulary, how)
        if settings.layer > max(1, looks := model.config.decoder.looks):
            raise UserError(f"{folder.where}: layer is {settings.layer}, not one of the decoder's 1 to {looks}")
        return cls(model, vocabulary, settings.search, layer=settings.layer)

    @cached_property
    def source(self) -> TextSource:
        source = cast(TextSource, TASKS["translation"].source)
        return replace(source, vocabulary=self.vocabulary, most_tokens=self.longest_source)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[TextItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Translation]:
        asked = once_each(self._asked, requests)
        answers: dict[int, Translation] = {}
        # Tokens of all of a text's beams.
        sizes = np.array(
            [self.source.size(item) * one.config.beam for item, one in zip(items, asked, strict=True)], dtype=np.int64
        )

        def find(chosen: np.ndarray) -> tuple[np.ndarray, list[list[Hypothesis]]]:
            rows = [self._row(len(items[i].ids), asked[i], places[i]) for i in chosen]
            batch = self.source.collate([items[i] for i in chosen])
            memory = self.model.read(batch.values, batch.mask)
            return chosen, search(self.model.decoder, rows, memory, marks=self.vocabulary.marks)

        # Finished sentences leave their batch. Waiting ones do not join it: measured, it saves 2 % of the steps, since
        # lengths in a batch are alike, and costs more.
        for chosen, found in side_by_side(find, list(in_order(sizes, self.batch_tokens))):
            for i, hypotheses in zip(chosen.tolist(), found, strict=True):
                first, *others = (self._translation(items[i], one) for one in hypotheses[: asked[i].best])
                first.others.extend(others)
                answers[i] = first
            report(len(answers), len(items))
        return [answers[i] for i in range(len(items))]

    def _translation(self, item: TextItem, found: Hypothesis) -> Translation:
        written = self.vocabulary.decode(found.tokens)
        return Translation(item.text, written, found.score, found.logprob, item.ids, found.tokens, pipeline=self)

    def _asked(self, request: Request) -> "_Asked":
        """A request with the model's own settings where it says nothing."""
        named = {name: getattr(request, name) for name in ("beam", "alpha", "temperature", "seed")}
        known = {name: value for name, value in named.items() if value is not None}
        config = SearchConfig.read(self.config.table() | known, where="translate")
        if request.best > config.beam and config.temperature is None:
            config = config.model_copy(update={"beam": request.best})
        # A prefix that ends in a space would force the next word to begin inside a token.
        prefix = request.prefix.rstrip()
        return _Asked(config, self.vocabulary.encode([prefix])[0] if prefix else [], request.best)

    def _row(self, source: int, asked: "_Asked", place: int) -> RowRequest:
        """What is asked of the decoder for a source of so many tokens."""
        strategy, limit = asked.config.strategy(place), asked.config.limit(source)
        return RowRequest([self.vocabulary.marks.start], limit, strategy, asked.prefix)

    def look(self, answer: Translation) -> Looks:
        """Every look of a translation, heard in one teacher-forced pass over it."""
        return self.look_as(answer, lambda pieces: pieces, lambda pieces: pieces)

    def look_as(self, answer: Translation, source: Relabel, target: Relabel) -> Looks:
        """The same, what was read and what was written under other labels."""
        marks = self.vocabulary.marks
        tokens, _ = pad_sources([answer.source_ids], marks)
        read = [marks.start, *answer.target_ids]
        heard = self.model.look(tokens, np.array([read]))
        axes: dict[str, Axis] = {
            SOURCE: source(Pieces.of(self.vocabulary, answer.source_ids, end=True)),
            TARGET: target(Pieces.of(self.vocabulary, read)),
        }
        # The look from position t decides the token that comes next, so rows are labelled with that token.
        written = target(Pieces.of(self.vocabulary, answer.target_ids, end=True))
        return Looks.of(heard, axes, written=written, layer=self.layer)

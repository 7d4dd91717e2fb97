"""A loaded translation model: sentences in, translations out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from saccade.axes import Axis, Pieces
from saccade.data.ragged import in_order, pad_sources
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.parallel import side_by_side
from saccade.decode.row import RowRequest
from saccade.decode.search import SearchConfig, search
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.look.record import Looks
from saccade.pipelines.opening import SequenceModel, open_sequence
from saccade.pipelines.pipeline import (
    Pipeline,
    Report,
    Request,
    Requests,
    Values,
    once_each,
    request_of_each,
    unreported,
)
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE, TARGET
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

SEARCH = SearchConfig()


@dataclass(frozen=True)
class Translation:
    """One translated sentence."""

    source: str
    text: str
    score: float
    """Log-probability with the length penalty."""
    logprob: float
    source_ids: list[int]
    target_ids: list[int]
    translator: "Translator" = field(repr=False)
    others: list["Translation"] = field(default_factory=list, repr=False)
    """Further texts that were asked for, best first."""

    @property
    def best(self) -> list["Translation"]:
        return [self, *self.others]

    @cached_property
    def looks(self) -> Looks:
        return self.translator.look(self)

    def record(self) -> Values:
        record: Values = {"source": self.source, "text": self.text, "score": round(self.score, 5)}
        record["logprob"] = round(self.logprob, 5)
        if self.others:
            record["best"] = [{"text": other.text, "score": round(other.score, 5)} for other in self.best]
        return record


@dataclass(frozen=True)
class _Asked:
    """A request as the search wants it."""

    config: SearchConfig
    prefix: list[int]
    best: int


class Translator(Pipeline[Translation]):
    """Translates: `translator("a sentence")`, or a list of them, batched."""

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
    def open(cls, folder: ModelFolder, how: How | None = None) -> Self:
        """The model of a folder."""
        where = str(folder.path / "config.json")
        source_bytes = folder.config.get("source_bytes", folder.config.get("spelt", False)) is True
        path = folder.path / "tokenizer.json"
        vocabulary = read_vocabulary(folder.tokenizer, path, source_bytes=source_bytes, marks=folder.marks)
        config = SearchConfig.read(folder.table("search"), where=where)
        model, layer = open_sequence(folder, vocabulary, how), folder.config.get("layer", 1)
        looks = model.config.decoder.looks
        if not isinstance(layer, int) or not 1 <= layer <= max(1, looks):
            raise UserError(f"{where}: layer is {layer!r}, not one of the decoder's 1 to {looks}")
        opened = cls(model, vocabulary, config, layer=layer)
        opened.configure(folder)
        return opened

    def configure(self, folder: ModelFolder) -> None:
        """Take from the folder what else it says of such a pipeline."""

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
    ) -> list[Translation | UserError]:
        places = range(len(texts)) if numbers is None else numbers
        asked = once_each(self._asked, request_of_each(request, len(texts)))
        sources = self.vocabulary.read(texts)
        answers: list[Translation | UserError] = [
            UserError(f"{len(source)} tokens; at most {self.longest_source} can be read in one text")
            for source in sources
        ]
        readable = [i for i, source in enumerate(sources) if len(source) <= self.longest_source]
        # Tokens of all of a text's beams.
        sizes = np.array([(len(sources[i]) + 1) * asked[i].config.beam for i in readable], dtype=np.int64)
        done = 0

        def find(part: np.ndarray) -> tuple[list[int], list[list[Hypothesis]]]:
            chosen = [readable[i] for i in part]
            rows = [self._row(len(sources[i]), asked[i], places[i]) for i in chosen]
            memory = self.model.read(*pad_sources([sources[i] for i in chosen], self.vocabulary.marks))
            return chosen, search(self.model.decoder, rows, memory, marks=self.vocabulary.marks)

        # Finished sentences leave their batch. Waiting ones do not join it: measured, it saves 2 % of the steps, since
        # lengths in a batch are alike, and costs more.
        for chosen, found in side_by_side(find, list(in_order(sizes, self.batch_tokens))):
            for i, hypotheses in zip(chosen, found, strict=True):
                best = [self._translation(texts[i], sources[i], one) for one in hypotheses[: asked[i].best]]
                best[0].others.extend(best[1:])
                answers[i] = best[0]
            done += len(chosen)
            report(done, len(readable))
        return answers

    def _translation(self, text: str, source: list[int], found: Hypothesis) -> Translation:
        written = self.vocabulary.decode(found.tokens)
        return Translation(text, written, found.score, found.logprob, source, found.tokens, self)

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

    def look(self, translation: Translation) -> Looks:
        """Every look of a translation, heard in one teacher-forced pass over it."""
        marks = self.vocabulary.marks
        source, _ = pad_sources([translation.source_ids], marks)
        read = [marks.start, *translation.target_ids]
        heard = self.model.look(source, np.array([read]))
        axes = {SOURCE: self.source_axis(translation.source_ids), TARGET: self.target_axis(read)}
        # The look from position t decides the token that comes next, so rows are labelled with that token.
        return Looks.of(heard, axes, written=self.target_axis(translation.target_ids, end=True), layer=self.layer)

    def source_axis(self, ids: list[int]) -> Axis:
        """How what is read is labelled."""
        return Pieces.of(self.vocabulary, ids, end=True)

    def target_axis(self, ids: list[int], *, end: bool = False) -> Axis:
        """How what is written is labelled."""
        return Pieces.of(self.vocabulary, ids, end=end)

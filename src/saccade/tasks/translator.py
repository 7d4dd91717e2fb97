"""A loaded translation model: sentences in, translations out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from saccade.data.batches import in_order, pad_sources
from saccade.decode.engine import engine
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.lexicon import Lexicon
from saccade.decode.measure import fastest
from saccade.decode.pack import How
from saccade.decode.parallel import side_by_side
from saccade.decode.search import SearchConfig, search
from saccade.errors import UserError
from saccade.look.record import END_LABEL, TextLooks
from saccade.models.encdec import EncoderDecoder
from saccade.nn.watch import watch
from saccade.tasks.asked import Asked
from saccade.tasks.contract import Report, Request, unreported
from saccade.tokens.marks import BEGIN
from saccade.tokens.vocabulary import Vocabulary


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
    def looks(self) -> TextLooks:
        return self.translator.look(self)

    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"source": self.source, "text": self.text, "score": round(self.score, 5)}
        record["logprob"] = round(self.logprob, 5)
        if self.others:
            record["best"] = [{"text": other.text, "score": round(other.score, 5)} for other in self.best]
        return record


class Translator(Asked[Translation]):
    """Translates: `translator("a sentence")`, or a list of them, batched."""

    model: EncoderDecoder

    longest_source = 1_000
    """Tokens beyond which a text is no sentence, and is refused."""
    batch_tokens = 2048
    """Padded source tokens of all beams decoded at once."""
    lexicon: Lexicon | None = None
    """The words it may write beside those of its source; None: any."""

    def __init__(
        self,
        model: EncoderDecoder,
        vocabulary: Vocabulary,
        config: SearchConfig,
        *,
        layer: int = 1,
        how: How | None = None,
    ) -> None:
        """`how` its weights are packed: by default the fastest near-lossless way on this machine."""
        self.model = model.eval()
        self.engine = engine(self.model, how or fastest())
        self.vocabulary = vocabulary
        self.config = config
        self.layer = layer
        """The cross-attention layer that is drawn by default."""

    def answer(
        self,
        texts: Sequence[str],
        request: Request,
        *,
        numbers: Sequence[int] | None = None,
        report: Report = unreported,
    ) -> list[Translation | UserError]:
        places = range(len(texts)) if numbers is None else numbers
        asked = {name: getattr(request, name) for name in ("beam", "alpha", "temperature", "seed")}
        known = {name: value for name, value in asked.items() if value is not None}
        config = SearchConfig.read(self.config.table() | known, where="translate")
        if request.best > config.beam and config.temperature is None:
            config = config.model_copy(update={"beam": request.best})
        sources = self.vocabulary.encode(texts)
        answers: list[Translation | UserError] = [
            UserError(f"{len(source)} tokens; at most {self.longest_source} can be read in one text")
            for source in sources
        ]
        readable = [i for i, source in enumerate(sources) if len(source) <= self.longest_source]
        lengths = np.array([len(sources[i]) + 1 for i in readable], dtype=np.int64)
        done = 0

        def find(part: np.ndarray) -> tuple[list[int], list[list[Hypothesis]]]:
            chosen = [readable[i] for i in part]
            taken = [sources[i] for i in chosen]
            return chosen, self._search(taken, config, prefix=request.prefix, places=[places[i] for i in chosen])

        for chosen, found in side_by_side(find, list(in_order(lengths, self.batch_tokens // config.beam))):
            for i, hypotheses in zip(chosen, found, strict=True):
                best = [self._translation(texts[i], sources[i], one) for one in hypotheses[: request.best]]
                best[0].others.extend(best[1:])
                answers[i] = best[0]
            done += len(chosen)
            report(done, len(readable))
        return answers

    def _translation(self, text: str, source: list[int], found: Hypothesis) -> Translation:
        written = self.vocabulary.decode(found.tokens)
        return Translation(text, written, found.score, found.logprob, source, found.tokens, self)

    def _search(
        self, sources: list[list[int]], config: SearchConfig, *, prefix: str, places: list[int]
    ) -> list[list[Hypothesis]]:
        # A prefix that ends in a space would force the next word to begin inside a token.
        forced = self.vocabulary.encode([prefix.rstrip()])[0] if prefix.strip() else []
        with torch.inference_mode():
            return search(
                self.engine.decoder,
                self.engine.read(*pad_sources(sources)),
                config,
                prefixes=[forced] * len(sources),
                limits=[config.limit(len(source)) for source in sources],
                numbers=places,
                lexicon=self.lexicon,
                sources=[self.vocabulary.decode(source) for source in sources] if self.lexicon else [],
            )

    def look(self, translation: Translation) -> TextLooks:
        """Every look of a translation, heard in one teacher-forced pass over it."""
        source, _ = pad_sources([translation.source_ids])
        target = torch.tensor([[BEGIN, *translation.target_ids]])
        with torch.inference_mode(), watch(self.model) as looks:
            self.model(source, None, target)
        return TextLooks(
            source=[*self.vocabulary.pieces(translation.source_ids), END_LABEL],
            # The look from position t decides the token that comes next, so rows are labelled with that token.
            target=[*self.vocabulary.pieces(translation.target_ids), END_LABEL],
            cross=looks.cross[:, 0].numpy(),
            encoder=looks.encoder[:, 0].numpy(),
            decoder=looks.decoder[:, 0].numpy(),
            layer=self.layer,
        )

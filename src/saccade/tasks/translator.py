"""A loaded translation model: sentences in, translations out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from saccade.data.ragged import in_order, pad_sources
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.measure import fastest
from saccade.decode.opening import open_running
from saccade.decode.packed import How
from saccade.decode.parallel import side_by_side
from saccade.decode.running import Running
from saccade.decode.search import SearchConfig, search
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.look.record import END_LABEL, TextLooks
from saccade.tasks.asked import Asked, Report, Request, unreported
from saccade.tokens.marks import BEGIN
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

if TYPE_CHECKING:
    from saccade.models.encdec import EncoderDecoder


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
    """Translates: `translator("a sentence")`, or a list of them, batched.

    It runs on the C kernels, which need no PyTorch, wherever these know the model's parts; the model as it was
    trained is built when somebody wants to look inside.
    """

    longest_source = 1_000
    """Tokens beyond which a text is no sentence, and is refused."""
    batch_tokens = 2048
    """Padded source tokens of all beams decoded at once."""

    def __init__(
        self,
        running: Running,
        vocabulary: Vocabulary,
        config: SearchConfig,
        build: Callable[[], "EncoderDecoder"],
        *,
        layer: int = 1,
    ) -> None:
        """`build` makes the model that is `running` as it was trained."""
        self.running = running
        self.vocabulary = vocabulary
        self.config = config
        self.build = build
        self.layer = layer
        """The cross-attention layer that is drawn by default."""

    @classmethod
    def of(
        cls,
        model: "EncoderDecoder",
        vocabulary: Vocabulary,
        config: SearchConfig,
        *,
        layer: int = 1,
        how: How | None = None,
    ) -> Self:
        """`how` its weights are packed: by default the fastest near-lossless way on this machine."""
        from saccade.decode.engine import engine

        return cls(engine(model.eval(), how or fastest()), vocabulary, config, lambda: model, layer=layer)

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> Self:
        """The model of a folder."""
        where = str(folder.path / "config.json")
        spelt = folder.config.get("spelt", False) is True
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", spelt=spelt)
        config = SearchConfig.read(folder.config.get("search", {}), where=where)
        layer, how = folder.config.get("layer", 1), how or fastest()
        running = open_running(folder, len(vocabulary), how)
        if running is not None:
            looks = folder.config["model"]["decoder"]["layers"]
            opened = cls(running, vocabulary, config, lambda: _trained(folder, vocabulary), layer=layer)
        else:
            from saccade.tasks.trained import sequence_config

            looks = sequence_config(folder).decoder.looks
            opened = cls.of(_trained(folder, vocabulary), vocabulary, config, layer=layer, how=how)
        if not isinstance(layer, int) or not 1 <= layer <= max(1, looks):
            raise UserError(f"{where}: layer is {layer!r}, not one of the decoder's 1 to {looks}")
        opened.configure(folder)
        return opened

    def configure(self, folder: ModelFolder) -> None:
        """Take from the folder what else it says of such a pipeline."""

    @cached_property
    def model(self) -> "EncoderDecoder":
        return self.build()

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
        sources = self.vocabulary.read(texts)
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
        with self.running.at_work():
            return search(
                self.running.decoder,
                self.running.read(*pad_sources(sources)),
                config,
                prefixes=[forced] * len(sources),
                limits=[config.limit(len(source)) for source in sources],
                numbers=places,
            )

    def look(self, translation: Translation) -> TextLooks:
        """Every look of a translation, heard in one teacher-forced pass over it."""
        import torch

        from saccade.nn.watch import watch

        source = torch.from_numpy(pad_sources([translation.source_ids])[0])
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


def _trained(folder: ModelFolder, vocabulary: Vocabulary) -> "EncoderDecoder":
    from saccade.tasks.trained import sequence_model

    return sequence_model(folder, len(vocabulary))

"""Translation: sentence pairs in, a sentence-to-sentence model out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.config import Record
from saccade.data.batches import Ragged, SequencePairs, in_order, pad_sources
from saccade.data.sampler import Sampler
from saccade.data.text import Pair, find, read_pairs
from saccade.decode.search import SearchConfig, search
from saccade.errors import UserError
from saccade.evaluate.metrics import Score, bleu, chrf
from saccade.folder import ModelFolder, Storage, fill, write_folder
from saccade.models.encdec import EncoderDecoder, EncoderDecoderConfig, build_encoder_decoder
from saccade.tasks.contract import Recipe
from saccade.tokens.bpe import BpeConfig, Vocabulary, read_vocabulary, train_bpe
from saccade.train.loop import Outcome, Work
from saccade.train.objective import SequenceObjective


class PairsConfig(Record):
    """Where the sentence pairs are: each part one TSV (source, target) or two aligned files, plain or gzip."""

    train: list[str] = Field(min_length=1, max_length=2)
    valid: list[str] = Field(min_length=1, max_length=2)
    """Decides what is kept; never trained on."""
    test: list[str] = Field([], max_length=2)
    """Touched by `saccade evaluate` only."""
    source: str = ""
    """Language of the source, for the card."""
    target: str = ""
    longest: int = Field(250, ge=1)
    """Training pairs with more tokens on a side are left out, and counted."""
    plain: float = Field(0.0, ge=0, le=1)
    """Share of the training pairs seen a second time as people type: lower case, no full stop."""


class TranslationRecipe(Recipe):
    task: Literal["translation"] = "translation"
    data: PairsConfig
    tokens: BpeConfig = BpeConfig()
    model: EncoderDecoderConfig = EncoderDecoderConfig()
    search: SearchConfig = SearchConfig()
    storage: Storage = "float16"
    """How the trained weights are stored."""
    lowercase: bool = False
    """Score without regard to case, in validation and evaluation."""


def as_typed(text: str) -> str:
    """A sentence as people type it in a hurry."""
    return text.lower().removesuffix(".")


@dataclass(frozen=True)
class Translation:
    """One translated sentence."""

    source: str
    text: str
    score: float
    """Log-probability with the length penalty."""
    logprob: float
    best: list["Translation"]
    """All texts that were asked for, this one first."""
    translator: "Translator"
    source_ids: list[int]
    target_ids: list[int]

    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"source": self.source, "text": self.text, "score": round(self.score, 5)}
        record["logprob"] = round(self.logprob, 5)
        if len(self.best) > 1:
            record["best"] = [{"text": other.text, "score": round(other.score, 5)} for other in self.best]
        return record


class Translator:
    """Translates: `translator("a sentence")`, or a list of them, batched."""

    longest_text = 5_000
    longest_source = 1_000
    """Characters and tokens beyond which a text is no sentence, and is refused."""

    def __init__(self, model: EncoderDecoder, vocabulary: Vocabulary, config: SearchConfig) -> None:
        self.model = model.eval()
        self.vocabulary = vocabulary
        self.config = config
        self.batch_tokens = 2048

    def translate(
        self, texts: Sequence[str], config: SearchConfig, *, best: int = 1, prefix: str = "", first: int = 0
    ) -> list[Translation]:
        """Translations in the order of the texts. `first` is the place of texts[0] in a longer input."""
        sources = self.vocabulary.encode(texts)
        for text, source in zip(texts, sources, strict=True):
            if len(source) > self.longest_source:
                raise UserError(
                    f"a text of {len(source)} tokens ({len(text)} characters): at most {self.longest_source} can be read"
                )
        # A prefix that ends in a space would force the next word to begin inside a token.
        forced = self.vocabulary.encode([prefix.rstrip()])[0] if prefix.strip() else []
        answers: list[Translation | None] = [None] * len(texts)
        lengths = np.array([len(source) + 1 for source in sources], dtype=np.int64)
        with torch.inference_mode():
            for indices in in_order(lengths, self.batch_tokens // config.beam or 1):
                chosen = [sources[i] for i in indices]
                memory = self.model.read(*pad_sources(chosen))
                found = search(
                    self.model.decoder,
                    memory,
                    config,
                    prefixes=[forced] * len(chosen),
                    limits=[config.limit(len(source)) for source in chosen],
                    numbers=[first + int(i) for i in indices],
                )
                for index, hypotheses in zip(indices, found, strict=True):
                    candidates = [
                        Translation(
                            texts[index],
                            self.vocabulary.decode(h.tokens),
                            h.score,
                            h.logprob,
                            [],
                            self,
                            sources[index],
                            h.tokens,
                        )
                        for h in hypotheses[:best]
                    ]
                    candidates[0].best.extend(candidates)
                    answers[index] = candidates[0]
        return [answer for answer in answers if answer is not None]


class TranslationTask:
    """What the commands know of translation."""

    name = "translation"
    recipe = TranslationRecipe

    def prepare(self, recipe: TranslationRecipe, folders: Sequence[Path], out: Path, *, resume: bool) -> Work:
        def pairs_of(part: list[str]) -> list[Pair]:
            return read_pairs([find(name, folders) for name in part])

        training, validation = pairs_of(recipe.data.train), pairs_of(recipe.data.valid)
        random = np.random.default_rng(recipe.train.seed)
        again = np.flatnonzero(random.random(len(training)) < recipe.data.plain)
        training += [(as_typed(training[i][0]), as_typed(training[i][1])) for i in again]

        path = out / "tokenizer.json"
        if resume and path.exists():
            vocabulary = read_vocabulary(path.read_text(encoding="utf-8"), path)
        else:
            vocabulary = train_bpe(recipe.tokens, (text for pair in training for text in pair))
            vocabulary.save(path)
        torch.manual_seed(recipe.train.seed)
        model = build_encoder_decoder(recipe.model, len(vocabulary))
        examples, kept = _encode(vocabulary, training, recipe.data.longest)
        sampler = Sampler(*examples.sizes(), budget=recipe.train.batch_tokens, seed=recipe.train.seed)
        return Work(
            model=model,
            objective=SequenceObjective(recipe.train.smoothing),
            sampler=sampler,
            batch=examples.batch,
            validate=_Validation(vocabulary, validation, recipe),
            describe=lambda indices: _describe(indices, kept, training),
        )

    def finish(self, recipe: TranslationRecipe, work: Work, outcome: Outcome, out: Path) -> None:
        config = {
            "task": self.name,
            "name": recipe.name,
            "model": recipe.model.table(),
            "search": recipe.search.table(),
            "data": recipe.data.table(),
            "lowercase": recipe.lowercase,
        }
        tokenizer = (out / "tokenizer.json").read_text(encoding="utf-8")
        write_folder(out, config, work.model, tokenizer, "", storage=recipe.storage)

    def load(self, folder: ModelFolder) -> Translator:
        where = str(folder.path / "config.json")
        config = EncoderDecoderConfig.read(folder.config["model"], where=where)
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json")
        with torch.device("meta"):
            model = build_encoder_decoder(config, len(vocabulary))
        fill(model, folder)
        return Translator(model, vocabulary, SearchConfig.read(folder.config.get("search", {}), where=where))


class _Validation:
    """Loss per token, and BLEU of greedy translations, on the validation part."""

    def __init__(self, vocabulary: Vocabulary, pairs: list[Pair], recipe: TranslationRecipe) -> None:
        self.vocabulary, self.recipe = vocabulary, recipe
        self.examples, _ = _encode(vocabulary, pairs, 1000)
        self.sources, self.references = by_source(pairs)
        self.objective = SequenceObjective()

    def __call__(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, EncoderDecoder)
        total, count = 0.0, 0
        for indices in in_order(self.examples.sizes()[1], 4096):
            loss, items = self.objective(model, self.examples.batch(indices))["loss"]
            total, count = total + loss.item(), count + items
        translator = Translator(model, self.vocabulary, self.recipe.search)
        greedy = self.recipe.search.model_copy(update={"beam": 1})
        outputs = [answer.text for answer in translator.translate(self.sources, greedy)]
        return {"loss": total / count, "bleu": bleu(outputs, self.references, lowercase=self.recipe.lowercase).value}


def by_source(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """Each source once, with all its translations."""
    references: dict[str, list[str]] = {}
    for source, target in pairs:
        references.setdefault(source, []).append(target)
    return list(references), list(references.values())


def _encode(vocabulary: Vocabulary, pairs: Sequence[Pair], longest: int) -> tuple[SequencePairs, list[int]]:
    """The pairs as ids, and which pairs they are: those too long on a side are left out."""
    sources = vocabulary.encode([source for source, _ in pairs])
    targets = vocabulary.encode([target for _, target in pairs])
    kept = [i for i in range(len(pairs)) if len(sources[i]) <= longest and len(targets[i]) <= longest]
    if not kept:
        raise UserError(f"all {len(pairs)} sentence pairs are longer than {longest} tokens; set data.longest higher")
    return SequencePairs(Ragged([sources[i] for i in kept]), Ragged([targets[i] for i in kept])), kept


def _describe(indices: np.ndarray, kept: list[int], pairs: Sequence[Pair]) -> str:
    first = pairs[kept[int(indices[0])]]
    numbers = ", ".join(str(kept[int(i)] + 1) for i in indices[:5])
    return f"of {len(indices)} pairs (numbers {numbers}, …; the first is {first[0][:60]!r} / {first[1][:60]!r})"

"""Translation: sentence pairs in, a sentence-to-sentence model out."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.config import Record
from saccade.data.batches import Ragged, SequencePairs, in_order
from saccade.data.prepared import keep, kept
from saccade.data.sampler import Sampler
from saccade.data.split import hold_out, write_pairs
from saccade.data.text import Pair, find, read_pairs
from saccade.decode.pack import How
from saccade.decode.search import SearchConfig
from saccade.errors import UserError, WrongUse
from saccade.evaluate.metrics import Score, bleu, chrf
from saccade.folder import ModelFolder, Storage, fill, insist_on_room
from saccade.models.encdec import EncoderDecoder, EncoderDecoderConfig, build_encoder_decoder
from saccade.models.transformer import StackConfig
from saccade.tasks.contract import Recipe, Report, Request, unreported
from saccade.tasks.sizes import sizes_for
from saccade.tasks.store import store
from saccade.tasks.table import TASKS
from saccade.tasks.translator import Translator
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, read_vocabulary, train_vocabulary
from saccade.train.loop import Outcome, TrainConfig, Work
from saccade.train.objective import SequenceObjective
from saccade.train.optim import AdamConfig


class PairsConfig(Record):
    """Where the sentence pairs are: each part one TSV (source, target) or two aligned files, plain or gzip."""

    train: list[str] = Field(min_length=1, max_length=2)
    """What is trained on."""
    valid: list[str] = Field(min_length=1, max_length=2)
    """Decides what is kept; never trained on."""
    test: list[str] = Field([], max_length=2)
    """Touched by `saccade evaluate` only."""
    source: str = ""
    """Language of the source, for the card."""
    target: str = ""
    """Language of the target, for the card."""
    longest: int = Field(250, ge=1)
    """Training pairs with more tokens on a side are left out, and counted."""
    plain: float = Field(0.0, ge=0, le=1)
    """Share of the training pairs seen a second time as people type: lower case, no full stop."""


class TranslationRecipe(Recipe):
    task: Literal["translation"] = "translation"
    data: PairsConfig
    tokens: TokensConfig = TokensConfig()
    model: EncoderDecoderConfig = EncoderDecoderConfig()
    search: SearchConfig = SearchConfig()
    storage: Storage = "float16"
    """How the trained weights are stored."""
    lowercase: bool = False
    """Score without regard to case, in validation and evaluation."""
    layer: int | None = Field(None, ge=1)
    """The cross-attention layer that `--look` draws by default; the middle one if not said."""


def as_typed(text: str) -> str:
    """A sentence as people type it in a hurry."""
    return text.lower().removesuffix(".")


class TranslationTask:
    """What the commands know of translation."""

    name: ClassVar[str] = "translation"
    recipe: ClassVar[type[Recipe]] = TranslationRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[TranslationRecipe, list[str]]:
        """Hold a part out, and take a model as large as the pairs can feed."""
        if len(files) not in (1, 2):
            raise WrongUse(f"translation takes {TASKS[self.name].files}; {len(files)} files were given")
        pairs = read_pairs(files)
        training, valid, test = hold_out(pairs)
        parts = {"train": training, "valid": valid, "test": test}
        for part, chosen in parts.items():
            write_pairs(out / f"{part}.tsv", chosen)
        sizes = sizes_for(len(training))
        stack = StackConfig(
            layers=sizes.layers,
            width=sizes.width,
            heads=sizes.width // 64,
            hidden=4 * sizes.width,
            dropout=sizes.dropout,
        )
        recipe = TranslationRecipe(
            name=out.name,
            data=PairsConfig(**{part: [str((out / f"{part}.tsv").resolve())] for part in parts}),
            tokens=TokensConfig(vocabulary=sizes.vocabulary),
            model=EncoderDecoderConfig(encoder=stack, decoder=stack),
            train=TrainConfig(
                steps=sizes.steps,
                warmup=max(1, sizes.steps // 10),
                validate_every=max(1, sizes.steps // 20),
                patience=6,
                # BLEU of a few hundred sentences is mostly luck; their loss is not.
                judge="bleu" if len(valid) >= 500 else "-loss",
                adam=AdamConfig(rate=1.5e-3),
            ),
        )
        chosen_words = [
            f"{len(pairs):,} sentence pairs: {len(training):,} to train on, {len(valid):,} to choose by, "
            f"{len(test):,} to test with",
            f"held out by source sentence, so that none is in two parts; written to {out}/{{train,valid,test}}.tsv",
            f"model: {sizes.layers}+{sizes.layers} layers, {sizes.width} wide, dropout {sizes.dropout}; "
            f"vocabulary of at most {sizes.vocabulary:,}; at most {sizes.steps:,} steps",
        ]
        return recipe, chosen_words

    def prepare(
        self, recipe: TranslationRecipe, folders: Sequence[Path], out: Path, *, resume: bool
    ) -> tuple[Work, list[str]]:
        def pairs_of(part: list[str]) -> list[Pair]:
            return read_pairs([find(name, folders) for name in part])

        path = out / "tokenizer.json"
        arrays = kept(out / "prepared") if resume and path.exists() else None
        training = [] if arrays else _as_trained(pairs_of(recipe.data.train), recipe)
        if resume and path.exists():
            vocabulary = read_vocabulary(path.read_text(encoding="utf-8"), path)
        else:
            vocabulary = train_vocabulary(recipe.tokens, (text for pair in training for text in pair))
            vocabulary.save(path)
        if arrays is None:
            arrays = keep(out / "prepared", _encode(vocabulary, training, recipe.data.longest))
        torch.manual_seed(recipe.train.seed)
        model = build_encoder_decoder(recipe.model, len(vocabulary))
        examples, numbers = _pairs(arrays), arrays["numbers"]
        source_sizes, target_sizes = examples.sizes()
        sampler = Sampler(source_sizes, target_sizes, budget=recipe.train.batch_tokens, seed=recipe.train.seed)
        work = Work(
            model=model,
            objective=SequenceObjective(recipe.train.smoothing),
            sampler=sampler,
            batch=examples.batch,
            validate=_Validation(vocabulary, pairs_of(recipe.data.valid), recipe),
            describe=lambda indices: _describe(indices, examples, numbers, vocabulary),
        )
        left_out = int(arrays["count"]) - len(examples)
        real_source, real_target = sampler.fill()
        epochs = recipe.train.steps * recipe.train.accumulate / len(sampler.batches)
        told = [
            f"{len(examples):,} training pairs, {int(target_sizes.sum()):,} target tokens"
            + (f"; {left_out:,} longer than {recipe.data.longest} tokens left out" if left_out else ""),
            f"vocabulary {len(vocabulary):,}, {sum(w.numel() for w in model.parameters()):,} parameters, "
            f"{recipe.train.steps:,} steps = {epochs:.1f} epochs",
            f"batches of at most {recipe.train.batch_tokens:,} tokens a side: {real_target:.1%} of the target and "
            f"{real_source:.1%} of the source positions are real, the rest is padding",
        ]
        return work, told

    def finish(
        self,
        recipe: TranslationRecipe,
        work: Work,
        outcome: Outcome,
        folders: Sequence[Path],
        out: Path,
        report: Report = unreported,
    ) -> list[Score]:
        settings = {
            "model": recipe.model.table(),
            "search": recipe.search.table(),
            "data": recipe.data.table(),
            "lowercase": recipe.lowercase,
            "layer": recipe.layer or max(1, (recipe.model.decoder.looks + 1) // 2),
        }
        test = folders if recipe.data.test else None
        return store(self, recipe, settings, work, outcome, out, storage=recipe.storage, test=test, report=report)

    def load(self, folder: ModelFolder, how: How | None = None) -> Translator:
        where = str(folder.path / "config.json")
        config = EncoderDecoderConfig.read(folder.config["model"], where=where)
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json")
        insist_on_room(folder, config.encoder.least_weights + config.decoder.least_weights)
        model = build_encoder_decoder(config, len(vocabulary))
        fill(model, folder)
        settings = SearchConfig.read(folder.config.get("search", {}), where=where)
        layer = folder.config.get("layer", 1)
        if not isinstance(layer, int) or not 1 <= layer <= max(1, config.decoder.looks):
            raise UserError(f"{where}: layer is {layer!r}, not one of the decoder's 1 to {config.decoder.looks}")
        return Translator(model, vocabulary, settings, layer=layer, how=how)

    def test_files(self, folder: ModelFolder, folders: Sequence[Path]) -> list[Path]:
        names = PairsConfig.read(folder.config.get("data", {}), where=str(folder.path / "config.json")).test
        if not names:
            raise WrongUse(f"{folder.path}: its recipe names no test files; give them: saccade evaluate MODEL FILES")
        return [find(name, folders) for name in names]

    def evaluate(
        self,
        pipeline: Translator,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """BLEU and chrF with all references of a source together, and by default with the case the recipe minds."""
        sources, references = by_source(read_pairs(files or self.test_files(folder, folders)))
        lowercase = bool(folder.config.get("lowercase", False)) if lowercase is None else lowercase
        outputs = []
        for answer in pipeline.answer(sources, request, report=report):
            if isinstance(answer, UserError):
                raise answer
            outputs.append(answer.text)
        return [metric(outputs, references, lowercase=lowercase, bootstrap=1000) for metric in (bleu, chrf)]


class _Validation:
    """Loss per token, and BLEU of greedy translations, on the validation part."""

    def __init__(self, vocabulary: Vocabulary, pairs: list[Pair], recipe: TranslationRecipe) -> None:
        self.vocabulary, self.recipe = vocabulary, recipe
        self.examples = _pairs(_encode(vocabulary, pairs, 1000))
        self.sources, self.references = by_source(pairs)
        self.objective = SequenceObjective()

    def __call__(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, EncoderDecoder)
        total, count = 0.0, 0
        for indices in in_order(self.examples.sizes()[1], 4096):
            loss, items = self.objective(model, self.examples.batch(indices))["loss"]
            total, count = total + loss.item(), count + items
        translator = Translator(model, self.vocabulary, self.recipe.search)
        outputs = [translation.text for translation in translator(self.sources, beam=1)]
        return {"loss": total / count, "bleu": bleu(outputs, self.references, lowercase=self.recipe.lowercase).value}


def by_source(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """Each source once, with all its translations."""
    references: dict[str, list[str]] = {}
    for source, target in pairs:
        references.setdefault(source, []).append(target)
    return list(references), list(references.values())


def _as_trained(pairs: list[Pair], recipe: TranslationRecipe) -> list[Pair]:
    """The pairs, and a share of them once more as people type."""
    random = np.random.default_rng(recipe.train.seed)
    again = np.flatnonzero(random.random(len(pairs)) < recipe.data.plain)
    return pairs + [(as_typed(pairs[i][0]), as_typed(pairs[i][1])) for i in again]


def _encode(vocabulary: Vocabulary, pairs: Sequence[Pair], longest: int) -> dict[str, np.ndarray]:
    """The pairs as ids in flat arrays; those too long on a side are left out, `numbers` says which are there."""
    sources = vocabulary.encode([source for source, _ in pairs])
    targets = vocabulary.encode([target for _, target in pairs])
    numbers = [i for i in range(len(pairs)) if len(sources[i]) <= longest and len(targets[i]) <= longest]
    if not numbers:
        raise UserError(f"all {len(pairs)} sentence pairs are longer than {longest} tokens; set data.longest higher")
    source, target = (Ragged.of([side[i] for i in numbers]) for side in (sources, targets))
    return {
        "source": source.flat,
        "source_lengths": source.lengths,
        "target": target.flat,
        "target_lengths": target.lengths,
        "numbers": np.array(numbers),
        "count": np.array(len(pairs)),
    }


def _pairs(arrays: dict[str, np.ndarray]) -> SequencePairs:
    return SequencePairs(
        Ragged(arrays["source"], arrays["source_lengths"]), Ragged(arrays["target"], arrays["target_lengths"])
    )


def _describe(indices: np.ndarray, examples: SequencePairs, numbers: np.ndarray, vocabulary: Vocabulary) -> str:
    first = [vocabulary.decode(side[int(indices[0])].tolist())[:60] for side in (examples.source, examples.target)]
    shown = ", ".join(str(int(numbers[i]) + 1) for i in indices[:5])
    return f"of {len(indices)} pairs (numbers {shown}, …; the first is {first[0]!r} / {first[1]!r})"

"""Translation: sentence pairs in, a sentence-to-sentence model out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.carried import CarriedTest
from saccade.data.augment import AugmentConfig, Augmenter
from saccade.data.copies import Copies
from saccade.data.sampler import Sampler
from saccade.data.sources import (
    Mixture,
    TestFiles,
    TrainingFiles,
    TrainingSource,
    ValidationFiles,
    as_sources,
    labels,
    read_held_out,
    read_mixture,
    spread,
)
from saccade.data.split import hold_out, write_pairs
from saccade.data.text import Pair, find, read_pairs
from saccade.errors import WrongUse
from saccade.evaluate.classes import spearman
from saccade.evaluate.metrics import Score, bleu, chrf, sentence_chrf
from saccade.folder import ModelFolder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.table import TASKS
from saccade.pipelines.translator import Translator
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.sequence import SequenceData, SequenceParts, SequenceRecipe, answered, by_source, prepare_pairs
from saccade.tasks.sizes import sizes_for
from saccade.tokens.vocabulary import TokensConfig
from saccade.train.loop import TrainConfig
from saccade.train.optim import AdamConfig


class PairsConfig(SequenceData):
    """Files of sentence pairs: for each part one TSV (source, target) or two aligned files, plain or gzip; or a list of
    tables, each such a source with its share. Tables of training data drop what is in the held-out parts."""

    renamed: ClassVar[Mapping[str, str]] = {**SequenceData.renamed, "plain": "informal_share"}

    train: TrainingFiles
    """Training files; as tables: `file`, `target_file`, `repeat`, `skip_last`."""
    valid: ValidationFiles
    """Validation files: they select the best checkpoint; as tables: `file`, `target_file`, `name`, `last`, `limit`."""
    test: TestFiles = Field([])
    """Test files, used for the final score and by `saccade evaluate`; of several tables, the first is scored."""
    source: str = ""
    """Source language, for the model card."""
    target: str = ""
    """Target language, for the model card."""
    informal_share: float = Field(0.0, ge=0, le=1)
    """Share of the training pairs that are added a second time in lower case and without the full stop."""
    copies: int = Field(1, ge=1, le=1000)
    """Copies of the training pairs, each augmented differently; epoch e trains on copy e modulo this number."""
    plain_copies: int = Field(1, ge=0)
    """The last copies, in this number, are not augmented, so that a training can end on plain text."""
    augment: AugmentConfig = AugmentConfig()
    """How the other copies differ from the plain text."""

    @model_validator(mode="after")
    def _copies_make_sense(self) -> "PairsConfig":
        if self.plain_copies > self.copies:
            raise ValueError(f"plain_copies is {self.plain_copies}, but there are only {self.copies} copies")
        if self.augment.changes_anything and self.plain_copies == self.copies:
            raise ValueError(
                f"augment is set, but all {self.copies} copies are plain; set copies higher than plain_copies"
            )
        labels(as_sources(self.valid))
        return self

    @property
    def files(self) -> list[str]:
        """Names of all files."""
        parts = (*self.train, *self.valid, *self.test)
        return [name for part in parts for name in ([part] if isinstance(part, str) else part.names)]


class TranslationRecipe(SequenceRecipe):
    task: Literal["translation"] = "translation"
    data: PairsConfig
    lowercase: bool = False
    """Ignore case in validation and evaluation scores."""
    split_sentences: bool = True
    """Translate texts sentence by sentence. False: a line is read as a whole, whatever it holds."""
    lower_capitals: bool = False
    """Read sentences that are all in capitals in small letters, and write their translations in capitals."""

    @model_validator(mode="after")
    def _dropout_has_merges(self) -> "TranslationRecipe":
        if self.data.augment.bpe_dropout and self.tokens.kind != "bpe":
            raise ValueError(f"data.augment.bpe_dropout needs tokens.kind = 'bpe', not {self.tokens.kind!r}")
        return self


def as_typed(text: str) -> str:
    """A sentence in informal spelling: lower case, no full stop."""
    return text.lower().removesuffix(".")


class TranslationTask:
    """The task of translation, for the commands."""

    name: ClassVar[str] = "translation"
    recipe: ClassVar[type[Recipe]] = TranslationRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[TranslationRecipe, list[str]]:
        """Hold out a part and choose the model size by the number of pairs."""
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
            feedforward=4 * sizes.width,
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
                # BLEU of a few hundred sentences is too noisy; their loss is not.
                select_by="bleu" if len(valid) >= 500 else "-loss",
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
        self,
        recipe: TranslationRecipe,
        folders: Sequence[Path],
        out: Path,
        *,
        resume: bool,
        report: Report = unreported,
    ) -> Prepared:
        data, lowercase = recipe.data, recipe.lowercase
        if not resume:
            for name in data.files:  # before any is read: some are large
                find(name, folders)
        tested = by_source(read_pairs(as_sources(data.test)[0].paths(folders))) if data.test else None
        held = held_pairs(data, folders)
        parts = SequenceParts(
            training=lambda: training_copies(recipe, folders),
            held=held,
            figures=lambda _, outputs, accepted: {"bleu": bleu(outputs, accepted, lowercase=lowercase).value},
            figure=lambda pipeline: _figure(pipeline, held, lowercase=lowercase),
            files=data.files,
            split=recipe.split_sentences,
            settings={
                "lowercase": lowercase,
                "split_sentences": recipe.split_sentences,
                "lower_capitals": recipe.lower_capitals,
            },
            test=(lambda pipeline, _, report: _scores(pipeline, *tested, Request(), report, lowercase))
            if tested
            else None,
            carried=(lambda: _carried(data, folders)) if data.test else None,
            ending=lambda sampler: _plain_ending(recipe, sampler),
        )
        return prepare_pairs(recipe, parts, out, resume=resume, report=report)

    def test_files(self, folder: ModelFolder, folders: Sequence[Path]) -> list[Path]:
        data = PairsConfig.read(folder.table("data"), where=str(folder.path / "config.json"))
        if not data.test:
            raise WrongUse(f"{folder.path}: its recipe names no test files; give them: saccade evaluate MODEL FILES")
        return as_sources(data.test)[0].paths(folders)

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
        """BLEU and chrF against all references of a source; case as in the recipe, unless `lowercase` is given."""
        sources, references = by_source(read_pairs(files or self.test_files(folder, folders)))
        lowercase = bool(folder.config.settings.get("lowercase", False)) if lowercase is None else lowercase
        return _scores(pipeline, sources, references, request, report, lowercase)


def training_copies(recipe: TranslationRecipe, folders: Sequence[Path]) -> Copies:
    """The training pairs as the epochs go through them, augmented where the recipe says so."""
    data, mixture = recipe.data, _mixture(recipe, folders)
    augmenter = Augmenter.of(data.augment, mixture.pairs) if data.augment.changes_anything else None
    return Copies(mixture, augmenter, data.copies, data.plain_copies, recipe.train.seed)


def held_pairs(data: PairsConfig, folders: Sequence[Path]) -> dict[str, list[Pair]]:
    """Validation pairs by the name of their source."""
    return {source.label: spread(read_held_out(source, folders), source.limit) for source in as_sources(data.valid)}


def _mixture(recipe: TranslationRecipe, folders: Sequence[Path]) -> Mixture:
    """All pairs, each once, and a share of them a second time in informal spelling."""
    data = recipe.data
    sources = [source for source in data.train if isinstance(source, TrainingSource)]
    if sources:
        mixture = read_mixture(sources, [*as_sources(data.valid), *as_sources(data.test)], folders)
    else:
        # Files that are named without tables are used as they are.
        mixture = Mixture.of(read_pairs([find(str(name), folders) for name in data.train]))
    pairs = mixture.pairs
    random = np.random.default_rng(recipe.train.seed)
    again = np.flatnonzero(random.random(len(pairs)) < data.informal_share)
    return mixture.with_more([(as_typed(pairs[i][0]), as_typed(pairs[i][1])) for i in again])


def _carried(data: PairsConfig, folders: Sequence[Path]) -> CarriedTest:
    pairs = read_pairs(as_sources(data.test)[0].paths(folders))
    return CarriedTest("test.tsv.xz", "".join(f"{source}\t{target}\n" for source, target in pairs))


def _plain_ending(recipe: TranslationRecipe, sampler: Sampler) -> str:
    """The share of the training that its end on plain text has, if only its end is on plain text."""
    data = recipe.data
    if data.copies == 1 or data.plain_copies in (0, data.copies):
        return ""
    epochs = sampler.epochs(recipe.train.steps * recipe.train.accumulate)
    plain = takewhile(lambda epoch: epoch[0] >= data.copies - data.plain_copies, reversed(epochs))
    return f", the last {sum(share for _, share in plain):.1f} of them on plain text"


def _figure(pipeline: Translator, held: Mapping[str, Sequence[Pair]], *, lowercase: bool) -> Figure:
    """BLEU; of several sources, the mean."""
    found = []
    for pairs in held.values():
        sources, accepted = by_source(pairs)
        outputs = [answer.text for answer in answered(pipeline, sources, Request(), unreported)]
        found.append(bleu(outputs, accepted, lowercase=lowercase).value)
    return Figure("BLEU", sum(found) / len(found))


def _scores(
    pipeline: Translator,
    sources: list[str],
    references: list[list[str]],
    request: Request,
    report: Report,
    lowercase: bool,
) -> list[Score]:
    answers = answered(pipeline, sources, request, report)
    outputs = [answer.text for answer in answers]
    found = [metric(outputs, references, lowercase=lowercase, bootstrap=1000) for metric in (bleu, chrf)]
    # Whether the model knows its good translations from its bad ones.
    trust = spearman(sentence_chrf(outputs, references), [answer.confidence for answer in answers])
    return [*found, replace(trust, name="confidence and chrF", signature=f"{trust.signature}|Spearman")]

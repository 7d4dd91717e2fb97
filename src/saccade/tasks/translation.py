"""Translation: sentence pairs in, a sentence-to-sentence model out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.data.split import hold_out, write_pairs
from saccade.data.text import Pair, find, read_pairs
from saccade.errors import WrongUse
from saccade.evaluate.metrics import Score, bleu, chrf
from saccade.folder import ModelFolder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.table import TASKS
from saccade.pipelines.translator import Translator
from saccade.tasks.contract import Recipe
from saccade.tasks.sequence import SequenceData, SequenceRecipe, SequenceTask, answered, by_source
from saccade.tasks.sizes import sizes_for
from saccade.tokens.vocabulary import TokensConfig
from saccade.train.loop import TrainConfig
from saccade.train.optim import AdamConfig


class PairsConfig(SequenceData):
    """Files of sentence pairs: for each part one TSV (source, target) or two aligned files, plain or gzip."""

    renamed: ClassVar[Mapping[str, str]] = {**SequenceData.renamed, "plain": "informal_share"}

    train: list[str] = Field(min_length=1, max_length=2)
    """Training files."""
    valid: list[str] = Field(min_length=1, max_length=2)
    """Validation files: they select the best checkpoint."""
    test: list[str] = Field([], max_length=2)
    """Test files, used for the final score and by `saccade evaluate`."""
    source: str = ""
    """Source language, for the model card."""
    target: str = ""
    """Target language, for the model card."""
    informal_share: float = Field(0.0, ge=0, le=1)
    """Share of the training pairs that are added a second time in lower case and without the full stop."""


class TranslationRecipe(SequenceRecipe):
    task: Literal["translation"] = "translation"
    data: PairsConfig
    lowercase: bool = False
    """Ignore case in validation and evaluation scores."""


def as_typed(text: str) -> str:
    """A sentence in informal spelling: lower case, no full stop."""
    return text.lower().removesuffix(".")


class TranslationTask(SequenceTask):
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

    def training_pairs(self, recipe: TranslationRecipe, folders: Sequence[Path]) -> list[Pair]:
        """The pairs, and a share of them a second time in informal spelling."""
        pairs = _read(recipe.data.train, folders)
        random = np.random.default_rng(recipe.train.seed)
        again = np.flatnonzero(random.random(len(pairs)) < recipe.data.informal_share)
        return pairs + [(as_typed(pairs[i][0]), as_typed(pairs[i][1])) for i in again]

    def held_pairs(self, recipe: TranslationRecipe, folders: Sequence[Path]) -> list[Pair]:
        return _read(recipe.data.valid, folders)

    def figures(
        self, recipe: TranslationRecipe, sources: list[str], outputs: list[str], accepted: list[list[str]]
    ) -> dict[str, float]:
        return {"bleu": bleu(outputs, accepted, lowercase=recipe.lowercase).value}

    def has_test(self, recipe: TranslationRecipe) -> bool:
        return bool(recipe.data.test)

    def settings(self, recipe: TranslationRecipe) -> dict[str, Any]:
        return {"lowercase": recipe.lowercase}

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
        """BLEU and chrF against all references of a source; case as in the recipe, unless `lowercase` is given."""
        sources, references = by_source(read_pairs(files or self.test_files(folder, folders)))
        lowercase = bool(folder.config.get("lowercase", False)) if lowercase is None else lowercase
        outputs = answered(pipeline, sources, request, report)
        return [metric(outputs, references, lowercase=lowercase, bootstrap=1000) for metric in (bleu, chrf)]


def _read(part: list[str], folders: Sequence[Path]) -> list[Pair]:
    return read_pairs([find(name, folders) for name in part])

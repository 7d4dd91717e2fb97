"""Classifying: a text, or a pair of them, in, a class or a number out; trained from a labelled table."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import nn

from saccade.data.labelled import Texts
from saccade.data.sampler import Sampler
from saccade.data.table import Examples, Parts, TableConfig, guess_columns, guess_table, read_parts, read_table
from saccade.decode.packed import How
from saccade.errors import UserError, WrongUse
from saccade.evaluate.classes import Classified, class_scores, number_scores
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder, Storage
from saccade.models.heads import Classifier as ClassifierModel
from saccade.tasks.asked import Report, Request, unreported
from saccade.tasks.classifier import Classifier
from saccade.tasks.contract import Recipe
from saccade.tasks.encoder import EncoderRecipe, begin, build_text_encoder, encoder_config, hiding
from saccade.tasks.store import store
from saccade.tokens.vocabulary import read_vocabulary
from saccade.train.loop import Outcome, TrainConfig, Work
from saccade.train.objective import ClassObjective
from saccade.train.optim import AdamConfig
from saccade.weights import filled, insist_on_room


class ClassificationRecipe(EncoderRecipe):
    task: Literal["classification"] = "classification"
    data: TableConfig
    storage: Storage = "float16"
    """How the trained weights are stored."""


class ClassificationTask:
    """What the commands know of classifying."""

    name: ClassVar[str] = "classification"
    recipe: ClassVar[type[Recipe]] = ClassificationRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[ClassificationRecipe, list[str]]:
        """Columns by their names or their look; a tenth held out to choose by, and one to test with."""
        data, told = guess_table(files)
        rows = len(read_table([Path(file) for file in data.train], data))
        steps = min(4_000, max(150, rows * 10 // 40))
        recipe = ClassificationRecipe(
            name=out.name,
            data=data,
            train=TrainConfig(
                steps=steps,
                batch_tokens=2048,
                warmup=max(1, steps // 10),
                validate_every=max(1, steps // 15),
                patience=6,
                smoothing=0.0,
                judge="-loss" if data.labels == "numbers" else "accuracy",
                adam=AdamConfig(rate=1e-3, decay=0.1),
            ),
        )
        return recipe, [*told, f"from scratch (init = MODEL starts from another); at most {steps:,} steps"]

    def prepare(
        self, recipe: ClassificationRecipe, folders: Sequence[Path], out: Path, *, resume: bool
    ) -> tuple[Work, list[str]]:
        parts = _parts(recipe, folders)
        both = [*parts.train.texts, *(parts.train.seconds or [])]
        beginning = begin(recipe, both, out, resume=resume)
        vocabulary, context = beginning.vocabulary, beginning.config.context
        torch.manual_seed(recipe.train.seed)
        encoder, outputs = build_text_encoder(beginning.config, vocabulary), max(1, len(parts.train.classes))
        model = ClassifierModel(encoder, outputs, recipe.dropout, hiding(recipe, vocabulary))
        beginning.fill(model)
        scale = _Scale.of(parts.train)
        texts = Texts.of(vocabulary, parts.train.texts, parts.train.seconds, context)
        labels = scale.narrow(parts.train)
        lengths = texts.rows.lengths
        sampler = Sampler(lengths, lengths, budget=recipe.train.batch_tokens, seed=recipe.train.seed)
        pipeline = Classifier(model, vocabulary, parts.train.classes, middle=scale.middle, spread=scale.spread)
        work = Work(
            model=model,
            objective=ClassObjective(recipe.train.smoothing),
            sampler=sampler,
            batch=lambda indices: texts.batch(indices, labels),
            validate=lambda _: _figures(pipeline, parts.valid, scale),
            describe=lambda indices: f"of {len(indices)} texts (the first: {parts.train.texts[indices[0]][:80]!r})",
        )
        return work, _told(recipe, parts, texts, model, sampler)

    def finish(
        self,
        recipe: ClassificationRecipe,
        work: Work,
        outcome: Outcome,
        folders: Sequence[Path],
        out: Path,
        report: Report = unreported,
    ) -> list[Score]:
        parts = _parts(recipe, folders)
        scale = _Scale.of(parts.train)
        encoder = begin(recipe, [], out, resume=True).config
        settings = {
            "model": encoder.table(),
            "data": recipe.data.table(),
            "classes": parts.train.classes,
            "middle": scale.middle,
            "spread": scale.spread,
        }
        test = folders if parts.test is not None else None
        return store(self, recipe, settings, work, outcome, out, storage=recipe.storage, test=test, report=report)

    def load(self, folder: ModelFolder, how: How | None = None) -> Classifier:
        where = str(folder.path / "config.json")
        config = encoder_config(folder)
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", spaced=False)
        classes, middle, spread = (folder.config.get(name) for name in ("classes", "middle", "spread"))
        if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
            raise UserError(f"{where}: classes is not a list of names")
        if not isinstance(middle, int | float) or not isinstance(spread, int | float):
            raise UserError(f"{where}: middle and spread are not numbers")
        insist_on_room(folder, config.least_weights)
        model = filled(
            folder,
            lambda: ClassifierModel(build_text_encoder(config, vocabulary), max(1, len(classes)), config.dropout),
        )
        return Classifier(model, vocabulary, classes, middle=middle, spread=spread)

    def evaluate(
        self,
        pipeline: Classifier,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Accuracy, F1 and Matthews of classes; correlations of numbers."""
        data = TableConfig.read(folder.config.get("data", {}), where=str(folder.path / "config.json"))
        if files:
            columns, _ = guess_columns(files[0])
            examples = read_table(files, columns.model_copy(update={"labels": data.labels}), pipeline.classes)
        else:
            test = read_parts(data, folders).test
            if test is None:
                raise WrongUse(f"{folder.path}: names no test part; give files: saccade evaluate MODEL FILES")
            examples = test
        return scores(pipeline, examples, report)


def scores(pipeline: Classifier, examples: Examples, report: Report = unreported) -> list[Score]:
    """The figures of a model on labelled examples."""
    outputs = pipeline.outputs(examples.texts, examples.seconds, report)
    if not pipeline.classes:
        return number_scores([float(label) for label in examples.labels], pipeline.numbers(outputs).tolist())
    predicted = outputs.argmax(dim=1).tolist()
    return class_scores(Classified([int(label) for label in examples.labels], predicted, pipeline.classes))


def _parts(recipe: ClassificationRecipe, folders: Sequence[Path]) -> Parts:
    """The labelled examples, of the training part as many as are asked for."""
    parts = read_parts(recipe.data, folders)
    chosen, train = recipe.chosen(len(parts.train)), parts.train
    if len(chosen) == len(train):
        return parts
    kept = replace(
        train,
        texts=[train.texts[place] for place in chosen],
        seconds=[train.seconds[place] for place in chosen] if train.seconds is not None else None,
        labels=[train.labels[place] for place in chosen],
    )
    return replace(parts, train=kept, told=[*parts.told, f"trained on {len(chosen):,} of these, drawn by the seed"])


class _Scale:
    """Numbers to be learnt, shifted and scaled to a mean of 0 and a spread of 1; classes are left alone."""

    def __init__(self, middle: float, spread: float) -> None:
        self.middle, self.spread = middle, spread

    @classmethod
    def of(cls, examples: Examples) -> "_Scale":
        if examples.classes:
            return cls(0.0, 1.0)
        values = np.array(examples.labels, dtype=np.float64)
        return cls(float(values.mean()), float(values.std()) or 1.0)

    def narrow(self, examples: Examples) -> np.ndarray:
        if examples.classes:
            return np.array(examples.labels, dtype=np.int64)
        return ((np.array(examples.labels) - self.middle) / self.spread).astype(np.float32)


def _figures(pipeline: Classifier, examples: Examples, scale: _Scale) -> dict[str, float]:
    outputs = pipeline.outputs(examples.texts, examples.seconds)
    labels = torch.from_numpy(scale.narrow(examples))
    if not pipeline.classes:
        return {"loss": float((outputs[:, 0] - labels).square().mean())}
    right = float((outputs.argmax(dim=1) == labels).float().mean())
    return {"loss": float(nn.functional.cross_entropy(outputs, labels)), "accuracy": 100 * right}


def _told(recipe: ClassificationRecipe, parts: Parts, texts: Texts, model: nn.Module, sampler: Sampler) -> list[str]:
    epochs = recipe.train.steps * recipe.train.accumulate / len(sampler.batches)
    told = [*parts.told]
    if texts.cut:
        told.append(f"{texts.cut:,} training texts are longer than the encoder reads, and lose their end")
    began = f"from {recipe.init}" if recipe.init else "from scratch"
    parameters = sum(weight.numel() for weight in model.parameters())
    told.append(f"{began}: {parameters:,} parameters, {recipe.train.steps:,} steps = {epochs:.1f} epochs")
    return told

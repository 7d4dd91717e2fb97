"""Classifying: a text, or a pair of them, in, a class or a number out; trained from a labelled table."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import nn

from saccade.arch.heads import ClassHead, EncoderModel
from saccade.data.encoded import Texts
from saccade.data.labelled import text_batch
from saccade.data.sampler import Sampler
from saccade.data.table import Examples, TableConfig, TableParts, guess_columns, guess_table, read_parts, read_table
from saccade.errors import WrongUse
from saccade.evaluate.calibration import class_calibration, fit_weights, log_softmax, weighted_loss
from saccade.evaluate.classes import Classified, class_scores, number_scores
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder, Storage
from saccade.models.answering import encoder_runtime
from saccade.models.encoders import build_encoder_model
from saccade.pipelines.classifier import Classifier
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.encoder import EncoderRecipe, begin, hiding
from saccade.tasks.mixing import LinearUse, finish
from saccade.tasks.tuning import fine_tuning, from_scratch, trials_for
from saccade.train.loop import Work
from saccade.train.objective import ClassObjective


class ClassificationRecipe(EncoderRecipe):
    task: Literal["classification"] = "classification"
    data: TableConfig
    pooling: Literal["dense", "first", "mean"] = "dense"
    """What stands for a whole text. dense: a layer on the first position, as in BERT; first: that position as it is;
    mean: the mean of all positions."""
    linear: LinearUse = "none"
    """A linear model on n-grams of words and letters, fitted on the same rows. beside: its accuracy is told; mixed: it
    also has a share in the probabilities where that helps on the validation part."""
    storage: Storage = "float16"
    """Number format of the stored weights."""


class ClassificationTask:
    """The task of classifying, for the commands."""

    name: ClassVar[str] = "classification"
    recipe: ClassVar[type[Recipe]] = ClassificationRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[ClassificationRecipe, list[str]]:
        """From scratch."""
        return self.recipe_from(files, out, "")

    def texts_of(self, files: Sequence[Path]) -> list[str]:
        columns, _ = guess_columns(files[0])
        examples = read_table(files[:1], columns)
        return [*examples.texts, *(examples.seconds or [])]

    def recipe_from(self, files: Sequence[Path], out: Path, start: str) -> tuple[ClassificationRecipe, list[str]]:
        """Guess the columns by name or content; hold out a tenth for validation and a tenth for the test."""
        data, told = guess_table(files)
        examples = read_table([Path(file) for file in data.train], data)
        seconds = examples.seconds or [""] * len(examples)
        texts = [one + other for one, other in zip(examples.texts, seconds, strict=True)]
        train, pace = (fine_tuning if start else from_scratch)(texts)
        recipe = ClassificationRecipe(
            name=out.name,
            data=data,
            init=start,
            pooling="mean" if start else "dense",
            linear="mixed",
            train=train,
            trials=trials_for(len(texts)) if start else [],
        )
        return recipe, [*told, f"at most {pace.epochs:.0f} epochs; the loss on the validation part stops it earlier"]

    def prepare(
        self,
        recipe: ClassificationRecipe,
        folders: Sequence[Path],
        out: Path,
        *,
        resume: bool,
        report: Report = unreported,
    ) -> Prepared:
        parts = _parts(recipe, folders)
        both = [*parts.train.texts, *(parts.train.seconds or [])]
        beginning = begin(recipe, both, out, resume=resume)
        vocabulary, context = beginning.vocabulary, beginning.config.context
        torch.manual_seed(recipe.train.seed)
        head = ClassHead(outputs=max(1, len(parts.train.classes)), pooling=recipe.pooling)
        described = EncoderModel(encoder=beginning.config, head=head)
        model = build_encoder_model(described, len(vocabulary) + 1, hiding(recipe, vocabulary))
        beginning.fill(model)
        scale = Scale.of(parts.train)
        texts = Texts.of(vocabulary, parts.train.texts, parts.train.seconds, context)
        labels = scale.narrow(parts.train)
        lengths = texts.rows.lengths
        sampler = Sampler(lengths, lengths, budget=recipe.train.batch_tokens, seed=recipe.train.seed)

        def pipeline(trained: nn.Module) -> Classifier:
            running = encoder_runtime(trained, described, "exact")
            return Classifier(running, vocabulary, parts.train.classes, middle=scale.middle, spread=scale.spread)

        work = Work(
            model=model,
            objective=ClassObjective(recipe.train.smoothing),
            sampler=sampler,
            batch=lambda indices: text_batch(texts, indices, labels),
            validate=lambda trained: _figures(pipeline(trained), parts.valid, scale),
            describe=lambda indices: f"of {len(indices)} texts (the first: {parts.train.texts[indices[0]][:80]!r})",
        )
        test = parts.test
        return Prepared(
            work=work,
            settings={
                "model": beginning.config.table(),
                "data": recipe.data.table(),
                "classes": parts.train.classes,
                "pooling": recipe.pooling,
                "middle": scale.middle,
                "spread": scale.spread,
            },
            marks=vocabulary.marks,
            storage=recipe.storage,
            messages=_told(recipe, parts, texts, model, sampler),
            files=[*recipe.data.train, *recipe.data.valid, *recipe.data.test],
            test=None if test is None else lambda pipeline, _, report: scores(pipeline, test, report),
            figure=lambda pipeline: _figure(pipeline, parts.valid, scale),
            finish=(lambda report: finish(pipeline(model), parts, recipe.linear, report))
            if parts.train.classes
            else None,
        )

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
        data = TableConfig.read(folder.table("data"), where=str(folder.path / "config.json"))
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
    gold, predicted = [int(label) for label in examples.labels], outputs.argmax(axis=1).tolist()
    return [*class_scores(Classified(gold, predicted, pipeline.classes)), class_calibration(outputs, np.array(gold))]


def _parts(recipe: ClassificationRecipe, folders: Sequence[Path]) -> TableParts:
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


class Scale:
    """Numbers to be learnt, shifted and scaled to a mean of 0 and a spread of 1; classes stay unchanged."""

    def __init__(self, middle: float, spread: float) -> None:
        self.middle, self.spread = middle, spread

    @classmethod
    def of(cls, examples: Examples) -> "Scale":
        if examples.classes:
            return cls(0.0, 1.0)
        values = np.array(examples.labels, dtype=np.float64)
        return cls(float(values.mean()), float(values.std()) or 1.0)

    def narrow(self, examples: Examples) -> np.ndarray:
        if examples.classes:
            return np.array(examples.labels, dtype=np.int64)
        return ((np.array(examples.labels) - self.middle) / self.spread).astype(np.float32)


def _figures(pipeline: Classifier, examples: Examples, scale: Scale) -> dict[str, float]:
    outputs = torch.from_numpy(pipeline.outputs(examples.texts, examples.seconds))
    labels = torch.from_numpy(scale.narrow(examples))
    if not pipeline.classes:
        return {"loss": float((outputs[:, 0] - labels).square().mean())}
    right = float((outputs.argmax(dim=1) == labels).float().mean())
    return {"loss": _loss(outputs.numpy(), labels.numpy()), "accuracy": 100 * right}


def _loss(logits_NC: np.ndarray, labels_N: np.ndarray) -> float:
    """At the temperature that the model would be stored with: only being too sure, which that mends, raises nothing."""
    chances_NC = log_softmax(logits_NC)
    return weighted_loss([chances_NC], fit_weights([chances_NC], labels_N), labels_N)


def _figure(pipeline: Classifier, examples: Examples, scale: Scale) -> Figure:
    figures = _figures(pipeline, examples, scale)
    if pipeline.classes:
        return Figure("accuracy", figures["accuracy"])
    return Figure("squared error, in variances", figures["loss"], -0.01)


def _told(
    recipe: ClassificationRecipe, parts: TableParts, texts: Texts, model: nn.Module, sampler: Sampler
) -> list[str]:
    epochs = recipe.train.steps * recipe.train.accumulate / len(sampler.batches)
    told = [*parts.told]
    if texts.cut:
        told.append(f"{texts.cut:,} training texts are longer than the encoder reads, and lose their end")
    parameters = sum(weight.numel() for weight in model.parameters())
    told.append(f"{recipe.began}: {parameters:,} parameters, {recipe.train.steps:,} steps = {epochs:.1f} epochs")
    return told

"""Classifying pictures: a picture in, its class out; trained on MNIST, CIFAR-10 or a folder of class folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import BeforeValidator, Field, model_validator
from torch import nn

from saccade.arch.encoder_decoder import StackConfig
from saccade.arch.front_end import PictureFrontEnd
from saccade.arch.grid import GridConfig
from saccade.arch.heads import ClassHead, EncoderModel
from saccade.data.picture_augment import PictureAugmentConfig, PictureAugmenter
from saccade.data.picture_batches import picture_batch
from saccade.data.picture_sets import (
    FolderPictures,
    PictureParts,
    Pictures,
    PicturesData,
    class_folders,
    read_files,
    read_picture_parts,
)
from saccade.data.prepared import keep, kept
from saccade.data.sampler import Sampler
from saccade.errors import UserError, WrongUse
from saccade.evaluate.classes import Classified, accuracy, macro_f1
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder, Storage
from saccade.models.answering import TorchEncoder
from saccade.models.encoders import build_encoder_model
from saccade.pipelines.picture_classifier import PictureClassifier, picture_source
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.runtime.open import Choice
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.picture_sizes import folder_recipe
from saccade.tokens.marks import Marks
from saccade.train.loop import Work
from saccade.train.objective import PictureObjective


def _transformer_unless_said(table: Any) -> Any:
    return {"kind": "transformer"} | table if isinstance(table, dict) else table


PictureEncoderConfig = Annotated[
    Annotated[StackConfig | GridConfig, Field(discriminator="kind")], BeforeValidator(_transformer_unless_said)
]
TOLD_FILES = 10
"""Unreadable files that are told one by one."""


class PicturesRecipe(Recipe):
    """From labelled pictures to a classifier. A batch is of `train.batch_tokens` pictures."""

    task: Literal["pictures"] = "pictures"
    data: PicturesData
    """The pictures: kind = "idx", "cifar10" or "folders"."""
    augment: PictureAugmentConfig = PictureAugmentConfig()
    """How training pictures are changed."""
    model: PictureEncoderConfig
    """The encoder: kind = "transformer" with a front end, or "grid"."""
    pooling: Literal["dense", "first", "mean"] = "mean"
    """What stands for the whole picture."""
    mirror: bool = False
    """A picture is classified together with its mirror image."""
    storage: Storage = "float16"
    """Number format of the stored weights."""

    @model_validator(mode="after")
    def _it_reads_pictures(self) -> "PicturesRecipe":
        if self.model.front is None:
            raise ValueError("model.front is missing: kind = 'patches' or 'convolutions'")
        EncoderModel(encoder=self.model, head=ClassHead(outputs=2, pooling=self.pooling))
        return self


class PicturesTask:
    """The task of classifying pictures, for the commands."""

    name: ClassVar[str] = "pictures"
    recipe: ClassVar[type[Recipe]] = PicturesRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[PicturesRecipe, list[str]]:
        """Sizes by the number of the pictures and the pixels they have; a tenth is held out twice."""
        if len(files) != 1:
            raise WrongUse(f"one folder with a folder of pictures for each class, not {len(files)} files")
        table, told = folder_recipe(files[0].resolve(), out.name)
        return PicturesRecipe.read(table, where="recipe"), told

    def prepare(
        self, recipe: PicturesRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        parts = _parts(recipe, folders, out, resume=resume)
        train, seed, batch = parts.train, recipe.train.seed, recipe.train.batch_tokens
        torch.manual_seed(seed)
        head = ClassHead(outputs=len(parts.classes), pooling=recipe.pooling)
        described = EncoderModel(encoder=recipe.model, head=head)
        model = build_encoder_model(described, 0)
        augmenter = PictureAugmenter(recipe.augment, seed, len(train))
        epochs = recipe.train.steps * recipe.train.accumulate / max(1, -(-len(train) // batch))
        # Numbers count on from epoch to epoch, so that a batch is changed in its own way in each of them.
        copies = int(epochs) + 2
        ones = np.ones(copies * len(train), dtype=np.int64)
        starts = [copy * len(train) for copy in range(copies)]
        choice = Choice("exact", "PyTorch", "it is in training")

        def classifier(trained: nn.Module) -> PictureClassifier:
            return PictureClassifier(TorchEncoder(trained, described, choice), parts.classes, mirror=recipe.mirror)

        work = Work(
            model=model,
            objective=PictureObjective(recipe.train.smoothing),
            sampler=Sampler(ones, ones, budget=batch, seed=seed, starts=starts),
            batch=lambda numbers: picture_batch(train, numbers, augmenter),
            validate=lambda trained: _figures(classifier(trained), parts.valid),
            describe=lambda numbers: f"of {len(numbers)} pictures (numbers {(numbers % len(train))[:5].tolist()}, …)",
        )
        count = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
        test = parts.test
        return Prepared(
            work=work,
            settings={
                "model": recipe.model.table(),
                "data": recipe.data.table(),
                "classes": parts.classes,
                "pooling": recipe.pooling,
                "mirror": recipe.mirror,
            },
            marks=Marks(),
            storage=recipe.storage,
            messages=[
                *parts.told[:TOLD_FILES],
                *([f"… and {len(parts.told) - TOLD_FILES} others"] if len(parts.told) > TOLD_FILES else []),
                f"{len(train):,} training pictures of {len(parts.classes)} classes, {len(parts.valid):,} to choose by"
                + (f", {len(test):,} to test with" if test is not None else ""),
                f"{count:,} parameters, {recipe.train.steps:,} steps of {batch} pictures = {epochs:.1f} epochs",
            ],
            files=recipe.data.files,
            test=None if test is None else lambda pipeline, _, report: scores(pipeline, test, report),
            figure=lambda pipeline: Figure("accuracy", _figures(pipeline, parts.valid)["accuracy"]),
        )

    def evaluate(
        self,
        pipeline: PictureClassifier,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Accuracy and F1, on a folder of class folders, or on the test part of the recipe."""
        if files:
            return scores(pipeline, _in_folders(files, pipeline), report)
        data = PicturesRecipe.read(
            {"name": "", "train": {"steps": 1}} | {"data": folder.table("data"), "model": folder.config.model}
            | {"pooling": folder.config.settings.get("pooling", "mean")},
            where=folder.where,
        ).data  # fmt: skip
        test = read_picture_parts(data, folders, pipeline.source).test
        if test is None:
            raise WrongUse(f"{folder.path}: names no test part; give a folder of class folders")
        return scores(pipeline, test, report)


def scores(pipeline: PictureClassifier, pictures: Pictures, report: Report = unreported) -> list[Score]:
    """Accuracy and F1 with their intervals."""
    predicted = pipeline.outputs(pictures.pixels_NHWC, report).argmax(axis=1).tolist()
    found = Classified(pictures.labels_N.tolist(), predicted, pipeline.classes)
    return [accuracy(found), macro_f1(found)]


def _parts(recipe: PicturesRecipe, folders: Sequence[Path], out: Path, *, resume: bool) -> PictureParts:
    """What the data names; pictures of the user's own are decoded once, and kept."""
    assert isinstance(recipe.model.front, PictureFrontEnd)
    source = picture_source(recipe.model.front)
    if not isinstance(recipe.data, FolderPictures):
        return read_picture_parts(recipe.data, folders, source)
    arrays = kept(out / "prepared") if resume else None
    if arrays is None:
        parts = read_picture_parts(recipe.data, folders, source)
        assert parts.test is not None
        arrays = {"classes": np.array(parts.classes)}
        for name, part in (("train", parts.train), ("valid", parts.valid), ("test", parts.test)):
            arrays |= {name: part.pixels_NHWC, f"{name}_labels": part.labels_N}
        keep(out / "prepared", arrays)
        return parts
    train, valid, test = (Pictures(arrays[name], arrays[f"{name}_labels"]) for name in ("train", "valid", "test"))
    return PictureParts(train, valid, test, arrays["classes"].tolist())


def _figures(pipeline: PictureClassifier, pictures: Pictures) -> dict[str, float]:
    outputs = torch.from_numpy(pipeline.outputs(pictures.pixels_NHWC))
    labels = torch.from_numpy(np.array(pictures.labels_N))
    right = float((outputs.argmax(dim=1) == labels).float().mean())
    return {"loss": float(nn.functional.cross_entropy(outputs, labels)), "accuracy": 100 * right}


def _in_folders(files: Sequence[Path], pipeline: PictureClassifier) -> Pictures:
    """Pictures of the user's own, in folders named as the model's classes."""
    found = [pair for file in files for pair in class_folders(file, pipeline.source.suffixes).items()]
    if unknown := [name for name, _ in found if name not in pipeline.classes]:
        known = ", ".join(pipeline.classes[:20])
        raise UserError(f"the model knows no class {unknown[0]!r}; its classes are {known}")
    told: list[str] = []
    pairs = [(path, pipeline.classes.index(name)) for name, paths in found for path in paths]
    pictures = read_files(pairs, pipeline.source, told)
    if told:
        raise UserError(told[0])
    return pictures

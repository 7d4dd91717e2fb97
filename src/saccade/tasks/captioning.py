"""Telling what pictures show: trained on drawn scenes, on photographs, or on a table of the user's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import model_validator

from saccade.data.picture_texts import CaptionData
from saccade.errors import WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.picture_texts import caption_scores
from saccade.folder import ModelFolder
from saccade.pipelines.captioner import Captioner
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.sites import SOURCE
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.picture_text_sizes import captions_recipe
from saccade.tasks.picture_texts import PictureTextRecipe, all_scores, prepare_texts, stored_recipe, test_parts


class CaptioningRecipe(PictureTextRecipe):
    """From pictures and sentences about them to a captioner."""

    task: Literal["captioning"] = "captioning"
    data: CaptionData
    """The pictures: kind = "scenes", "flickr8k" or "table"."""

    @model_validator(mode="after")
    def _reads_pictures(self) -> "CaptioningRecipe":
        if list(self.model.readers) != [SOURCE]:
            raise ValueError("a captioner has one encoder, model.encoder")
        self.picture_input(SOURCE)
        return self


class CaptioningTask:
    """The task of captioning, for the commands."""

    name: ClassVar[str] = "captioning"
    recipe: ClassVar[type[Recipe]] = CaptioningRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[CaptioningRecipe, list[str]]:
        """Sizes by the number of rows; a tenth of the pictures is held out twice."""
        if len(files) != 1:
            raise WrongUse(f"one table of picture files and texts, not {len(files)} files")
        table, told = captions_recipe(files[0].resolve(), out.name)
        return CaptioningRecipe.read(table, where="recipe"), told

    def prepare(
        self, recipe: CaptioningRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        return prepare_texts(
            recipe, Captioner, SOURCE, caption_scores, folders, out, asks=False, resume=resume, report=report
        )

    def evaluate(
        self,
        pipeline: Captioner,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Of scenes what the grammar says, and pointing; of other pictures BLEU."""
        data = CaptioningRecipe.read(stored_recipe(folder), where=folder.where).data
        test = test_parts(data, folder, pipeline, files, folders, asks=False)
        return all_scores(pipeline, test, caption_scores, report)

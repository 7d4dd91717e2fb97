"""Answering questions about pictures: trained on drawn scenes and shapes, on photographs, or on a table of the user's
own."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import model_validator

from saccade.data.picture_texts import QuestionData
from saccade.errors import WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.picture_texts import answer_scores
from saccade.folder import ModelFolder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.questioner import PICTURE, QUESTION, Questioner
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.picture_text_sizes import questions_recipe
from saccade.tasks.picture_texts import PictureTextRecipe, all_scores, prepare_texts, stored_recipe, test_parts


class QuestionsRecipe(PictureTextRecipe):
    """From pictures, questions and answers to a model that answers."""

    task: Literal["questions"] = "questions"
    data: QuestionData
    """The pictures: kind = "scenes", "easy_vqa", "daquar", "table", or "several" of the first two."""

    @model_validator(mode="after")
    def _reads_both(self) -> "QuestionsRecipe":
        # The question is looked at first, so that the look at the picture can depend on it.
        if list(self.model.readers) != [QUESTION, PICTURE]:
            raise ValueError("two encoders are needed, model.encoders.question and then model.encoders.picture")
        self.picture_input(PICTURE)
        return self


class QuestionsTask:
    """The task of answering questions, for the commands."""

    name: ClassVar[str] = "questions"
    recipe: ClassVar[type[Recipe]] = QuestionsRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[QuestionsRecipe, list[str]]:
        """Sizes by the number of rows; a tenth of the pictures is held out twice."""
        if len(files) != 1:
            raise WrongUse(f"one table of picture files, questions and answers, not {len(files)} files")
        table, told = questions_recipe(files[0].resolve(), out.name)
        return QuestionsRecipe.read(table, where="recipe"), told

    def prepare(
        self, recipe: QuestionsRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        return prepare_texts(
            recipe, Questioner, PICTURE, answer_scores, folders, out, asks=True, resume=resume, report=report
        )

    def evaluate(
        self,
        pipeline: Questioner,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Right answers: all, by the kind of question, by the number of things; and pointing on scenes."""
        data = QuestionsRecipe.read(stored_recipe(folder), where=folder.where).data
        test = test_parts(data, folder, pipeline, files, folders, asks=True)
        return all_scores(pipeline, test, answer_scores, report)

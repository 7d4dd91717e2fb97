"""Commands that write about pictures: caption, answer."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from saccade.cli.asking import MOST_ANSWERS, LookingOptions, answer_all
from saccade.cli.names import ModelName
from saccade.errors import WrongUse
from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from saccade.pipelines.pipeline import Request
    from saccade.runtime.contract import How


@Parameter(name="*")
@dataclass(frozen=True)
class DescribingOptions(LookingOptions):
    """Options of caption and answer."""

    look: Annotated[Path | None, Parameter(show_default=False)] = None
    "Draw where each word looked: into FILE.png, FILE.svg or FILE.gif, or in the terminal."
    beam: int | None = None
    "Beam width; 1 is greedy search. Default: the model's setting."
    best: int = 1
    "Number of answers per picture, each with its confidence."
    temperature: float | None = None
    "Sample at this temperature. Below 1 favours likely words, above 1 gives more variety."
    seed: int | None = None
    "Random seed for sampling."
    format: Literal["text", "json"] = "text"
    "json: one JSON object per line, with confidences."

    @property
    def how(self) -> "How | None":
        return None

    def request(self) -> "Request":
        """Checked here, before anything is loaded."""
        if self.beam is not None and self.beam < 1:
            raise WrongUse(f"--beam must be at least 1, not {self.beam}")
        if not 1 <= self.best <= MOST_ANSWERS:
            raise WrongUse(f"--best must be between 1 and {MOST_ANSWERS}, not {self.best}")
        if self.temperature is not None and (self.temperature <= 0 or self.best > 1):
            raise WrongUse("--temperature must be above 0, and without --best")
        from saccade.pipelines.pipeline import Request

        return Request(beam=self.beam, best=self.best, temperature=self.temperature, seed=self.seed)


DESCRIBING = DescribingOptions()


def caption(*files: str, model: ModelName = TASKS["captioning"].model, options: DescribingOptions = DESCRIBING) -> int:
    """Tell in a sentence what pictures show: files, folders or globs; - is a file on standard input.

    A caption that the model is not sure of is printed with a remark on standard error.

    For example:

        saccade train scenes --out my-captioner
        saccade caption photo.png --model my-captioner
        saccade caption photo.png --model my-captioner --look words.png
        saccade caption photo.png --model my-captioner --look words.gif
        saccade caption "photos/*.jpg" --model my-captioner --format json -o captions.jsonl

    Parameters
    ----------
    files:
        Pictures: PNG, JPEG, GIF, BMP, WebP, TIFF, PPM.
    model:
        Folder of a model trained for captioning.
    """
    if not model:
        raise WrongUse(
            "no captioner is bundled: train one (saccade train scenes --out my-captioner), then caption with "
            "--model my-captioner"
        )
    return answer_all(files, model, options, TASKS["captioning"])


def answer(
    *files: str,
    question: str | None = None,
    model: ModelName = TASKS["questions"].model,
    options: DescribingOptions = DESCRIBING,
) -> int:
    """Answer a question about pictures: files, folders or globs; - is a file on standard input.

    A file may have a question of its own, after a tab. An answer that the model is not sure of is printed with a remark
    on standard error.

    For example:

        saccade train questions --out my-answers
        saccade answer photo.png --question "how many dogs are there?" --model my-answers
        saccade answer photo.png --question "what is left of the cat?" --model my-answers --best 3
        saccade answer photo.png --question "what is left of the cat?" --model my-answers --look where.png

    Parameters
    ----------
    files:
        Pictures: PNG, JPEG, GIF, BMP, WebP, TIFF, PPM.
    question:
        What to ask about each picture.
    model:
        Folder of a model trained for questions.
    """
    if not model:
        raise WrongUse(
            "no model that answers questions is bundled: train one (saccade train questions --out my-answers), "
            "then answer with --model my-answers"
        )
    return answer_all(files, model, options, TASKS["questions"], question=question)

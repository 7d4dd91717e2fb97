"""The command that says what is in pictures: see."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from saccade.cli.asking import answer_all
from saccade.cli.names import ModelName
from saccade.cli.understand import PlainOptions
from saccade.errors import WrongUse
from saccade.pipelines.table import TASKS


@Parameter(name="*")
@dataclass(frozen=True)
class SeeingOptions(PlainOptions):
    """Options of see."""

    look: Annotated[Path | None, Parameter(show_default=False)] = None
    "Draw which parts of the picture the answer came from: into FILE.png or FILE.svg, or in the terminal."


SEEING = SeeingOptions()


def see(*files: str, model: ModelName = TASKS["pictures"].model, options: SeeingOptions = SEEING) -> int:
    """Say what is in pictures: files, folders or globs; - is a file on standard input.

    For example:

        saccade train pictures photos/ --out my-photos
        saccade see new.jpg --model my-photos
        saccade see new.jpg --model my-photos --best 3
        saccade see new.jpg --model my-photos --look where.png
        saccade see "more/*.png" --model my-photos --format json -o answers.jsonl

    Parameters
    ----------
    files:
        Pictures: PNG, JPEG, GIF, BMP, WebP, TIFF, PPM.
    model:
        Folder of a model trained for pictures.
    """
    if not model:
        raise WrongUse(
            "no model of pictures is bundled: train one on a folder with a folder for each class (saccade train "
            "pictures photos/ --out my-photos), then see with --model my-photos"
        )
    return answer_all(files, model, options, TASKS["pictures"])

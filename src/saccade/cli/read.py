"""The command that reads what is written in pictures: read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import Parameter

from saccade.cli.asking import answer_all
from saccade.cli.names import ModelName
from saccade.cli.understand import ReadingOptions
from saccade.errors import WrongUse
from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from saccade.pipelines.pipeline import Pipeline


@Parameter(name="*")
@dataclass(frozen=True)
class WordOptions(ReadingOptions):
    """Options of read."""

    cut: Literal["auto", "word", "line", "page"] = "auto"
    "What each picture holds: a word, a line of words, a page of lines; auto finds out."
    format: Literal["text", "json", "hocr"] = "text"
    "json: words with boxes and confidences, of every letter too; hocr: HTML that other programs read."

    def tune(self, pipeline: "Pipeline[Any, Any]") -> None:
        pipeline.cut = self.cut  # type: ignore[attr-defined]


WORDS = WordOptions()


def read(*files: str, model: ModelName = TASKS["reading"].model, options: WordOptions = WORDS) -> int:
    """Read what is written in pictures: files, folders or globs; - is a file on standard input.

    A page is cut into lines and words by its ink, and printed in reading order: a screenshot or a scan of one column
    that lies straight. Other pictures are read as one word.

    For example:

        saccade train reader --out my-reader
        saccade read word.png --model my-reader
        saccade read screenshot.png --model my-reader --cut page
        saccade read word.png --model my-reader --look letters.png
        saccade read "scans/*.png" --model my-reader --format json -o texts.jsonl

    Parameters
    ----------
    files:
        Pictures: PNG, JPEG, GIF, BMP, WebP, TIFF, PPM.
    model:
        Folder of a model trained for reading.
    """
    if not model:
        raise WrongUse(
            "no reader is bundled: train one (saccade train reader --out my-reader), then read with --model my-reader"
        )
    return answer_all(files, model, options, TASKS["reading"])

"""The command that mends misspellings."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from saccade.cli.answer import answer_all
from saccade.cli.understand import ReadingOptions
from saccade.tasks.table import TASKS


@Parameter(name="*")
@dataclass(frozen=True)
class CorrectingOptions(ReadingOptions):
    """How to correct."""

    best: Annotated[int, Parameter(name="--suggest")] = 1
    "How many ways to correct each text, with their scores."
    format: Literal["text", "json"] = "text"
    "json: one object a line, with every change and where it was made."


DEFAULTS = CorrectingOptions()


def correct(*texts: str, model: str = TASKS["correction"].model, options: CorrectingOptions = DEFAULTS) -> int:
    """Mend misspellings: each argument is a text, or, without arguments, each line of standard input.

    Case, punctuation, numbers, names, addresses and code stay as they are.

    For example:

        saccade correct "I recieve a leter form him evry week."
        saccade correct "I recieve a leter." --suggest 3
        saccade correct "I recieve a leter." --format json
        cat draft.txt | saccade correct > mended.txt

    Parameters
    ----------
    texts:
        Texts to correct.
    model:
        A bundled model's name, or a model folder.
    """
    return answer_all(texts, model, options, TASKS["correction"])

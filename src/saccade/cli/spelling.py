"""Commands about letters and sounds: correct, pronounce."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from cyclopts import Parameter

from saccade.cli.asking import answer_all
from saccade.cli.names import ModelName
from saccade.cli.understand import PlainOptions, ReadingOptions
from saccade.pipelines.table import TASKS


@Parameter(name="*")
@dataclass(frozen=True)
class CorrectingOptions(PlainOptions):
    """How to correct."""

    best: Annotated[int, Parameter(name="--suggest")] = 1
    "Number of corrections per text, each with its score."


DEFAULTS = CorrectingOptions()


def correct(*texts: str, model: ModelName = TASKS["correction"].model, options: CorrectingOptions = DEFAULTS) -> int:
    """Correct misspellings: in the arguments, or in each line of standard input.

    Case, punctuation, numbers, names, addresses and code stay as they are.

    For example:

        saccade correct "Did you recieve a leter form him?"
        saccade correct "I recieve a leter." --suggest 3
        saccade correct "I recieve a leter." --format json
        cat draft.txt | saccade correct > mended.txt

    Parameters
    ----------
    texts:
        Texts to correct.
    model:
        Name of a bundled model, or a model folder.
    """
    return answer_all(texts, model, options, TASKS["correction"])


@Parameter(name="*")
@dataclass(frozen=True)
class PronouncingOptions(ReadingOptions):
    """How to pronounce."""

    format: Literal["text", "json", "ipa"] = "text"
    "json: one JSON object per line; ipa: as --ipa."


PRONOUNCING = PronouncingOptions()


def pronounce(
    *texts: str,
    model: ModelName = TASKS["pronunciation"].model,
    ipa: Annotated[bool, Parameter(negative="")] = False,
    options: PronouncingOptions = PRONOUNCING,
) -> int:
    """Print the pronunciation of words or texts: of the arguments, or of each line of standard input.

    For example:

        saccade pronounce knight
        saccade pronounce "the eye jumps" --ipa
        saccade pronounce read --best 3
        saccade pronounce knight --look letters.png

    Parameters
    ----------
    texts:
        Words or texts.
    model:
        Name of a bundled model, or a model folder.
    ipa:
        Print the International Phonetic Alphabet instead of ARPAbet.
    """
    return answer_all(texts, model, replace(options, format="ipa") if ipa else options, TASKS["pronunciation"])

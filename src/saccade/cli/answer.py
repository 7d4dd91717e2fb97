"""Commands that ask a model: translate, run."""

from dataclasses import dataclass
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
class Options(LookingOptions):
    """Options that all verbs with a search share."""

    beam: int | None = None
    "Beam width; 1 is greedy search. Default: the model's setting."
    alpha: float | None = None
    "Length penalty; higher values favour longer texts."
    best: int = 1
    "Number of answers per input, each with its score."
    prefix: str = ""
    "The beginning of the answer."
    temperature: float | None = None
    "Sample at this temperature. Below 1 favours likely tokens, above 1 gives more variety."
    seed: int | None = None
    "Random seed for sampling."
    format: Literal["text", "json"] = "text"
    "json: one JSON object per line."
    exact: Annotated[bool, Parameter(negative="")] = False
    "Compute in fp32 instead of the fastest near-lossless format (see saccade doctor)."
    int8: Annotated[bool, Parameter(negative="")] = False
    "Use 8-bit weights: faster on large models; some words may differ."

    @property
    def how(self) -> "How | None":
        if self.exact and self.int8:
            raise WrongUse("--exact and --int8 exclude each other")
        return "exact" if self.exact else "int8" if self.int8 else None

    def request(self) -> "Request":
        """Checks the options before anything is loaded."""
        if self.beam is not None and self.beam < 1:
            raise WrongUse(f"--beam must be at least 1, not {self.beam}")
        if not 1 <= self.best <= MOST_ANSWERS:
            raise WrongUse(f"--best must be between 1 and {MOST_ANSWERS}, not {self.best}")
        if self.temperature is not None and self.temperature <= 0:
            raise WrongUse(
                f"--temperature must be above 0, not {self.temperature}; leave it out for the likeliest text"
            )
        if self.best > 1 and self.temperature is not None:
            raise WrongUse("--best goes with beam search; leave out --temperature, or change --seed for other draws")
        from saccade.pipelines.pipeline import Request

        return Request(self.beam, self.alpha, self.best, self.prefix, self.temperature, self.seed)


DEFAULTS = Options()


def translate(*texts: str, model: ModelName = TASKS["translation"].model, options: Options = DEFAULTS) -> int:
    """Translate sentences: the arguments, or each line of standard input.

    For example:

        saccade translate "this cat is very large"
        saccade translate "this cat is very large" --look attention.png
        saccade translate "this cat is very large" --prefix "este gato es muy"
        saccade translate "we are eating bread" --best 3 --format json
        cat book.txt | saccade translate > libro.txt

    Parameters
    ----------
    texts:
        Sentences to translate.
    model:
        Name of a bundled model, or a model folder.
    """
    return answer_all(texts, model, options, TASKS["translation"])


def run(model: ModelName, /, *inputs: str, question: str | None = None, options: Options = DEFAULTS) -> int:
    """Run any model: on texts, or on files if it reads pictures or sounds.

    Texts are the arguments, or each line of standard input. Files are the arguments; folders and globs stand for the
    files in them, and - for a file on standard input.

    For example:

        saccade run en-es "good morning"
        saccade run runs/my-model < sentences.txt
        saccade run runs/my-shapes drawings/ "more/*.png" --format json -o answers.jsonl

    Parameters
    ----------
    model:
        Name of a bundled model, or a model folder.
    inputs:
        Texts or files.
    question:
        What to ask about each picture, if the model answers questions.
    """
    return answer_all(inputs, model, options, None, question=question)

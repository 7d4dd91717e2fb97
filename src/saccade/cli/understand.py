"""Commands for encoders: fill, classify, tag."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

from saccade.cli.asking import MOST_ANSWERS, LookingOptions, answer_all
from saccade.cli.names import ModelName
from saccade.cli.output import answers_to
from saccade.cli.progress import progress_bar
from saccade.errors import WrongUse
from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from saccade.pipelines.pipeline import Request
    from saccade.runtime.contract import How


@Parameter(name="*")
@dataclass(frozen=True)
class ReadingOptions(LookingOptions):
    """Options that all verbs with an encoder share."""

    best: int = 1
    "Number of answers per input, each with its probability."
    format: str = "text"
    "Output format."

    @property
    def how(self) -> "How | None":
        return None

    def request(self) -> "Request":
        """Checked here, before anything is loaded."""
        if not 1 <= self.best <= MOST_ANSWERS:
            raise WrongUse(f"--best must be between 1 and {MOST_ANSWERS}, not {self.best}")
        from saccade.pipelines.pipeline import Request

        return Request(best=self.best)


@Parameter(name="*")
@dataclass(frozen=True)
class PlainOptions(ReadingOptions):
    """Answers as text or JSON."""

    format: Literal["text", "json"] = "text"
    "json: one JSON object per line."


@Parameter(name="*")
@dataclass(frozen=True)
class FillingOptions(PlainOptions):
    """Options of fill."""

    best: int = 5
    "Number of answers per input, each with its probability."


@Parameter(name="*")
@dataclass(frozen=True)
class TaggingOptions(ReadingOptions):
    """Options of tag."""

    format: Literal["text", "json", "conllu"] = "text"
    "json: one JSON object per line; conllu: a sentence of CoNLL-U."


PLAIN, FILLING, TAGGING = PlainOptions(), FillingOptions(), TaggingOptions()


def fill(*texts: str, model: ModelName = TASKS["masked"].model, options: FillingOptions = FILLING) -> int:
    """Fill gaps, written [MASK]: in the arguments, or in each line of standard input.

    For example:

        saccade fill "the cat sat on the [MASK]"
        saccade fill "the [MASK] sat on the [MASK]" --best 3 --format json
        saccade fill "the cat sat on the [MASK]" --best 1 --look attention.png

    Parameters
    ----------
    texts:
        Texts with gaps.
    model:
        Name of a bundled model, or a model folder.
    """
    return answer_all(texts, model, options, TASKS["masked"])


def classify(*texts: str, model: ModelName | None = None, options: PlainOptions = PLAIN) -> int:
    """Classify texts: the arguments, or each line of standard input.

    Separate the two texts of a pair by a tab.

    For example:

        saccade train classification reviews.tsv --out reviews
        saccade classify "a film to remember" --model reviews
        saccade classify "a film to remember" --model reviews --best 2
        cut -f 2 new.tsv | saccade classify --model reviews > classes.txt

    Parameters
    ----------
    texts:
        Texts to classify.
    model:
        Folder of a model trained for classification; none is bundled.
    """
    if model is None:
        raise WrongUse(
            "no classifier is bundled: train one on your own table (saccade train classification reviews.csv --out "
            "reviews), then classify with --model reviews"
        )
    return answer_all(texts, model, options, TASKS["classification"])


def tag(
    *texts: str, model: ModelName = TASKS["tagging"].model, file: Path | None = None, options: TaggingOptions = TAGGING
) -> int:
    """Tag the words of sentences: of the arguments, or of each line of standard input.

    For example:

        saccade tag "The cat sat on the mat."
        saccade tag "The cat sat on the mat." --format conllu
        saccade tag --file sentences.conllu > tagged.conllu

    Parameters
    ----------
    texts:
        Sentences to tag.
    model:
        Name of a bundled model, or a model folder.
    file:
        A CoNLL-U file. Its words are tagged as they are; only the tags change in the output.
    """
    if file is None:
        return answer_all(texts, model, options, TASKS["tagging"])
    if texts:
        raise WrongUse("--file brings its own sentences; leave out the others")
    from saccade.data.conllu import read_conllu, retagged
    from saccade.pipelines.load import load
    from saccade.pipelines.tagger import Tagger

    pipeline = load(model)
    if not isinstance(pipeline, Tagger):
        raise WrongUse(f"{model} is no tagger")
    sentences = read_conllu(file, pipeline.column, tagged=False)
    with progress_bar("tagging", quiet=options.quiet) as report:
        tags = pipeline.tag([one.words for one in sentences], [one.spaces for one in sentences], report)
    with answers_to(options.output):
        for sentence, found in zip(sentences, tags, strict=True):
            sys.stdout.write(retagged(sentence, found, pipeline.column))
        sys.stdout.flush()
    return 0

"""Commands that ask what an encoder understood: fill, classify, tag."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from saccade.cli.answer import MOST_ANSWERS, answer_all
from saccade.cli.progress import progress_bar
from saccade.errors import WrongUse
from saccade.tasks.table import TASKS

if TYPE_CHECKING:
    from saccade.decode.packed import How
    from saccade.tasks.asked import Request


@Parameter(name="*")
@dataclass(frozen=True)
class ReadingOptions:
    """How to answer, the same for every verb that only reads."""

    best: int = 1
    "How many answers per input, each with its probability."
    look: Annotated[Path | None, Parameter(show_default=False)] = None
    "Draw where the model looked: FILE.png or FILE.svg, or in the terminal when no file follows."
    layer: int | None = None
    "Layer to draw, counted from 1."
    head: int | None = None
    "Head to draw, counted from 1; by default the mean of all heads."
    format: str = "text"
    "How answers are written."

    @property
    def how(self) -> "How | None":
        return None

    def request(self) -> "Request":
        """Checked here, before anything is loaded."""
        if not 1 <= self.best <= MOST_ANSWERS:
            raise WrongUse(f"--best must be between 1 and {MOST_ANSWERS}, not {self.best}")
        from saccade.tasks.asked import Request

        return Request(best=self.best)


@Parameter(name="*")
@dataclass(frozen=True)
class PlainOptions(ReadingOptions):
    """Answers as text or for machines."""

    format: Literal["text", "json"] = "text"
    "json: one object a line, for machines."


@Parameter(name="*")
@dataclass(frozen=True)
class FillingOptions(PlainOptions):
    """A gap has many answers: some are shown."""

    best: int = 5
    "How many answers per input, each with its probability."


@Parameter(name="*")
@dataclass(frozen=True)
class TaggingOptions(ReadingOptions):
    """Tags have a format of their own."""

    format: Literal["text", "json", "conllu"] = "text"
    "json: one object a line, for machines; conllu: a sentence of CoNLL-U."


PLAIN, FILLING, TAGGING = PlainOptions(), FillingOptions(), TaggingOptions()


def fill(*texts: str, model: str = TASKS["masked"].model, options: FillingOptions = FILLING) -> int:
    """Fill gaps: each argument is a text with [MASK] where a word is missing, or, without arguments, each line of
    standard input.

    For example:

        saccade fill "the cat sat on the [MASK]"
        saccade fill "the [MASK] sat on the [MASK]" --best 3 --format json
        saccade fill "the cat sat on the [MASK]" --best 1 --look attention.png

    Parameters
    ----------
    texts:
        Texts with gaps.
    model:
        A bundled model's name, or a model folder.
    """
    return answer_all(texts, model, options, TASKS["masked"])


def classify(*texts: str, model: str, options: PlainOptions = PLAIN) -> int:
    """Say of what class texts are: each argument is one, or, without arguments, each line of standard input. Two texts
    that belong together have a tab between them.

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
        The folder of a model that was trained on classes or numbers.
    """
    return answer_all(texts, model, options, TASKS["classification"])


def tag(
    *texts: str, model: str = TASKS["tagging"].model, file: Path | None = None, options: TaggingOptions = TAGGING
) -> int:
    """Tag the words of sentences: each argument is one, or, without arguments, each line of standard input.

    For example:

        saccade tag "The cat sat on the mat."
        saccade tag "The cat sat on the mat." --format conllu
        saccade tag --file sentences.conllu > tagged.conllu

    Parameters
    ----------
    texts:
        Sentences to tag.
    model:
        A bundled model's name, or a model folder.
    file:
        A CoNLL-U file, whose words are tagged as they stand there; it comes out with other tags, else the same.
    """
    if file is None:
        return answer_all(texts, model, options, TASKS["tagging"])
    if texts:
        raise WrongUse("--file brings its own sentences; leave out the others")
    from saccade.data.conllu import read_conllu, retagged
    from saccade.tasks.load import load
    from saccade.tasks.tagger import Tagger

    pipeline = load(model)
    if not isinstance(pipeline, Tagger):
        raise WrongUse(f"{model} is no tagger")
    sentences = read_conllu(file, pipeline.column, tagged=False)
    with progress_bar("tagging") as report:
        tags = pipeline.tag([one.words for one in sentences], [one.spaces for one in sentences], report)
    for sentence, found in zip(sentences, tags, strict=True):
        sys.stdout.write(retagged(sentence, found, pipeline.column))
    sys.stdout.flush()
    return 0

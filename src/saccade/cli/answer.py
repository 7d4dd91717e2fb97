"""Commands that ask a model: translate, run, look."""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, cast

from cyclopts import Parameter

from saccade.cli.progress import Bar, progress_bar
from saccade.cli.reading import EMPTIED, KEPT, Line, Lines, checked, on_one_line, standard_input
from saccade.cli.start import load_model, starting
from saccade.errors import UserError, WrongUse
from saccade.pipelines.table import TASKS, TaskRow

if TYPE_CHECKING:
    from saccade.pipelines.pipeline import Answer, Pipeline, Report, Request
    from saccade.pipelines.pronouncer import Pronunciation
    from saccade.pipelines.tagger import Tagged
    from saccade.runtime.contract import How

FIRST_CHUNK, LARGEST_CHUNK = 16, 4096
MOST_ANSWERS = 1000


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
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
    look: Annotated[Path | None, Parameter(show_default=False)] = None
    "Draw the attention weights: into FILE.png or FILE.svg, or in the terminal if no file is given."
    layer: int | None = None
    "Layer to draw, counted from 1."
    head: int | None = None
    "Head to draw, counted from 1. Default: the mean of all heads."
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


class Asking(Protocol):
    """What the options of every verb have."""

    @property
    def best(self) -> int: ...

    @property
    def look(self) -> Path | None: ...

    @property
    def layer(self) -> int | None: ...

    @property
    def head(self) -> int | None: ...

    @property
    def format(self) -> str: ...

    @property
    def how(self) -> "How | None": ...

    def request(self) -> "Request":
        """Checks the options before anything is loaded."""
        ...


DEFAULTS = Options()


def translate(*texts: str, model: str = TASKS["translation"].model, options: Options = DEFAULTS) -> int:
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


def run(model: str, /, *texts: str, options: Options = DEFAULTS) -> int:
    """Run any model: on the arguments, or on each line of standard input.

    For example:

        saccade run en-es "good morning"
        saccade run runs/my-model < sentences.txt

    Parameters
    ----------
    model:
        Name of a bundled model, or a model folder.
    texts:
        Inputs.
    """
    return answer_all(texts, model, options, None)


def look(
    model: str,
    text: str,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    layer: int | None = None,
    head: int | None = None,
    prefix: str = "",
) -> int:
    """Draw the attention weights of a model for one input.

    For example:

        saccade look en-es "this cat is very large" -o attention.png
        saccade look en-es "this cat is very large" --layer 1 --head 3

    Parameters
    ----------
    model:
        Name of a bundled model, or a model folder.
    text:
        The input.
    output:
        FILE.png or FILE.svg. Default: draw in the terminal.
    layer:
        Layer to draw, counted from 1.
    head:
        Head to draw, counted from 1. Default: the mean of all heads.
    prefix:
        The beginning of the answer.
    """
    options = Options(prefix=prefix, look=output or Path("-"), layer=layer, head=head)
    return answer_all((text,), model, options, None)


def answer_all(texts: tuple[str, ...], model: str, options: Asking, row: TaskRow | None) -> int:
    """Answer the arguments, or standard input line by line; 1 if any input could not be answered."""
    _check_look(texts, options)
    task = row or _row_of(model)
    given = [Line(text) for text in checked(texts, task.longest_text)]
    keeps = task.keeps and options.format in ("text", "ipa") and options.best == 1
    lines = None
    if not given:
        if sys.stdin.isatty():
            print("saccade: reading standard input, one text a line; Ctrl-D ends it", file=sys.stderr)
        if keeps and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(newline="", errors="surrogateescape")
        lines = Lines(standard_input(), task.longest_text, KEPT if keeps else EMPTIED)

    with starting():
        request, how = options.request(), options.how
        if row is not None and (found := _row_of(model)) != row:
            raise WrongUse(f"{model} is a model for {found.name}: saccade {found.verb} --model {model}")
    pipeline = load_model(model, how)
    if lines is None:
        return sum(_show(pipeline, given, request, options, keeps=keeps, first=0)) and 1
    from saccade.native.allocator import keep_memory

    keep_memory()  # batch after batch asks for the same large blocks
    # A file can be read at once; small first chunks are for input that is typed or piped.
    failed, number, size = 0, 0, lines.size
    chunk = FIRST_CHUNK if size is None else LARGEST_CHUNK
    # On a terminal the answers themselves show the progress.
    with progress_bar("answering", shares=size is not None, quiet=sys.stdout.isatty()) as bar:
        done = 0
        while taken := lines.take(chunk):
            report = _within(bar, done, lines.taken, size) if size else _counting(bar, number)
            failed += sum(_show(pipeline, taken, request, options, keeps=keeps, first=number, report=report))
            number, done, chunk = number + len(taken), lines.taken, min(4 * chunk, LARGEST_CHUNK)
    return 1 if failed or lines.refused else 0


def _row_of(model: str) -> TaskRow:
    """What a model is for."""
    from saccade.folder import read_config
    from saccade.pipelines.load import model_path, row_named

    return row_named(read_config(model_path(model))["task"])


def _within(bar: Bar, done: int, taken: int, size: int) -> "Report":
    """A report of a chunk's progress as progress through the bytes of its file."""
    return lambda answered, asked: bar(done + (taken - done) * answered // max(asked, 1), size)


def _counting(bar: Bar, number: int) -> "Report":
    """A report for a stream without a known end: how many so far."""
    return lambda answered, _: bar(number + answered, None)


def _show(
    pipeline: "Pipeline[Answer]",
    lines: list[Line],
    request: "Request",
    options: Asking,
    *,
    keeps: bool,
    first: int,
    report: "Report | None" = None,
) -> Iterator[bool]:
    """Print the answers in order; yields for each text whether it failed."""
    from saccade.pipelines.pipeline import unreported

    # Empty lines stay empty, so that output line n answers input line n.
    wanted = {n: line.text for n, line in enumerate(lines, first) if line.text and line.text.strip()}
    answers = iter(pipeline.answer(list(wanted.values()), request, numbers=list(wanted), report=report or unreported))
    for number, line in enumerate(lines, first):
        answer = next(answers) if number in wanted else None
        if isinstance(answer, UserError):
            print(f"saccade: line {number + 1}: {answer}; {KEPT if keeps else EMPTIED}", file=sys.stderr)
        if answer is not None and not isinstance(answer, UserError):
            _print(answer, options, line if keeps else None)
        elif keeps:
            sys.stdout.writelines(line.unchanged())
        else:
            record = {"source": line.text, "text": ""}
            print(json.dumps(record, ensure_ascii=False) if options.format == "json" else "")
        yield isinstance(answer, UserError)
    sys.stdout.flush()


def _print(answer: "Answer", options: Asking, within: Line | None) -> None:
    if within is not None:
        sys.stdout.write(within.around(_text(answer, options)))
    elif options.format == "json":
        print(json.dumps(answer.record(), ensure_ascii=False))
    elif options.format == "conllu":
        print(cast("Tagged", answer).conllu, end="")
    else:
        for one in answer.best:
            text = on_one_line(_text(one, options))
            print(f"{one.score:.4f}\t{text}" if options.best > 1 else text)
    if options.look is not None:
        draw_looks(answer, options.look, options.layer, options.head)


def _text(answer: "Answer", options: Asking) -> str:
    return cast("Pronunciation", answer).ipa if options.format == "ipa" else answer.text


def draw_looks(answer: "Answer", file: Path, layer: int | None, head: int | None) -> None:
    """Into a file, or, where it is "-", in the terminal."""
    if str(file) != "-":
        answer.looks.picture(file, layer=layer, head=head)
        print(f"saccade: drew {file}", file=sys.stderr)
        return
    from rich.console import Console

    from saccade.look.terminal import draw_in_terminal

    draw_in_terminal(answer.looks.alignments(layer, head), Console(highlight=False))


def _check_look(texts: tuple[str, ...], options: Asking) -> None:
    if options.look is None:
        if options.layer is not None or options.head is not None:
            raise WrongUse("--layer and --head say what to draw: add --look")
        return
    if str(options.look) != "-":
        from saccade.look.picture import check_suffix

        check_suffix(options.look)
        if len(texts) != 1:
            raise WrongUse(f"{options.look} can hold one picture, but there are {len(texts) or 'many'} texts; give one")

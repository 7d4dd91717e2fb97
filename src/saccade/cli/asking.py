"""How a model is asked from the command line: inputs in order, an answer a line, where it looked."""

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, cast

from cyclopts import Parameter

from saccade.cli.files import answer_files, expand
from saccade.cli.output import STREAM, WritesAnswers, answers_to, tell
from saccade.cli.progress import Bar, progress_bar
from saccade.cli.reading import EMPTIED, KEPT, Line, Lines, checked, on_one_line, standard_input
from saccade.cli.start import load_model, starting
from saccade.errors import UserError, WrongUse
from saccade.pipelines.table import TaskRow

if TYPE_CHECKING:
    from saccade.pipelines.answer import Answer
    from saccade.pipelines.pipeline import Pipeline, Report, Request
    from saccade.pipelines.pronouncer import Pronunciation
    from saccade.pipelines.tagger import Tagged
    from saccade.pipelines.transcriber import Transcript
    from saccade.pipelines.word_reader import PictureText
    from saccade.runtime.contract import How

FIRST_CHUNK, LARGEST_CHUNK = 16, 4096
MOST_ANSWERS = 1000


@Parameter(name="*")
@dataclass(frozen=True)
class LookingOptions:
    """Options that all verbs share."""

    look: Annotated[Path | None, Parameter(show_default=False)] = None
    "Draw the attention weights: into FILE.png or FILE.svg, or in the terminal if no file is given."
    layer: int | None = None
    "Layer to draw, counted from 1."
    head: int | None = None
    "Head to draw, counted from 1. Default: the mean of all heads."
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    "FILE for the answers. Default: standard output."
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False
    "No progress bar and no notices; errors are still printed."

    @property
    def pages(self) -> tuple[str, ...]:
        """Suffixes of --look beside those of pictures."""
        return ()

    def tune(self, pipeline: "Pipeline[Any, Any]") -> None:
        """Hand over what only this kind of pipeline knows."""

    def keep(self, answer: "Answer") -> None:
        """Do more with an answer than print it."""


class Asking(WritesAnswers, Protocol):
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

    @property
    def pages(self) -> tuple[str, ...]:
        """Suffixes of --look beside those of pictures."""
        ...

    def request(self) -> "Request":
        """Checks the options before anything is loaded."""
        ...

    def tune(self, pipeline: "Pipeline[Any, Any]") -> None:
        """Hand over what only this kind of pipeline knows."""
        ...

    def keep(self, answer: "Answer") -> None:
        """Do more with an answer than print it."""
        ...


def answer_all(
    inputs: tuple[str, ...], model: str, options: Asking, row: TaskRow | None, *, question: str | None = None
) -> int:
    """Answer the arguments, or standard input; 1 if any input could not be answered."""
    _check_look(inputs, options)
    task = row or row_of(model)
    if not task.source.takes_files and question is not None:
        raise WrongUse("--question: this model reads texts; the text is the question")
    with answers_to(options.output):
        if task.source.takes_files:
            return _answer_files(inputs, model, options, task, question)
        texts = tuple("-" if one == STREAM else one for one in inputs)  # among others it is a text
        return _answer_texts(() if inputs == (STREAM,) else texts, model, options, task)


def _answer_files(arguments: tuple[str, ...], model: str, options: Asking, task: TaskRow, question: str | None) -> int:
    with starting():
        request, how = options.request(), options.how
        _insist_on_task(model, task)
    inputs = expand(arguments, task.source, question)
    if options.look is not None and str(options.look) != "-" and len(inputs) > 1:
        raise WrongUse(f"{options.look} can hold one picture, but there are {len(inputs)} files; give one")
    pipeline = load_model(model, how)
    options.tune(pipeline)
    failed = False
    for one, answer in answer_files(pipeline, inputs, request, quiet=options.quiet):
        if isinstance(answer, UserError):
            failed = True
            # An error about a file begins with its name, mostly.
            named = str(answer) if str(answer).startswith(one.name) else f"{one.name}: {answer}"
            print(f"saccade: {named}; {EMPTIED}", file=sys.stderr)
            _print_nothing(one.name, options)
        else:
            for warning in answer.warnings:
                tell(f"{one.name}: {warning}", quiet=options.quiet)
            _print(answer, options, None, whole=len(inputs) == 1)
        sys.stdout.flush()
    return 1 if failed else 0


def _answer_texts(texts: tuple[str, ...], model: str, options: Asking, task: TaskRow) -> int:
    longest = task.source.longest
    given = [Line(text) for text in checked(texts, longest)]
    keeps = task.keeps and options.format in ("text", "ipa") and options.best == 1
    lines = None
    if not given:
        if sys.stdin.isatty():
            tell("reading standard input, one text a line; Ctrl-D ends it", quiet=options.quiet)
        if keeps and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(newline="", errors="surrogateescape")
        lines = Lines(standard_input(), longest, KEPT if keeps else EMPTIED)

    with starting():
        request, how = options.request(), options.how
        _insist_on_task(model, task)
    pipeline = load_model(model, how)
    options.tune(pipeline)
    if lines is None:
        return sum(_show(pipeline, given, request, options, keeps=keeps, first=0)) and 1
    from saccade.native.allocator import keep_memory

    keep_memory()  # batch after batch asks for the same large blocks
    # A file can be read at once; small first chunks are for input that is typed or piped.
    failed, number, size = 0, 0, lines.size
    chunk = FIRST_CHUNK if size is None else LARGEST_CHUNK
    # On a terminal the answers themselves show the progress.
    quiet = options.quiet or sys.stdout.isatty()
    with progress_bar("answering", shares=size is not None, quiet=quiet) as bar:
        done = 0
        while taken := lines.take(chunk):
            report = _within(bar, done, lines.taken, size) if size else _counting(bar, number)
            failed += sum(_show(pipeline, taken, request, options, keeps=keeps, first=number, report=report))
            number, done, chunk = number + len(taken), lines.taken, min(4 * chunk, LARGEST_CHUNK)
    return 1 if failed or lines.refused else 0


def _insist_on_task(model: str, row: TaskRow) -> None:
    if (found := row_of(model)) != row:
        raise WrongUse(f"{model} is a model for {found.name}: saccade {found.verb} --model {model}")


def row_of(model: str) -> TaskRow:
    """What a model is for."""
    from saccade.folder import read_config
    from saccade.pipelines.load import model_path, row_named

    return row_named(read_config(model_path(model)).task)


def _within(bar: Bar, done: int, taken: int, size: int) -> "Report":
    """A report of a chunk's progress as progress through the bytes of its file."""
    return lambda answered, asked: bar(done + (taken - done) * answered // max(asked, 1), size)


def _counting(bar: Bar, number: int) -> "Report":
    """A report for a stream without a known end: how many so far."""
    return lambda answered, _: bar(number + answered, None)


def _show(
    pipeline: "Pipeline[Any, Answer]",
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
            for warning in answer.warnings:
                tell(f"line {number + 1}: {warning}", quiet=options.quiet)
            _print(answer, options, line if keeps else None)
        elif keeps:
            sys.stdout.writelines(line.unchanged())
        else:
            _print_nothing(line.text, options)
        yield isinstance(answer, UserError)
    sys.stdout.flush()


def _print_nothing(source: str | None, options: Asking) -> None:
    """The line of an input without an answer, so that output line n answers input n."""
    print(json.dumps({"source": source, "text": ""}, ensure_ascii=False) if options.format == "json" else "")


def _print(answer: "Answer", options: Asking, within: Line | None, *, whole: bool = False) -> None:
    """`whole`: a text of several lines is printed as it is, not on one line."""
    if within is not None:
        sys.stdout.write(within.around(_text(answer, options)))
    elif options.format == "json":
        print(json.dumps(answer.record(), ensure_ascii=False))
    elif options.format == "conllu":
        print(cast("Tagged", answer).conllu, end="")
    elif options.format == "hocr":
        print(cast("PictureText", answer).hocr)
    elif options.format in ("srt", "vtt"):
        print(getattr(cast("Transcript", answer), options.format))
    else:
        for one in answer.best:
            text = _text(one, options) if whole else on_one_line(_text(one, options))
            print(f"{one.score:.4f}\t{text}" if options.best > 1 else text)
    options.keep(answer)
    if options.look is not None:
        draw_looks(answer, options.look, options.layer, options.head, quiet=options.quiet)


def _text(answer: "Answer", options: Asking) -> str:
    return cast("Pronunciation", answer).ipa if options.format == "ipa" else answer.text


def draw_looks(answer: "Answer", file: Path, layer: int | None, head: int | None, *, quiet: bool = False) -> None:
    """Into a file, or, where it is "-", in the terminal."""
    if str(file) != "-":
        answer.looks.picture(file, layer=layer, head=head, image=answer.image)
        tell(f"drew {file}", quiet=quiet)
        return
    from rich.console import Console

    from saccade.look.terminal import draw_in_terminal

    draw_in_terminal(answer.looks.alignments(layer, head), Console(highlight=False))


def _check_look(inputs: tuple[str, ...], options: Asking) -> None:
    if options.look is None:
        if options.layer is not None or options.head is not None:
            raise WrongUse("--layer and --head say what to draw: add --look")
        return
    if str(options.look) != "-":
        from saccade.look.picture import check_suffix

        check_suffix(options.look, options.pages)
        if len(inputs) != 1:
            many = len(inputs) or "many"
            raise WrongUse(f"{options.look} can hold one picture, but there are {many} texts; give one")

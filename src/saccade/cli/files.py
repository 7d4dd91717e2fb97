"""Files as inputs of a command: folders and globs expand, `-` is standard input; many are answered in a stream."""

import glob
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.cli.output import STREAM
from saccade.cli.progress import progress_bar
from saccade.errors import UserError, WrongUse

if TYPE_CHECKING:
    from saccade.pipelines.answer import Answer
    from saccade.pipelines.pipeline import Pipeline, Request
    from saccade.sources.source import Source

FIRST_CHUNK, LARGEST_CHUNK = 8, 64


@dataclass(frozen=True)
class FileInput:
    """An input of a command, as a source reads it."""

    name: str
    raw: Any


def expand(arguments: tuple[str, ...], source: "Source[Any, Any]", question: str | None) -> list[FileInput]:
    """The inputs that the arguments mean, in order; without arguments standard input."""
    if question is not None and not source.asks:
        raise WrongUse(f"--question: this model reads a {source.kind}, and no question")
    found = []
    for argument in arguments or (STREAM,):
        name, tab, asked = argument.partition("\t") if source.asks else (argument, "", "")
        text = asked if tab else question
        if source.asks and text is None:
            raise WrongUse('this model answers questions about pictures: add --question "…"')
        for one in _files(name, source.suffixes):
            raw: Any = sys.stdin.buffer.read(source.largest_file + 1) if one == STREAM else one
            found.append(FileInput("-" if one == STREAM else one, (raw, text) if source.asks else raw))
    return found


def _files(argument: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """A file as it is, be it there or not; a folder's files of the right kind; what a glob matches."""
    if argument != STREAM and os.path.isdir(argument):
        inside = sorted(_inside(argument, suffixes))
        if not inside:
            raise UserError(f"{argument}: no file in it ends in {', '.join(suffixes)}")
        yield from inside
    elif glob.has_magic(argument) and not os.path.exists(argument):
        matching = sorted(name for name in glob.glob(argument, recursive=True) if not os.path.isdir(name))
        if not matching:
            raise UserError(f"{argument}: no file matches it")
        yield from matching
    else:
        yield argument


def _inside(folder: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Also in folders within it; what begins with a dot is hidden."""
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if Path(name).suffix.lower() in suffixes and not name.startswith("."):
                yield os.path.join(here, name)


def answer_files(
    pipeline: "Pipeline[Any, Answer]", inputs: list[FileInput], request: "Request", *, quiet: bool
) -> Iterator[tuple[FileInput, "Answer | UserError"]]:
    """Every input and its answer, or why there is none, in order, as they come."""
    done, chunk = 0, FIRST_CHUNK
    with progress_bar("answering", quiet=quiet or len(inputs) == 1 or sys.stdout.isatty()) as bar:
        while done < len(inputs):
            part = inputs[done : done + chunk]

            def report(answered: int, _: int, before: int = done) -> None:
                bar(before + answered, len(inputs))

            numbers = range(done, done + len(part))
            answers = pipeline.answer([one.raw for one in part], request, numbers=numbers, report=report)
            yield from zip(part, answers, strict=True)
            done, chunk = done + len(part), min(2 * chunk, LARGEST_CHUNK)
            bar(done, len(inputs))

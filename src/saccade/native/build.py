"""Compiling the kernels for this machine, once: the library is kept in the private cache and checked before use."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from saccade import cache

NOTICE = "saccade: compiling kernels for this processor, once (about 10 s)"
PATIENCE = 2.0
"""Seconds of silence before the notice."""


def library_file(name: str, source: bytes, flags: Sequence[str], *, afresh: bool = False) -> Path:
    """The compiled library of this name; an OSError or a SubprocessError says why there is none.

    `afresh`: not the one that is there, which could not be loaded.
    """
    if not afresh and (path := cache.path_of(name)):
        return path
    if reason := cache.why_not():
        raise OSError(reason)
    with _told_if_slow(), cache.lock(name):
        # Another process may have built it while this one waited.
        if not afresh and (path := cache.path_of(name)):
            return path
        return cache.write(name, _compiled(source, flags))


@contextmanager
def _told_if_slow() -> Iterator[None]:
    """Say what takes so long, also to whom another process's compiler makes wait; --quiet raises the logger's level."""
    # Not at the top: needed once on a machine, and every command would import it.
    import logging
    from threading import Timer

    # A warning, since Python shows these on stderr where nobody set up logging.
    timer = Timer(PATIENCE, logging.getLogger(__name__).warning, [NOTICE])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def openmp() -> list[str]:
    """The OpenMP library PyTorch brought along, whatever its name, so that both share one pool of threads."""
    found = find_spec("torch")  # where it is, without importing it
    homes = found.submodule_search_locations if found else None
    brought = sorted(path for home in homes or [] for path in (Path(home) / "lib").glob("libgomp*.so*"))
    return [str(path) for path in brought[:1]] or ["-fopenmp"]


def processor() -> bytes:
    """What the processor can do: a cache may be shared between unlike machines."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
        return next((line for line in lines if line.startswith(b"flags")), b"")
    except OSError:
        return b""


def _compiled(source: bytes, flags: Sequence[str]) -> bytes:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    sanitized = [flag for flag in flags if flag.startswith("-fsanitize")]
    with tempfile.TemporaryDirectory() as folder:
        compiled, linked = os.path.join(folder, "kernels.o"), Path(folder) / "kernels.so"
        for command in (
            [compiler, *flags, "-x", "c", "-c", "-", "-o", compiled],
            [compiler, "-shared", compiled, "-o", str(linked), *openmp(), "-lm", *sanitized],
        ):
            subprocess.run(command, input=source, check=True, capture_output=True, timeout=120)
        return linked.read_bytes()

"""The compiled library: built once, checked before it is loaded, built again or done without when it is not right."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from saccade import cache, native
from saccade.native.build import NOTICE
from tiny import CUT_OFF, write_tiny_model

pytestmark = pytest.mark.skipif(native.kernels() is None, reason=f"no C kernels: {native.why_not()}")
NAME = f"kernels-{native.identity()}.so"
CODE = """
from saccade import native
print(native.why_not() or "there")
"""


def start(home: Path, path: str = "/nowhere") -> subprocess.Popen[str]:
    """Another process that looks for the kernels; without a compiler unless `path` leads to one."""
    environment = {"XDG_CACHE_HOME": str(home), "PATH": path, "PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", CODE], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    return out.strip()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A private cache with a good library in it."""
    good = cache.path_of(NAME)
    assert good is not None
    (tmp_path / "saccade").mkdir(mode=0o700)
    shutil.copy(good, tmp_path / "saccade" / NAME)
    return tmp_path


@pytest.fixture
def counted(tmp_path: Path) -> tuple[str, Callable[[], int]]:
    """A search path with a compiler that writes down each use, and how often it made a library."""
    compiler, log = shutil.which("cc") or shutil.which("gcc"), tmp_path / "log"
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "cc"
    script.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {compiler} "$@"\n')
    script.chmod(0o755)
    return f"{script.parent}:{os.environ['PATH']}", lambda: log.read_text().count("-shared") if log.exists() else 0


def test_a_good_library_needs_no_compiler(home: Path) -> None:
    assert said(start(home)) == "there"


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def strip_symbols(file: Path) -> None:
    """A library, but not ours: without the seal."""
    shutil.copyfile(next(Path("/lib").rglob("libm.so.6")), file)


def swap(file: Path) -> None:
    """A file of the cache under another's name."""
    content = file.read_bytes()
    file.write_bytes(content[:4096] + bytes(4096) + content[8192:])


def link(file: Path) -> None:
    """To a library that would do."""
    shutil.move(file, file.parent.parent / "elsewhere.so")
    file.symlink_to(file.parent.parent / "elsewhere.so")


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("damage", [truncate, empty, strip_symbols, swap, link, pipe, make_folder])
def test_a_library_that_is_not_right_is_not_loaded(damage: Callable[[Path], None], home: Path) -> None:
    """Without a compiler all that can be done is to say so, and to go on without."""
    damage(home / "saccade" / NAME)
    assert said(start(home)) == "no C compiler"


def test_a_damaged_library_is_built_again_once(home: Path, counted: tuple[str, Callable[[], int]]) -> None:
    path, builds = counted
    truncate(home / "saccade" / NAME)
    assert said(start(home, path)) == "there"
    assert said(start(home, path)) == "there"
    assert builds() == 1


def test_a_sealed_library_without_functions_is_built_again(
    home: Path, counted: tuple[str, Callable[[], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, builds = counted
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    cache.write(NAME, next(Path("/lib").rglob("libm.so.6")).read_bytes())
    assert said(start(home, path)) == "there"
    assert builds() == 1


def test_eight_first_uses_at_once_compile_once(tmp_path: Path, counted: tuple[str, Callable[[], int]]) -> None:
    path, builds = counted
    assert [said(process) for process in [start(tmp_path, path) for _ in range(8)]] == ["there"] * 8
    assert builds() == 1


def test_a_library_in_a_folder_others_can_write_to_is_not_loaded(home: Path) -> None:
    """Whoever could write there could write a proper seal."""
    (home / "saccade").chmod(0o777)
    assert "others may write" in said(start(home, os.environ["PATH"]))


def test_a_linked_folder_is_not_used(home: Path) -> None:
    (home / "saccade").rename(home / "elsewhere")
    (home / "saccade").symlink_to(home / "elsewhere")
    assert "is a link" in said(start(home, os.environ["PATH"]))


def test_without_a_cache_the_reason_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in said(start(tmp_path / "file", os.environ["PATH"]))


SLOW = """
import sys
from saccade.native import build
build.PATIENCE = float(sys.argv[1])
from saccade.cli.main import main
main(["translate", "one", "--model", sys.argv[2], *sys.argv[3:]])
"""


@pytest.mark.parametrize(
    ("patience", "options", "notice"), [(0.0, [], True), (0.0, ["--quiet"], False), (60.0, [], False)]
)
def test_a_compiler_that_takes_long_is_told_of_on_stderr(
    patience: float, options: list[str], notice: bool, tmp_path: Path
) -> None:
    script = tmp_path / "bin" / "cc"
    script.parent.mkdir()
    # It compiles nothing, and fails a moment later: the model answers in plain NumPy.
    script.write_text("#!/bin/sh\n/bin/sleep 0.3\nexit 1\n")
    script.chmod(0o755)
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": str(script.parent), "PYTHONPATH": ":".join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", SLOW, str(patience), str(write_tiny_model(tmp_path / "tiny")), *options],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0
    assert CUT_OFF.sub("", ended.stderr) == f"{NOTICE}\n" * notice
    assert ended.stdout.count("\n") == 1

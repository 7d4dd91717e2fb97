"""The private cache: what is kept is found again whole or not at all, and nothing others could have written is used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from saccade import cache, native
from tiny import ask


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the cache will be made in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "saccade"


def test_what_is_kept_is_found_again(home: Path) -> None:
    assert cache.read("numbers") is None
    assert not home.exists()  # looking makes nothing
    path = cache.write("numbers", b"one two")
    assert cache.read("numbers") == b"one two"
    assert cache.path_of("numbers") == path == home / "numbers"
    assert path.read_bytes().startswith(b"one two")
    cache.write("numbers", b"three")
    assert cache.read("numbers") == b"three"
    cache.write("empty", b"")
    assert cache.read("empty") == b""


def test_the_folder_and_its_files_are_private(home: Path) -> None:
    path = cache.write("numbers", b"one")
    assert home.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o077 == 0
    home.chmod(0o755)  # as other programs make folders: nobody could write, but it is made private
    assert cache.read("numbers") == b"one"
    assert home.stat().st_mode & 0o777 == 0o700


def damaged(path: Path) -> dict[str, bytes]:
    content = path.read_bytes()
    middle = len(content) // 2
    return {
        "cut": content[:-1],
        "cut in half": content[:middle],
        "emptied": b"",
        "longer": content + b"\0",
        "one bit": content[:9] + bytes([content[9] ^ 1]) + content[10:],
        "zeros at the end": content[:middle] + bytes(len(content) - middle),
        "no seal": b"content without any seal, but long enough to hold one" * 3,
    }


@pytest.mark.parametrize("how", ["cut", "cut in half", "emptied", "longer", "one bit", "zeros at the end", "no seal"])
def test_a_damaged_file_is_as_good_as_none_and_can_be_replaced(how: str) -> None:
    path = cache.write("numbers", bytes(range(256)))
    path.write_bytes(damaged(path)[how])
    assert cache.read("numbers") is None
    assert cache.path_of("numbers") is None
    assert cache.map_file("numbers") is None
    cache.write("numbers", b"new")
    assert cache.read("numbers") == b"new"


def test_one_file_is_not_taken_for_another(home: Path) -> None:
    cache.write("one", b"1")
    (home / "one").rename(home / "two")
    assert cache.read("two") is None


def test_links_pipes_and_folders_are_not_read_and_links_are_not_written_through(home: Path, tmp_path: Path) -> None:
    cache.write("real", b"content")
    outside = tmp_path / "outside"
    outside.write_bytes((home / "real").read_bytes())
    (home / "real").unlink()
    (home / "real").symlink_to(outside)
    assert cache.read("real") is None
    cache.write("real", b"new")
    assert cache.read("real") == b"new"
    assert not (home / "real").is_symlink()
    assert outside.read_bytes().startswith(b"content")
    os.mkfifo(home / "pipe")
    (home / "folder").mkdir()
    (home / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "folder", "endless"):
        assert [cache.read(name), cache.map_file(name), cache.path_of(name)] == [None] * 3
    with pytest.raises(OSError, match="folder"):
        cache.write("folder", b"")
    with cache.lock("real"):
        pass
    (home / "linked.lock").symlink_to(outside)
    with cache.lock("linked") as held:
        assert not held


def test_a_file_that_others_can_write_to_is_not_read(home: Path) -> None:
    cache.write("numbers", b"one").chmod(0o666)
    assert cache.read("numbers") is None


def test_a_folder_that_others_can_write_to_is_refused_whatever_is_in_it(home: Path) -> None:
    cache.write("planted", b"with a proper seal")
    home.chmod(0o777)
    assert [cache.read("planted"), cache.path_of("planted"), cache.folder()] == [None] * 3
    assert "others may write" in cache.why_not()
    with pytest.raises(OSError, match="others may write"):
        cache.write("numbers", b"")
    assert cache.listing() == []


def test_a_linked_folder_is_refused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    home.symlink_to(tmp_path / "elsewhere")
    assert cache.folder() is None
    assert "is a link" in cache.why_not()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_folder_of_another_user_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("numbers", b"one")
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    assert cache.read("numbers") is None
    assert "another user" in cache.why_not()


def test_a_folder_that_anyone_may_replace_is_refused(home: Path) -> None:
    cache.write("numbers", b"one")
    home.parent.chmod(0o777)
    assert "may replace" in cache.why_not()
    home.parent.chmod(0o1777)  # as /tmp is: only the owner may rename
    assert cache.read("numbers") == b"one"


def test_without_a_home_the_reason_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.parent.joinpath("file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.parent / "file"))
    assert cache.folder() is None
    assert str(home.parent / "file") in cache.why_not()


def test_a_large_file_is_written_in_pieces_and_mapped() -> None:
    numbers = np.arange(1_000_000, dtype=np.float32)
    with cache.writing("weights") as file:
        for piece in np.split(numbers, 4):
            file.write(piece.tobytes())
    view = cache.map_file("weights")
    assert view is not None
    assert view.readonly
    assert np.array_equal(np.frombuffer(view, np.float32), numbers)
    assert np.frombuffer(view, np.float32).ctypes.data % 4096 == 0


def test_the_quick_check_finds_changed_ends_and_the_whole_one_every_bit(home: Path) -> None:
    path = cache.write("weights", bytes(4 * 2**20))
    with path.open("r+b") as file:
        file.seek(2 * 2**20)
        file.write(b"\1")
    assert cache.map_file("weights", whole=True) is None
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\1")
    assert cache.map_file("weights") is None


def test_a_file_whose_writing_failed_leaves_the_old_one_and_nothing_else(home: Path) -> None:
    cache.write("numbers", b"old")
    with pytest.raises(ZeroDivisionError), cache.writing("numbers") as file:
        file.write(bytes([1 // file.write(b"")]))
    assert cache.read("numbers") == b"old"
    assert [entry.name for entry in home.iterdir()] == ["numbers"]


def test_what_killed_writers_left_is_deleted_a_day_later(home: Path) -> None:
    cache.write("numbers", b"one")
    old, new = home / f"{cache.ASIDE}old", home / f"{cache.ASIDE}new"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.write("numbers", b"two")
    assert not old.exists()
    assert new.exists()


def test_what_was_not_used_for_longest_makes_room(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate("abc"):
        os.utime(cache.write(name, bytes(1000)), (number, number))
    assert cache.read("a") is not None  # used now, though it is the oldest
    monkeypatch.setattr(cache, "LIMIT", 3 * 1080)
    cache.write("d", bytes(1000))
    assert [file.name for file in cache.listing()] == ["a", "c", "d"]
    cache.write("larger than all", bytes(10_000))
    assert [file.name for file in cache.listing()] == ["larger than all"]


@pytest.mark.parametrize("name", ["", "../numbers", ".hidden", "a/b"])
def test_names_stay_in_the_folder(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        cache.write(name, b"")


def test_all_of_it_is_listed_and_cleared(home: Path, tmp_path: Path) -> None:
    assert cache.listing() == []
    assert cache.clear() == 0
    cache.write("b", b"22")
    cache.write("a", b"1")
    with cache.lock("a"):
        pass
    (tmp_path / "outside").write_text("stays")
    (home / "link").symlink_to(tmp_path / "outside")
    (home / "left").mkdir()
    found = cache.listing()
    assert [file.name for file in found] == ["a", "b"]
    assert cache.clear() == sum(file.bytes for file in found)
    assert list(home.iterdir()) == []
    assert (tmp_path / "outside").read_text() == "stays"


def test_a_lock_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    """Each reads a number and writes it back one larger: without the lock, some would be lost."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    code = """
import sys
from pathlib import Path
from saccade import cache
counter = Path(sys.argv[1])
for _ in range(20):
    with cache.lock("counter") as held:
        assert held
        counter.write_text(str(int(counter.read_text()) + 1))
"""
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    started = [subprocess.Popen([sys.executable, "-c", code, str(counter)], env=environment) for _ in range(4)]
    assert [process.wait() for process in started] == [0] * 4
    assert counter.read_text() == "80"


def test_the_command_shows_and_deletes(home: Path) -> None:
    assert ask("cache").out == f"0 files, 0.0 kB, in {home}\n"
    assert not home.exists()
    cache.write("kernels-1.so", bytes(2_000_000))
    cache.write("other", b"")
    said = ask("cache").out
    assert "2.0 MB  kernels-1.so  C kernels" in said
    assert f"2 files, 2.0 MB, in {home}" in said
    found = json.loads(ask("cache", "--format", "json").out)
    assert [file["name"] for file in found["files"]] == ["kernels-1.so", "other"]
    assert ask("cache", "--clear").out == f"deleted 2 files, 2.0 MB, in {home}\n"
    assert list(home.iterdir()) == []


def test_the_commands_say_why_a_cache_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_load", lambda: "not asked")  # what is found here would be remembered
    home.mkdir()
    home.chmod(0o777)
    assert "others may write" in ask("cache").out
    assert "others may write" in ask("doctor").out
    said = ask("cache", "--clear")
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert "others may write" in said.err

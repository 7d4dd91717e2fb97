"""What can be wrong with a model folder or a cache: by accident, or by intent."""

import hashlib
import json
import os
import random
import shutil
import stat
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from hostile import HEADERS
from saccade import cache, native
from saccade.folder import digest_of

Change = Callable[[Path, random.Random], None]
VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 2, 2**63, 10**30, 0.5, -0.0, 1e308),
    *(
        float("nan"),
        float("inf"),
        "",
        "x",
        "x" * 100_000,
        "\0",
        "\ud800",
        "../../etc/passwd",
        "/dev/zero",
        [],
        {},
        [[]],
    ),
    *([0] * 1000, {"a": {"b": {}}}, ["x"], {"kind": "transformer"}),
)


def mutate_folder(folder: Path, chance: random.Random, *, digested: bool) -> str:
    """Change one to three things about a folder; what was done. `digested`: then make all its digests right."""
    done = []
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        file = folder / chance.choice(["config.json", "tokenizer.json", "model.safetensors"] * 4 + ["README.md"])
        kinds = [*ACCIDENTS, *(TABLES * 3 if file.suffix == ".json" else WEIGHTS * 2)]
        if not digested:
            kinds += PLACES
        change = chance.choice(kinds)
        if file.is_file() and file.stat().st_size > 8:
            change(file, chance)
            done.append(f"{change.__name__} {file.name}")
    if digested:
        restore_digests(folder)
    return ", ".join(done) + (" (new digests)" if digested else "")


def restore_digests(folder: Path) -> None:
    """As someone would who wants to be believed."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        for name in ("tokenizer.json", "model.safetensors"):
            config["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        config["sha256"]["config.json"] = digest_of(config)
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # it is no config any more


# Bytes


def cut(file: Path, chance: random.Random) -> None:
    os.truncate(file, chance.randrange(file.stat().st_size))


def flip_bits(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 1, 10, 1000])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def clear_a_part(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    start = chance.randrange(len(content))
    part = content[start : start + 4096]
    content[start : start + 4096] = bytes(len(part))
    file.write_bytes(content)


def repeat_a_part(file: Path, chance: random.Random) -> None:
    content = file.read_bytes()
    start = chance.randrange(len(content))
    file.write_bytes(content[:start] + content[start : start + 500] * chance.choice([2, 100]) + content[start:])


def empty(file: Path, chance: random.Random) -> None:
    file.write_bytes(b"")


def append(file: Path, chance: random.Random) -> None:
    file.write_bytes(file.read_bytes() + chance.randbytes(chance.choice([1, 100, 10_000])))


def replace_by_noise(file: Path, chance: random.Random) -> None:
    file.write_bytes(chance.randbytes(1000))


def swap_for_another(file: Path, chance: random.Random) -> None:
    shutil.copyfile(chance.choice([one for one in file.parent.iterdir() if one.is_file()]), file.with_name("aside"))
    file.with_name("aside").rename(file)


ACCIDENTS: list[Change] = [
    *(cut, flip_bits, clear_a_part, repeat_a_part, empty, append, replace_by_noise, swap_for_another),
]


# What stands in the place of the file


def delete(file: Path, chance: random.Random) -> None:
    file.unlink()


def make_folder(file: Path, chance: random.Random) -> None:
    file.unlink()
    file.mkdir()


def make_pipe(file: Path, chance: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def link_away(file: Path, chance: random.Random) -> None:
    file.unlink()
    file.symlink_to(
        chance.choice(["/dev/zero", "/dev/null", "/dev/stdin", "/proc/self/mem", "/nowhere", file.name, "."])
    )


PLACES: list[Change] = [delete, make_folder, make_pipe, link_away]


# JSON


def _places(value: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    """Every place in a table where a value stands: what holds it, and its key or number; of long ones the beginning."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list) and depth < 12:
        keys = list(value)[:50] + list(value)[-5:] if isinstance(value, dict) else list(range(len(value)))[:20]
        for key in keys:
            found.append((value, key))
            found += _places(value[key], depth + 1)
    return found


def _changed(change: Callable[[Any, Any, Any, random.Random], None], file: Path, chance: random.Random) -> None:
    try:
        table = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return
    if places := _places(table):
        holder, key = chance.choice(places)
        change(table, holder, key, chance)
        file.write_text(json.dumps(table), encoding="utf-8")


def _set(table: Any, holder: Any, key: Any, chance: random.Random) -> None:
    holder[key] = deepcopy(chance.choice(VALUES))


def _remove(table: Any, holder: Any, key: Any, chance: random.Random) -> None:
    del holder[key]


def _rename(table: Any, holder: Any, key: Any, chance: random.Random) -> None:
    if isinstance(holder, dict):
        holder[chance.choice(["x", "", key + "x", key[:-1], "kind"])] = holder.pop(key)


def _copy(table: Any, holder: Any, key: Any, chance: random.Random) -> None:
    other, there = chance.choice(_places(table))
    holder[key] = json.loads(json.dumps(other[there]))


def _nest(table: Any, holder: Any, key: Any, chance: random.Random) -> None:
    for _ in range(chance.choice([5, 40, 400])):
        holder[key] = chance.choice([[holder[key]], {"a": holder[key]}])


def set_a_value(file: Path, chance: random.Random) -> None:
    _changed(_set, file, chance)


def remove_a_value(file: Path, chance: random.Random) -> None:
    _changed(_remove, file, chance)


def rename_a_key(file: Path, chance: random.Random) -> None:
    _changed(_rename, file, chance)


def copy_a_value(file: Path, chance: random.Random) -> None:
    _changed(_copy, file, chance)


def nest_a_value(file: Path, chance: random.Random) -> None:
    _changed(_nest, file, chance)


TABLES: list[Change] = [set_a_value, set_a_value, remove_a_value, rename_a_key, copy_a_value, nest_a_value]


# Weights


def craft_a_header(file: Path, chance: random.Random) -> None:
    file.write_bytes(HEADERS[chance.choice(sorted(HEADERS))])


def change_the_header(file: Path, chance: random.Random) -> None:
    """Its own names, types, shapes and offsets, one of them changed."""
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
        _set(header, *chance.choice(_places(header)), chance)
    except (ValueError, RecursionError, IndexError, TypeError):
        return
    changed = json.dumps(header).encode()
    file.write_bytes(len(changed).to_bytes(8, "little") + changed + content[8 + length :])


def set_bad_numbers(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    start = chance.randrange(len(content) // 2, len(content))
    content[start : start + 4] = chance.choice([b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\x7f\x7f"])
    file.write_bytes(content)


WEIGHTS: list[Change] = [craft_a_header, change_the_header, set_bad_numbers]


# Caches


def good_cache(home: Path) -> Path:
    """A cache with the kernels of this machine, and beside it a compiler that copies them."""
    library = cache.path_of(f"kernels-{native.identity()}.so")
    if native.kernels() is None or library is None:
        raise RuntimeError(f"no C kernels: {native.why_not()}")
    (home / "saccade").mkdir(parents=True, mode=0o700)
    (home / "saccade").chmod(0o700)
    shutil.copy(library, home / "saccade")
    (home / "bin").mkdir()
    compiler = home / "bin" / "cc"
    compiler.write_text(
        "#!/bin/sh\n/bin/cat > /dev/null\nwhile [ $# -gt 0 ]; do\n"
        f'  if [ "$1" = -o ]; then exec /bin/cp {library} "$2"; fi\n  shift\ndone\n'
    )
    compiler.chmod(0o755)
    return home


def _any_file(folder: Path, chance: random.Random) -> Path:
    return chance.choice(sorted(one for one in folder.iterdir() if one.is_file() and one.suffix != ".lock"))


def damage_a_file(folder: Path, chance: random.Random) -> None:
    chance.choice(ACCIDENTS)(_any_file(folder, chance), chance)


def damage_all_files(folder: Path, chance: random.Random) -> None:
    for file in sorted(folder.iterdir()):
        if file.stat().st_size > 8:
            chance.choice(ACCIDENTS)(file, chance)


def misplace_a_file(folder: Path, chance: random.Random) -> None:
    chance.choice(PLACES)(_any_file(folder, chance), chance)


def link_to_a_good_file(folder: Path, chance: random.Random) -> None:
    file = _any_file(folder, chance)
    file.rename(folder.parent / "elsewhere")
    file.symlink_to(folder.parent / "elsewhere")


def open_a_file_to_others(folder: Path, chance: random.Random) -> None:
    _any_file(folder, chance).chmod(chance.choice([0o666, 0o622, 0o660]))


def open_the_folder_to_others(folder: Path, chance: random.Random) -> None:
    folder.chmod(chance.choice([0o777, 0o770, 0o1777, 0o702]))


def link_the_folder(folder: Path, chance: random.Random) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")


MAKERS: list[Callable[[Path], None]] = [Path.touch, os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")]
"""What may stand where it should not."""


def replace_the_folder(folder: Path, chance: random.Random) -> None:
    shutil.rmtree(folder)
    chance.choice(MAKERS)(folder)


def give_the_folder_away(folder: Path, chance: random.Random) -> None:
    if os.geteuid() == 0:
        os.chown(folder, 12345, 12345)


def block_the_lock(folder: Path, chance: random.Random) -> None:
    for file in sorted(folder.iterdir()):
        lock = folder / f"{file.name}.lock"
        if not file.name.endswith(".lock") and not lock.exists():
            chance.choice(MAKERS)(lock)
    damage_a_file(folder, chance)


def swap_files(folder: Path, chance: random.Random) -> None:
    one, other = _any_file(folder, chance), _any_file(folder, chance)
    one.rename(folder / "aside")
    if other.exists():
        other.rename(one)
    (folder / "aside").rename(other)


def take_rights(folder: Path, chance: random.Random) -> None:
    chance.choice([folder, _any_file(folder, chance)]).chmod(stat.S_IRUSR)


def plant_a_sealed_file(folder: Path, chance: random.Random) -> None:
    """Another library, or noise, with a proper seal: what an earlier version or another program of ours might leave."""
    name, before = _any_file(folder, chance).name, os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder.parent)
    try:
        library = next(Path("/lib").rglob("libm.so.6")).read_bytes()
        cache.write(name, chance.choice([library, chance.randbytes(5000), b""]))
    finally:
        del os.environ["XDG_CACHE_HOME"]
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


CACHE_FAULTS: list[Change] = [
    *(damage_a_file, damage_a_file, damage_a_file, damage_all_files, misplace_a_file, misplace_a_file),
    *(link_to_a_good_file, open_a_file_to_others, open_the_folder_to_others, link_the_folder, replace_the_folder),
    *(give_the_folder_away, block_the_lock, swap_files, take_rights),
    *(plant_a_sealed_file, plant_a_sealed_file),
]

"""Files made to harm: devices, pipes, deep JSON, tokenizers of absurd ids, each refused in one line before it does."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostile import insist_one_line
from saccade import files
from saccade.errors import UserError
from saccade.files import DEEPEST, parse_json, read_file
from saccade.folder import digest_of, read_config, read_folder
from saccade.tokens import vocabulary
from saccade.tokens.vocabulary import read_vocabulary
from tiny import ask, write_tiny_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "model")


def link_to_zeros(file: Path) -> None:
    file.symlink_to("/dev/zero")


def bind_socket(file: Path) -> None:
    os.chdir(file.parent)  # a socket's whole path may have 107 bytes only
    socket.socket(socket.AF_UNIX).bind(file.name)


KINDS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "device": (link_to_zeros, "a device, not a file"),
    "pipe": (os.mkfifo, "a pipe, not a file"),
    "folder": (Path.mkdir, "a folder, not a file"),
    "loop": (lambda file: file.symlink_to(file), "model"),
    "link to nothing": (lambda file: file.symlink_to("nowhere"), "model"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_only_regular_files_of_a_model_are_read(model: Path, kind: str, name: str) -> None:
    make, complaint = KINDS[kind]
    (model / name).unlink()
    make(model / name)
    with pytest.raises(UserError, match=complaint) as caught:
        read_folder(model)
    insist_one_line(caught.value)
    said = ask("run", model, "one")
    assert said.code == 1
    assert len(said.err.splitlines()) == 1


def test_a_socket_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bind_socket(tmp_path / "socket")
    with pytest.raises(UserError):
        read_file(tmp_path / "socket", 10)


def test_a_link_to_a_file_is_read(model: Path, tmp_path: Path) -> None:
    """Folders of downloaded models are full of links."""
    for file in list(model.iterdir()):
        file.rename(tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    assert read_folder(model).config.task == "translation"


@pytest.mark.parametrize("size", [0, 1, 9, 10])
def test_a_file_is_read_whole(tmp_path: Path, size: int) -> None:
    (tmp_path / "file").write_bytes(b"x" * size)
    assert read_file(tmp_path / "file", 10) == b"x" * size


def test_a_file_that_says_it_is_small_is_still_read_to_the_limit_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 11)
    with pytest.raises(UserError, match="at most 10 are read"):
        read_file(tmp_path / "file", 10)
    endless = Path("/proc/self/maps")  # its size is said to be 0
    if endless.exists():
        assert len(read_file(endless, 2**24)) > 100
        with pytest.raises(UserError, match="more than 100 bytes"):
            read_file(endless, 100)


def nested(depth: int) -> str:
    return '{"a": ' * depth + "1" + "}" * depth


def test_json_is_read_as_deep_as_ours_is_and_no_deeper() -> None:
    assert parse_json(nested(DEEPEST), Path("file"))["a"]
    for depth in (DEEPEST + 1, 200, 986, 100_000):
        with pytest.raises(UserError, match=f"file: not valid JSON: nested more than {DEEPEST} deep"):
            parse_json(nested(depth), Path("file"))


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(UserError, match="twice"):
        parse_json('{"a": 1, "b": {"c": 1, "c": 2}}', Path("file"))


@pytest.mark.parametrize("depth", [100, 986, 2000])
def test_a_deep_config_is_refused_in_a_clear_line(model: Path, depth: int) -> None:
    file = model / "config.json"
    config = json.loads(file.read_text("utf-8"))
    deep = json.dumps(config)[:-1] + f', "extra": {nested(depth)}}}'
    file.write_text(deep, encoding="utf-8")
    with pytest.raises(UserError, match="nested more than"):
        read_config(model)
    said = ask("run", model, "one")
    assert (said.code, len(said.err.splitlines())) == (1, 1)
    assert "nested more than" in said.err


def set_id(value: Any) -> Callable[[dict[str, Any]], None]:
    def craft(table: dict[str, Any]) -> None:
        words = table["model"]["vocab"]
        words[list(words)[-1]] = value

    return craft


CRAFTED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "id of 32 bits": (set_id(4294967294), "do not have the ids"),
    "id of 64 bits": (set_id(2**63), "do not have the ids"),
    "id of many bits": (set_id(2**4000), "do not have the ids"),
    "id one too high": (lambda table: table["model"]["vocab"].update(zz=len(table["model"]["vocab"]) + 1), "ids"),
    "negative id": (set_id(-1), "do not have the ids"),
    "fractional id": (set_id(1.0), "do not have the ids"),
    "true": (set_id(True), "do not have the ids"),
    "id twice": (set_id(5), "do not have the ids"),
    "added token of 32 bits": (lambda table: table["added_tokens"][0].update(id=4294967294), "id 4294967294"),
    "added token without id": (lambda table: table["added_tokens"][0].pop("id"), "id None"),
    "added tokens as a table": (lambda table: table.update(added_tokens={}), "added_tokens"),
    "vocabulary as a list": (lambda table: table["model"].update(vocab=[["a", 0.5]] * 3), "no table `vocab`"),
    "no vocabulary": (lambda table: table["model"].pop("vocab"), "no table `vocab`"),
    "no model": (lambda table: table.pop("model"), "no table `model`"),
    "merges of three": (lambda table: table["model"].update(merges=[["a", "b", "c"]]), "merges"),
    "merges of numbers": (lambda table: table["model"].update(merges=[[1, 2]]), "merges"),
    "a pattern that grows": (
        lambda table: table.update(
            pre_tokenizer={
                "type": "Split",
                "pattern": {"Regex": "((a{1,999}){1,999}){1,999}"},
                "behavior": "Isolated",
                "invert": False,
            }
        ),
        "its pre_tokenizer is not",
    ),
    "a packed table": (
        lambda table: table.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        "its normalizer is not",
    ),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_tokenizer_does_not_reach_the_library(
    model: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    craft, complaint = CRAFTED[name]
    file = model / "tokenizer.json"
    table = json.loads(file.read_text("utf-8"))
    craft(table)
    monkeypatch.setattr(vocabulary, "Tokenizer", None)
    with pytest.raises(UserError, match=complaint) as caught:
        read_vocabulary(json.dumps(table), file)
    insist_one_line(caught.value)


@pytest.mark.parametrize("text", ["", "7", "[]", "null", "{}", '{"model": 5}', '{"model": {"vocab": {}}}', "[" * 5000])
def test_what_is_no_tokenizer_is_refused(text: str) -> None:
    with pytest.raises(UserError) as caught:
        read_vocabulary(text, Path("tokenizer.json"))
    insist_one_line(caught.value)


def test_digests_do_not_make_a_file_good(model: Path) -> None:
    """As above, but through the command, all digests recomputed."""
    import hashlib

    file = model / "tokenizer.json"
    table = json.loads(file.read_text("utf-8"))
    set_id(4294967294)(table)
    file.write_text(json.dumps(table), encoding="utf-8")
    config = json.loads((model / "config.json").read_text("utf-8"))
    config["sha256"]["tokenizer.json"] = hashlib.sha256(file.read_bytes()).hexdigest()
    config["sha256"]["config.json"] = digest_of(config)
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    said = ask("run", model, "one")
    assert said.code == 1
    assert "do not have the ids" in said.err


def test_the_limits_leave_room_for_our_own_files(model: Path) -> None:
    assert files.DEEPEST >= 16
    assert ask("run", model, "one").code == 0

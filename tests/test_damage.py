"""Damaged and hostile model folders: one clear line each, never a crash, never another model."""

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import saccade
from hostile import (
    DEEP,
    HEADERS,
    NESTED,
    Accident,
    delete,
    empty,
    flip_a_bit,
    insist_one_line,
    make_a_folder,
    truncate,
)
from saccade.data.prepared import file_digest
from saccade.errors import UserError
from saccade.folder import LARGEST_JSON
from tiny import SENTENCES, write_tiny_model

Json = Any
MODEL_FILES = ["config.json", "model.safetensors", "tokenizer.json"]


@dataclass(frozen=True)
class Pristine:
    """A whole model folder and what it answers."""

    path: Path
    weights: dict[str, np.ndarray]
    answers: list[tuple[str, float]]


def weights_of(translator: Any) -> dict[str, np.ndarray]:
    encoder, decoder = translator.model.reading["source"], translator.model.writing
    weights = {f"encoder.{name}": weight.copy() for name, weight in encoder.items()}
    return weights | {f"decoder.{name}": weight.copy() for name, weight in decoder.items()}


def answers_of(translator: Any) -> list[tuple[str, float]]:
    return [(answer.text, answer.score) for answer in translator(SENTENCES)]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Pristine:
    path = write_tiny_model(tmp_path_factory.mktemp("pristine") / "model")
    translator = saccade.load(path)
    return Pristine(path, weights_of(translator), answers_of(translator))


@pytest.fixture
def folder(pristine: Pristine, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return shutil.copytree(pristine.path, tmp_path / "model")


def refused(path: Path) -> str:
    """Loading must fail with one clear line; which."""
    with pytest.raises(UserError) as caught:
        saccade.load(path)
    insist_one_line(caught.value)
    return str(caught.value)


def refused_or_unchanged(path: Path, pristine: Pristine) -> None:
    """Damage is found, or it was to something that does not matter: then the model is the same."""
    try:
        translator = saccade.load(path)
    except UserError as error:
        insist_one_line(error)
        return
    found = weights_of(translator)
    assert found.keys() == pristine.weights.keys()
    assert all(np.array_equal(weight, pristine.weights[name]) for name, weight in found.items())
    assert answers_of(translator) == pristine.answers


# Damage by accident: a bad disk, a broken copy. Which file and where is drawn, the same each time.


@pytest.mark.parametrize("name", MODEL_FILES)
@pytest.mark.parametrize("seed", range(12))
def test_a_truncated_model_is_refused(folder: Path, name: str, seed: int) -> None:
    truncate(folder / name, random.Random(f"{name} {seed}"))
    assert str(folder) in refused(folder)


@pytest.mark.parametrize("name", [*MODEL_FILES, "README.md"])
@pytest.mark.parametrize("seed", range(20))
def test_a_flipped_bit_is_found_or_does_not_matter(folder: Path, pristine: Pristine, name: str, seed: int) -> None:
    flip_a_bit(folder / name, random.Random(f"{name} {seed}"))
    refused_or_unchanged(folder, pristine)


@pytest.mark.parametrize("name", MODEL_FILES)
@pytest.mark.parametrize("accident", [empty, delete, make_a_folder])
def test_a_lost_file_is_named(folder: Path, name: str, accident: Accident) -> None:
    accident(folder / name, random.Random(1))
    assert name in refused(folder)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"beam": 2', '"beam": 3'),
        ('"alpha": 0.6', '"alpha": 4.6'),
        ('"extra": 3', '"extra": 1'),
        ('"search"', '"searcx"'),
        ('"order": "pre"', '"order": "post"'),
        ('"heads": 2', '"heads": 4'),
        ('"layout": "interleaved"', '"layout": "halves"'),
        ('"activation": "relu"', '"activation": "gelu"'),
    ],
)
def test_a_changed_setting_is_found(folder: Path, pristine: Pristine, before: str, after: str) -> None:
    """All shapes still fit, so only a digest over config.json itself can tell."""
    text = (folder / "config.json").read_text("utf-8")
    assert before in text
    (folder / "config.json").write_text(text.replace(before, after), "utf-8")
    refused_or_unchanged(folder, pristine)


# Damage on purpose: every digest fits, so what is inside must be looked at.


def seal(folder: Path, config: Json = None) -> None:
    """Write config.json anew, with the digests of the files as they are now."""
    table = json.loads((folder / "config.json").read_bytes()) if config is None else config
    if isinstance(table, dict) and isinstance(table.get("sha256"), dict):
        own = table["sha256"].pop("config.json", None)
        for name in ("model.safetensors", "tokenizer.json"):
            table["sha256"][name] = file_digest(folder / name)
        if own is not None:
            content = json.dumps(table, sort_keys=True).encode()
            table["sha256"]["config.json"] = hashlib.sha256(content).hexdigest()
    (folder / "config.json").write_text(json.dumps(table, indent=2), "utf-8")


def with_setting(folder: Path, dotted: str, value: Json) -> None:
    """Change, or put in, one key of config.json."""
    config = json.loads((folder / "config.json").read_bytes())
    *parents, last = dotted.split("/")
    inner = config
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    seal(folder, config)


def with_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    tensors = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    seal(folder)


SETTINGS: dict[str, tuple[str, Json]] = {
    "no layers": ("model/encoder/layers", 0),
    "negative layers": ("model/encoder/layers", -1),
    "a thousand million layers": ("model/decoder/layers", 10**9),
    "more layers than there are": ("model/encoder/layers", 3),
    "fewer layers than there are": ("model/decoder/layers", 1),
    "another width": ("model/encoder/width", 32),
    "an absurd width": ("model/encoder/width", 65536 * 65536),
    "a width beyond 64 bits": ("model/encoder/width", 2**70),
    "an absurd inner width": ("model/decoder/feedforward", 10**15),
    "heads that do not divide": ("model/encoder/heads", 3),
    "no heads": ("model/encoder/heads", 0),
    "absurd learned positions": ("model/encoder/positions", {"kind": "learned", "length": 10**12}),
    "learned positions": ("model/encoder/positions", {"kind": "learned", "length": 4}),
    "an unknown kind of positions": ("model/encoder/positions", {"kind": "os.system"}),
    "positions without kind": ("model/encoder/positions", {}),
    "an unknown key of a stack": ("model/encoder/layer", 2),
    "an unknown key of the model": ("model/code", "import os"),
    "an unknown key of the search": ("search/beams", 2),
    "a key with a line break": ("model/a\nb", 2),
    "a value with a line break": ("model/tie", "a\nb"),
    "a task with a line break": ("task", "a\nb"),
    "another kind of model": ("model/kind", "decoder"),
    "other tying": ("model/tie", "none"),
    "model is a list": ("model", []),
    "model is null": ("model", None),
    "encoder is a list": ("model/encoder", [1]),
    "encoder is a text": ("model/encoder", "transformer"),
    "layers are a list": ("model/encoder/layers", [2]),
    "layers are null": ("model/encoder/layers", None),
    "layers are a word": ("model/encoder/layers", "many"),
    "width is not a whole number": ("model/encoder/width", 16.5),
    "search is a list": ("search", [1]),
    "search is a number": ("search", 5),
    "beam is 0": ("search/beam", 0),
    "beam is a list": ("search/beam", [5]),
    "alpha is not a number": ("search/alpha", float("nan")),
    "factor is infinite": ("search/factor", float("inf")),
    "layer is a text": ("layer", "first"),
    "layer is a list": ("layer", [1]),
    "layer is null": ("layer", None),
    "layer is infinite": ("layer", float("inf")),
    "layer is beyond the last": ("layer", 9),
    "task is a number": ("task", 5),
    "task is unknown": ("task", "telepathy"),
    "task is a module": ("task", "os:system"),
    "storage is a list": ("storage", []),
    "format is a text": ("format", "1"),
    "format is a fraction": ("format", 1.5),
    "format is null": ("format", None),
    "format is newer": ("format", 10**6),
    "digests are a list": ("sha256", []),
    "digests are null": ("sha256", None),
}


@pytest.mark.parametrize(("dotted", "value"), SETTINGS.values(), ids=SETTINGS.keys())
def test_a_wrong_setting_is_refused(folder: Path, dotted: str, value: Json) -> None:
    with_setting(folder, dotted, value)
    refused(folder)


HARMLESS: dict[str, tuple[str, Json]] = {
    "dropout is not a number": ("model/encoder/dropout", float("nan")),
    "layers are a number in quotes": ("model/encoder/layers", "2"),
    "storage is unknown": ("storage", "pickle"),
    "format is older than the first": ("format", 0),
    "format is true": ("format", True),
    "an unknown key": ("colour", "blue"),
    "name is a number": ("name", 5),
    "data is a number": ("data", 5),
    "lowercase is a list": ("lowercase", [1]),
}


@pytest.mark.parametrize(("dotted", "value"), HARMLESS.values(), ids=HARMLESS.keys())
def test_a_strange_setting_does_not_change_the_model(
    folder: Path, pristine: Pristine, dotted: str, value: Json
) -> None:
    with_setting(folder, dotted, value)
    refused_or_unchanged(folder, pristine)


@pytest.mark.parametrize("value", [None, 5, "", [], {}, "0" * 64])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_wrong_digest_is_refused(folder: Path, name: str, value: Json) -> None:
    config = json.loads((folder / "config.json").read_bytes())
    config["sha256"][name] = value
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    refused(folder)


CONFIGS: dict[str, bytes] = {
    "nothing but a text": b"hello",
    "a number": b"5",
    "null": b"null",
    "a list": b"[]",
    "an empty table": b"{}",
    "brackets": NESTED.encode(),
    "tables": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "unclosed brackets": b"[" * DEEP,
    "not UTF-8": b'{"format": 1, "task": "\xff\xfe"}',
    "UTF-16": '{"format": 1}'.encode("utf-16"),
    "zeros": bytes(1000),
    "an endless number": b'{"format": 1' + b"0" * 10_000 + b"}",
    "Infinity": b'{"format": Infinity}',
    "a lone surrogate": b'{"format": 1, "task": "\\ud800", "storage": "", "sha256": {}, "model": {}}',
    "two objects": b'{"format": 1}{"format": 1}',
}


@pytest.mark.parametrize("content", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_config_that_is_none_is_refused(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    refused(folder)


def test_a_config_with_nesting_in_one_key_is_refused(folder: Path, pristine: Pristine) -> None:
    text = (folder / "config.json").read_text("utf-8")
    (folder / "config.json").write_text(text.replace('"lowercase": false', f'"lowercase": {NESTED}'), "utf-8")
    refused(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_giant_file_is_not_read(folder: Path, name: str) -> None:
    os.truncate(folder / name, LARGEST_JSON + 1)  # sparse: it takes no room
    assert f"{LARGEST_JSON + 1:,}" in refused(folder)


# Weights


def test_weights_of_another_shape_are_named(folder: Path) -> None:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["decoder.norm.weight"] = torch.ones(17)

    with_tensors(folder, change)
    message = refused(folder)
    assert "decoder.norm.weight" in message
    assert "17" in message
    assert "16" in message


def _transpose(tensors: dict[str, torch.Tensor]) -> None:
    name = next(name for name, tensor in tensors.items() if tensor.ndim == 2 and tensor.shape[0] != tensor.shape[1])
    tensors[name] = tensors[name].T.contiguous()


def _flatten(tensors: dict[str, torch.Tensor]) -> None:
    name = next(name for name, tensor in tensors.items() if tensor.ndim == 2)
    tensors[name] = tensors[name].flatten()


def _poison(value: float) -> Callable[[dict[str, torch.Tensor]], Any]:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors[sorted(tensors)[0]].view(-1)[0] = value

    return change


def _put(name: str, tensor: torch.Tensor) -> Callable[[dict[str, torch.Tensor]], Any]:
    return lambda tensors: tensors.update({name: tensor})


TENSORS: dict[str, Callable[[dict[str, torch.Tensor]], Any]] = {
    "transposed": _transpose,
    "flattened": _flatten,
    "one missing": lambda tensors: tensors.pop(sorted(tensors)[0]),
    "one too many": _put("decoder.extra", torch.ones(3)),
    "none": lambda tensors: tensors.clear(),
    "renamed": lambda tensors: tensors.update({"__class__": tensors.pop(sorted(tensors)[0])}),
    "not a number": _poison(float("nan")),
    "infinite": _poison(float("inf")),
    "scaled by a tensor of another shape": _put("decoder.norm.weight.scale", torch.ones(3)),
    "scaled by a tensor that makes it larger": _put("decoder.norm.weight.scale", torch.ones(5, 16)),
    "scalar": _put("decoder.norm.weight", torch.tensor(1.0)),
    "empty": _put("decoder.norm.weight", torch.ones(0)),
}


@pytest.mark.parametrize("change", TENSORS.values(), ids=TENSORS.keys())
def test_wrong_weights_are_refused(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    with_tensors(folder, change)
    refused(folder)


@pytest.fixture(scope="module")
def pristine_int8(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("int8") / "model", storage="int8")


def _scale_name(tensors: dict[str, torch.Tensor]) -> str:
    return next(name for name in sorted(tensors) if name.endswith(".scale"))


def _rescale(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[dict[str, torch.Tensor]], Any]:
    def applied(tensors: dict[str, torch.Tensor]) -> None:
        name = _scale_name(tensors)
        tensors[name] = change(tensors[name]).contiguous()

    return applied


SCALES: dict[str, Callable[[dict[str, torch.Tensor]], Any]] = {
    "missing": lambda tensors: tensors.pop(_scale_name(tensors)),
    "of fewer rows": _rescale(lambda scale: scale[1:]),
    "of one row": _rescale(lambda scale: scale[:1]),
    "flat": _rescale(lambda scale: scale[:, 0]),
    "wider": _rescale(lambda scale: scale.expand(-1, 3)),
    "not a number": _rescale(lambda scale: scale * float("nan")),
    "infinite": _rescale(lambda scale: scale + float("inf")),
    "of a single number": lambda tensors: tensors.update(
        {_scale_name(tensors).removesuffix(".scale"): torch.tensor(3, dtype=torch.int8)}
    ),
    "without its tensor": lambda tensors: tensors.pop(_scale_name(tensors).removesuffix(".scale")),
}


@pytest.mark.parametrize("change", SCALES.values(), ids=SCALES.keys())
def test_wrong_scales_of_int8_weights_are_refused(
    pristine_int8: Path, tmp_path: Path, change: Callable[[dict[str, torch.Tensor]], Any]
) -> None:
    saccade.load(pristine_int8)
    folder = shutil.copytree(pristine_int8, tmp_path / "model")
    with_tensors(folder, change)
    refused(folder)


@pytest.mark.parametrize("content", HEADERS.values(), ids=HEADERS.keys())
def test_a_hostile_weights_file_is_refused(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    seal(folder)
    refused(folder)


# The vocabulary


def _tokenizer(change: Callable[[Json], None]) -> Callable[[str], bytes]:
    def applied(text: str) -> bytes:
        table = json.loads(text)
        change(table)
        return json.dumps(table).encode()

    return applied


def _swap_specials(table: Json) -> None:
    vocabulary = table["model"]["vocab"]
    vocabulary["<pad>"], vocabulary["</s>"] = vocabulary["</s>"], vocabulary["<pad>"]
    table["added_tokens"] = []


def _move_a_token(place: int) -> Callable[[Json], None]:
    def change(table: Json) -> None:
        vocabulary = table["model"]["vocab"]
        vocabulary[max(vocabulary, key=vocabulary.__getitem__)] = place

    return change


def _lose_a_token(table: Json) -> None:
    vocabulary = table["model"]["vocab"]
    vocabulary.pop(max(vocabulary, key=vocabulary.__getitem__))
    table["model"]["merges"].pop()


TOKENIZERS: dict[str, Callable[[str], bytes]] = {
    "nothing": lambda text: b"",
    "not JSON": lambda text: b"hello",
    "a null": lambda text: b"null",
    "an empty table": lambda text: b"{}",
    "a list": lambda text: b"[]",
    "random bytes": lambda text: random.Random(1).randbytes(1000),
    "deep": lambda text: NESTED.encode(),
    "deep in an entry": lambda text: f'{{"model": {NESTED}}}'.encode(),
    "cut": lambda text: text[:-5].encode(),
    "not UTF-8": lambda text: text.encode().replace(b"cat", b"c\xfft"),
    "no model": _tokenizer(lambda table: table.update({"model": None})),
    "an unknown model": _tokenizer(lambda table: table["model"].update({"type": "Oracle"})),
    "no words": _tokenizer(lambda table: table["model"].update({"vocab": {}, "merges": []})),
    "merges of nothing": _tokenizer(lambda table: table["model"].update({"merges": [["qqq", "www"]]})),
    "an unknown decoder": _tokenizer(lambda table: table.update({"decoder": {"type": "Run\nme"}})),
    "special tokens swapped": _tokenizer(_swap_specials),
    "an id beyond the last": _tokenizer(_move_a_token(100_000)),
    "an id used twice": _tokenizer(_move_a_token(10)),
    "a negative id": _tokenizer(_move_a_token(-1)),
    "an id beyond 32 bits": _tokenizer(_move_a_token(2**40)),
    "a token lost": _tokenizer(_lose_a_token),
}


@pytest.mark.parametrize("change", TOKENIZERS.values(), ids=TOKENIZERS.keys())
def test_a_wrong_vocabulary_is_refused(folder: Path, change: Callable[[str], bytes]) -> None:
    file = folder / "tokenizer.json"
    file.write_bytes(change(file.read_text("utf-8")))
    seal(folder)
    refused(folder)

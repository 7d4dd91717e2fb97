"""The model folder: config.json, model.safetensors, tokenizer.json, perhaps words.txt.xz, and the card README.md.

A model folder is data. Loading one runs no code from it, and nothing is believed before it is
checked: format version, SHA-256 digests, the names and shapes of all tensors.
"""

import hashlib
import json
import lzma
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from saccade.errors import UserError

FORMAT = 1
LARGEST_JSON = 64 * 2**20
LARGEST_LIST = 64 * 2**20
WORDS = "words.txt.xz"
Storage = Literal["float32", "float16", "int8"]
Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class ModelFolder:
    """The content of a model folder, read and checked."""

    path: Path
    config: dict[str, Any]
    """Everything config.json says but its own bookkeeping: task, model, search, …"""
    tokenizer: str
    weights: dict[str, Tensor]
    words: list[str] | None = None
    """The words a model keeps to when it writes, if it has such a list."""


def write_folder(
    path: Path,
    config: dict[str, Any],
    model: nn.Module,
    tokenizer: str,
    *,
    storage: Storage,
    words: Sequence[str] | None = None,
) -> None:
    """Write everything but the card, each file aside first, config.json last: a folder with a config is whole."""
    stored: dict[str, Tensor] = {}
    for name, weight in model.named_parameters():
        stored |= _narrow(name, weight.detach(), storage)
    files = {"model.safetensors": save_tensors(stored), "tokenizer.json": tokenizer.encode()}
    if words is not None:
        files[WORDS] = lzma.compress("\n".join(words).encode(), preset=9)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    whole = {"format": FORMAT, "storage": storage, **config, "sha256": digests}
    whole["sha256"] = digests | {"config.json": _digest_of(whole)}
    files["config.json"] = (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()
    for name, content in files.items():
        _replace(path / name, content)


def write_card(path: Path, text: str) -> None:
    """The card, for people; nothing is read from it."""
    _replace(path / "README.md", text.encode())


def _replace(file: Path, content: bytes) -> None:
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


def read_config(path: Path) -> dict[str, Any]:
    """config.json alone, checked as far as it goes."""
    file = path / "config.json"
    if not path.is_dir():
        raise UserError(f"{path}: no such model folder")
    if not file.exists():
        raise UserError(f"{path}: not a model folder: it has no config.json{_unfinished(path)}")
    try:
        config = json.loads(_content(file, LARGEST_JSON))
    except (ValueError, RecursionError):
        raise UserError(f"{file}: not valid JSON") from None
    if not isinstance(config, dict) or not isinstance(config.get("format"), int):
        raise UserError(f"{file}: not a Saccade model: it states no format")
    if config["format"] > FORMAT:
        raise UserError(f"{file}: format {config['format']}, but this version reads up to {FORMAT}; update Saccade")
    for key, kind in (("task", str), ("storage", str), ("sha256", dict), ("model", dict)):
        if not isinstance(config.get(key), kind):
            raise UserError(f"{file}: {key} is missing or not a {kind.__name__}")
    if config["sha256"].get("config.json") != _digest_of(config):
        raise UserError(f"{file}: damaged or changed by hand: its SHA-256 is not the one it states")
    return config


def _digest_of(config: dict[str, Any]) -> str:
    """SHA-256 of the config's content, its own digest left out; spacing and order mean nothing."""
    digests = {name: value for name, value in config["sha256"].items() if name != "config.json"}
    return hashlib.sha256(json.dumps(config | {"sha256": digests}, sort_keys=True).encode()).hexdigest()


def read_folder(path: Path) -> ModelFolder:
    """Everything in the folder, its digests checked and its weights widened to float32."""
    config = read_config(path)
    digests = config["sha256"]
    contents = {}
    listed = [WORDS] if WORDS in digests else []
    for name in ("model.safetensors", "tokenizer.json", *listed):
        content = _content(path / name, None if name.endswith("safetensors") else LARGEST_JSON)
        if hashlib.sha256(content).hexdigest() != digests.get(name):
            raise UserError(f"{path / name}: damaged: its SHA-256 is not the one in config.json")
        contents[name] = content
    try:
        tokenizer = contents["tokenizer.json"].decode("utf-8")
        weights = _widen(load_tensors(contents["model.safetensors"]))
    # A hostile header can ask torch for shapes and types it does not have, each in its own kind of error.
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError, AttributeError) as error:
        raise UserError(f"{path}: cannot be read: {str(error)[:200]}") from None
    words = _list(path / WORDS, contents[WORDS]) if listed else None
    return ModelFolder(path, config, tokenizer, weights, words)


def _list(file: Path, content: bytes) -> list[str]:
    """A compressed list of words, one a line; a small file may not grow into a huge one."""
    try:
        unpacker = lzma.LZMADecompressor()
        text = unpacker.decompress(content, max_length=LARGEST_LIST)
        if not unpacker.eof:
            raise UserError(f"{file}: more than {LARGEST_LIST:,} bytes when unpacked, or cut off")
        return text.decode("utf-8").splitlines()
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read: {error}") from None


class _Undrawn(TorchFunctionMode):
    """In here weights are not drawn at random."""

    DRAWING = frozenset((Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_))

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function not in self.DRAWING:
            return function(*args, **(kwargs or {}))
        return args[0] if args else (kwargs or {})["tensor"]


def filled(folder: ModelFolder, build: Callable[[], Model]) -> Model:
    """A model with the folder's weights, in the place of which none are drawn first: that would take a quarter of
    the time to load a small model."""
    with _Undrawn():
        model = build()
    fill(model, folder)
    return model


def fill(model: nn.Module, folder: ModelFolder) -> None:
    """Give a model the folder's weights; every name and shape must fit."""
    expected = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    found = {name: tuple(weight.shape) for name, weight in folder.weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise UserError(
                f"{folder.path}: weights and config.json disagree: {name} is {found.get(name, 'missing')}, "
                f"the config asks {expected.get(name, 'no such tensor')}"
            )
    if not all(bool(torch.isfinite(weight).all()) for weight in folder.weights.values()):
        raise UserError(f"{folder.path}: the weights hold NaN or infinite numbers")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(folder.weights[name])


def insist_on_room(folder: ModelFolder, asked: int) -> None:
    """Refuse, before anything is built, a config that asks for more weights than the file has."""
    held = sum(weight.numel() for weight in folder.weights.values())
    if asked > held:
        raise UserError(f"{folder.path}: config.json asks for at least {asked:,} weights, the file holds {held:,}")


def _narrow(name: str, weight: Tensor, storage: str) -> dict[str, Tensor]:
    """A tensor as it is stored. int8 is a storage format: each row has its own scale."""
    if storage == "int8" and weight.ndim == 2:
        # Rounded before it is divided by, a scale of eight bits costs nothing: the largest of a row is still 127.
        scale = (weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127).to(torch.bfloat16)
        return {name: (weight / scale.float()).round().clamp(-127, 127).to(torch.int8), f"{name}.scale": scale}
    dtype = torch.float16 if storage != "float32" else torch.float32
    return {name: weight.to(dtype).contiguous()}


def _widen(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """Stored tensors as float32."""
    weights = {}
    for name, tensor in stored.items():
        scaled = stored.get(name.removesuffix(".scale"))
        if name.endswith(".scale") and scaled is not None and scaled.dtype == torch.int8:
            continue
        weights[name] = tensor.to(torch.float32)
        if tensor.dtype == torch.int8:
            scale = stored.get(f"{name}.scale")
            if scale is None or tensor.ndim != 2 or scale.shape != (tensor.shape[0], 1):
                raise ValueError(f"{name} is stored as int8 without one scale per row")
            weights[name] *= scale.to(torch.float32)
        elif not tensor.is_floating_point():
            raise ValueError(f"{name} is stored as {tensor.dtype}")
    return weights


def _content(file: Path, limit: int | None) -> bytes:
    try:
        size = file.stat().st_size
        if limit is not None and size > limit:
            raise UserError(f"{file}: {size:,} bytes; at most {limit:,} are read")
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}") from None


def _unfinished(path: Path) -> str:
    return f"; its training is not finished: saccade resume {path}" if (path / "recipe.toml").exists() else ""

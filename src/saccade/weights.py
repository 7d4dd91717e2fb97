"""A model's weights into a model folder and out of one."""

import hashlib
import lzma
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import save as save_tensors
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.heads import EncoderModel
from saccade.arch.weights import Weights
from saccade.carried import CarriedTest
from saccade.folder import FORMAT, TOKENIZER, WORDS, ModelFolder, Storage, replace_file, write_config
from saccade.models.answering import TorchEncoder, TorchSequence, by_pytorch
from saccade.models.encdec import build_encoder_decoder
from saccade.models.encoders import build_encoder_model

Model = TypeVar("Model", bound=nn.Module)


def write_folder(
    path: Path,
    config: dict[str, Any],
    model: nn.Module,
    tokenizer: str | None,
    *,
    storage: Storage,
    words: Sequence[str] | None = None,
    carried: CarriedTest | None = None,
    more: Mapping[str, bytes] | None = None,
) -> None:
    """Write everything but the card, each file aside first, config.json last: a folder with a config is whole.
    `more` are further files of the task, by name."""
    stored: dict[str, Tensor] = {}
    for name, weight in model.named_parameters():
        stored |= _narrow(name, weight.detach(), storage)
    files = {"model.safetensors": save_tensors(stored), **(more or {})}
    if tokenizer is not None:
        files[TOKENIZER] = tokenizer.encode()
    if words is not None:
        files[WORDS] = lzma.compress("\n".join(words).encode(), preset=9)
    if carried is not None:
        files[carried.name] = carried.packed()
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    for name, content in files.items():
        replace_file(path / name, content)
    write_config(path, {"format": FORMAT, "storage": storage, **config, "sha256": digests})


class _Undrawn(TorchFunctionMode):
    """In here weights are not drawn at random."""

    DRAWING = frozenset((Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_))

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function not in self.DRAWING:
            return function(*args, **(kwargs or {}))
        return args[0] if args else (kwargs or {})["tensor"]


def filled(folder: ModelFolder, described: Weights, build: Callable[[], Model]) -> Model:
    """A PyTorch model with the folder's weights, which are checked before anything is built. None are drawn first: that
    would take a quarter of the time to load a small model."""
    tensors = folder.tensors(described)
    with _Undrawn():
        model = build()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(tensors[name]))
    return model


def _narrow(name: str, weight: Tensor, storage: str) -> dict[str, Tensor]:
    """A tensor as it is stored. int8 is a storage format: each row has its own scale."""
    if storage == "int8" and weight.ndim == 2:
        # Rounded before it is divided by, a scale of eight bits costs nothing: the largest of a row is still 127.
        scale = (weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127).to(torch.bfloat16)
        return {name: (weight / scale.float()).round().clamp(-127, 127).to(torch.int8), f"{name}.scale": scale}
    dtype = torch.float16 if storage != "float32" else torch.float32
    return {name: weight.to(dtype).contiguous()}


def open_sequence(folder: ModelFolder, config: EncoderDecoderConfig, vocabulary: int) -> TorchSequence:
    """An encoder and a decoder that only PyTorch can run."""
    model = filled(folder, config.weights(vocabulary), lambda: build_encoder_decoder(config, vocabulary))
    return TorchSequence(model.eval(), by_pytorch(config))


def open_encoder(folder: ModelFolder, config: EncoderModel, vocabulary: int) -> TorchEncoder:
    """A text encoder with a head that only PyTorch can run."""
    model = filled(folder, config.weights(vocabulary), lambda: build_encoder_model(config, vocabulary))
    return TorchEncoder(model.eval(), config, by_pytorch(config))

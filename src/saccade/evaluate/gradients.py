"""Gradients of what a model says in what it reads: of a text the product of each token's vector and its gradient
("gradient × input", Shrikumar et al. 2016), of a picture the gradient of its pixels. The only part of explaining that
needs PyTorch."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import EncoderModel
from saccade.arch.memories import named
from saccade.folder import read_folder
from saccade.models.encdec import build_encoder_decoder
from saccade.models.encoders import build_encoder_model
from saccade.models.gpt import build_gpt
from saccade.models.heads import ClassifierModel, TaggerModel
from saccade.runtime.contract import Floats
from saccade.weights import filled

Read = tuple[np.ndarray, np.ndarray | None]
"""What an encoder is given, and its mask."""


def gradient_of_sequence(
    path: Path,
    config: EncoderDecoderConfig,
    vocabulary: int,
    sources: Mapping[str, Read],
    memory: str,
    written: Sequence[int],
    targets: Mapping[int, int],
) -> Floats:
    """Of the log-probability of targets, by their place, in what the encoder of this memory reads: [S], or pixels."""
    model = filled(read_folder(path), config.weights(vocabulary), lambda: build_encoder_decoder(config, vocabulary))
    several = len(sources) > 1
    given = {name: _tensors(one) for name, one in sources.items()}

    def run(pixels: Tensor | None) -> Tensor:
        if pixels is not None:
            given[memory] = (pixels, given[memory][1])
        read = model.read(given, None) if several else model.read(*given[memory])
        logits_TV: Tensor = model.decoder(torch.tensor([list(written)]), read)[0]
        return _chosen(logits_TV, targets)

    return _gradient(model.eval(), run, given[memory][0], f"{named('encoder', memory)}.embed.tokens")


def gradient_of_language(
    path: Path, config: GptConfig, vocabulary: int, ids: Sequence[int], targets: Mapping[int, int]
) -> Floats:
    """Of the log-probability of tokens, each by the place before it, in all that was read: [T]."""
    model = filled(read_folder(path), config.weights(vocabulary), lambda: build_gpt(config, vocabulary))
    tokens = torch.tensor([list(ids)])
    return _gradient(model.eval(), lambda _: _chosen(model(tokens)[0], targets), tokens, "decoder.embed.tokens")


def gradient_of_encoder(
    path: Path,
    config: EncoderModel,
    vocabulary: int,
    source: np.ndarray,
    segments: np.ndarray | None,
    targets: Mapping[int, int],
) -> Floats:
    """Of the log-probability of words or tags, by their place, or of a class, whose place is 0: [S], or pixels."""
    model = filled(read_folder(path), config.weights(vocabulary), lambda: build_encoder_model(config, vocabulary))
    tokens, second = torch.tensor(source), None if segments is None else torch.tensor(segments)

    def run(pixels: Tensor | None) -> Tensor:
        read = tokens if pixels is None else pixels
        if isinstance(model, ClassifierModel):
            return _chosen(model(read, None, second), targets)
        chosen = torch.zeros(tokens.shape, dtype=torch.bool)
        chosen[0, list(targets)] = True
        words: Any = model
        logits = words(read, None, chosen) if isinstance(model, TaggerModel) else words.guess(read, chosen)[0]
        return _chosen(logits, {row: targets[place] for row, place in enumerate(sorted(targets))})

    return _gradient(model.eval(), run, tokens, "encoder.embed.tokens")


def _tensors(read: Read) -> tuple[Tensor, Tensor | None]:
    return torch.tensor(read[0]), None if read[1] is None else torch.tensor(read[1])


def _chosen(logits_TV: Tensor, targets: Mapping[int, int]) -> Tensor:
    logprobs_TV = logits_TV.float().log_softmax(dim=-1)
    return torch.stack([logprobs_TV[place, token] for place, token in targets.items()]).sum()


def _gradient(model: nn.Module, run: Callable[[Tensor | None], Tensor], source: Tensor, embedding: str) -> Floats:
    """`run` is given pixels that want a gradient, where the source is pixels."""
    if source.is_floating_point():
        pixels = source.clone().requires_grad_()
        (found,) = torch.autograd.grad(run(pixels), [pixels])
        return found[0].numpy()
    vectors: list[Tensor] = []

    def remember(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        # Tied vectors are looked up more than once: the first time is that of what was read.
        if not vectors and inputs[0].shape == source.shape:
            vectors.append(output.detach().requires_grad_())
            return vectors[0]
        return output

    hook = model.get_submodule(embedding).register_forward_hook(remember)
    try:
        (found,) = torch.autograd.grad(run(None), vectors)
    finally:
        hook.remove()
    return (vectors[0] * found).sum(dim=-1)[0].detach().numpy()

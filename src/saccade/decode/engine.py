"""The trained model as it runs on this machine: itself, or a twin of it that is packed, on the C kernels where they
know its parts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import native
from saccade.decode.lean import LeanDecoder, LeanEncoder, LeanMemory
from saccade.decode.pack import pack_linears
from saccade.decode.packed import BITS, How
from saccade.decode.running import Running, Writer
from saccade.decode.stack import Stack
from saccade.models.contract import Decoder, Encoder, Memory
from saccade.models.encdec import EncoderDecoder
from saccade.models.transformer import StackDecoder, TransformerEncoder
from saccade.nn.feedforward import FeedForward
from saccade.nn.norms import PreNorm
from saccade.nn.positions import Sinusoidal


@dataclass(frozen=True)
class PlainRunning(Running):
    """One of the two, or both, are PyTorch's."""

    def read(self, source_MS: Any, mask_MS: Any) -> Any:
        if not isinstance(self.encoder, nn.Module):
            memory = self.encoder(np.asarray(source_MS), None if mask_MS is None else np.asarray(mask_MS))
            return _as_tensors(memory) if isinstance(self.decoder, nn.Module) else memory
        device = next(self.encoder.parameters()).device
        source, mask = (None if part is None else torch.as_tensor(part).to(device) for part in (source_MS, mask_MS))
        return self.encoder(source, mask)

    def rows(self, memory: Any, chosen: np.ndarray) -> Any:
        return memory.rows(torch.from_numpy(chosen) if isinstance(memory, Memory) else chosen)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        with torch.inference_mode():
            yield


def engine(model: EncoderDecoder, how: How) -> Running:
    """A model that answers as `model` does, up to rounding, and faster; it shares what is not packed."""
    return PlainRunning(_encoder(model.encoder, how), fast_decoder(model.decoder, how))


def fast_decoder(decoder: Decoder, how: How) -> Writer:
    """The same for a decoder alone."""
    if how == "exact" or next(decoder.parameters()).device.type != "cpu":
        return decoder
    if native.kernels() is not None and how in BITS and isinstance(decoder, StackDecoder) and can_be_lean(decoder):
        return LeanDecoder(stack_of(decoder), BITS[how])
    return cast(Decoder, pack_linears(decoder, how)).eval()


def _encoder(encoder: Encoder, how: How) -> Encoder | LeanEncoder:
    if how == "exact" or next(encoder.parameters()).device.type != "cpu":
        return encoder
    if native.kernels() is not None and how in BITS and isinstance(encoder, TransformerEncoder):
        return LeanEncoder(stack_of(encoder), BITS[how])
    return cast(Encoder, pack_linears(encoder, how)).eval()


def can_be_lean(stack: StackDecoder) -> bool:
    """Whether the kernels know all of its parts; other norms, gates, shared heads and bands run on packed layers."""
    return isinstance(stack.norm, nn.LayerNorm | nn.Identity) and all(
        isinstance(block.feedforward, FeedForward)
        and block.feedforward.activation in (F.relu, F.gelu)
        and isinstance(block.around_self.norm, nn.LayerNorm)
        and block.self_attention.key_heads == block.self_attention.heads
        and block.self_attention.window is None
        and (block.cross_attention is None or block.cross_attention.rotary is block.self_attention.rotary)
        for block in stack.blocks
    )


def stack_of(plain: TransformerEncoder | StackDecoder) -> Stack:
    """A stack as plain numbers, which are the module's own."""
    first, embed = next(iter(plain.blocks)), plain.embed
    assert isinstance(first.feedforward, FeedForward)
    assert isinstance(first.around_self.norm, nn.LayerNorm)
    rotary, positions = first.self_attention.rotary, embed.positions
    return Stack(
        weights={name: weight.detach().numpy() for name, weight in plain.named_parameters(remove_duplicate=False)},
        layers=len(plain.blocks),
        heads=first.self_attention.heads,
        post=not isinstance(first.around_self, PreNorm),
        gelu=first.feedforward.activation is F.gelu,
        scale=embed.scale,
        epsilon=first.around_self.norm.eps,
        sinusoids=positions.layout if isinstance(positions, Sinusoidal) else None,
        concatenate=embed.concatenate and positions is not None,
        rates=None if rotary is None else rotary.rates.numpy(),
        halves=rotary is not None and rotary.layout == "halves",
    )


def _as_tensors(memory: LeanMemory) -> Memory:
    mask_MS: Tensor | None = None if memory.mask_MS is None else torch.from_numpy(memory.mask_MS)
    return Memory(torch.from_numpy(memory.states_MSD), mask_MS)

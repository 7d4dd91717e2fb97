"""The model that runs: the trained one, or a twin of it packed for this machine."""

from typing import TypeVar, cast

from torch import nn

from saccade import native
from saccade.decode.lean import LeanDecoder, LeanEncoder, can_be_lean
from saccade.decode.pack import How, pack_linears
from saccade.models.contract import Decoder, Encoder
from saccade.models.encdec import EncoderDecoder
from saccade.models.transformer import StackDecoder, TransformerEncoder

Part = TypeVar("Part", Encoder, Decoder)
BITS = {"int16": 16, "int8": 8}


def engine(model: EncoderDecoder, how: How) -> EncoderDecoder:
    """A model that answers as `model` does, up to rounding, and faster; it shares what is not packed."""
    if how == "exact" or next(model.parameters()).device.type != "cpu":
        return model
    return EncoderDecoder(_part(model.encoder, how), _part(model.decoder, how)).eval()


def fast_decoder(decoder: Decoder, how: How) -> Decoder:
    """The same for a decoder that has no encoder."""
    if how == "exact" or next(decoder.parameters()).device.type != "cpu":
        return decoder
    return _part(decoder, how).eval()


def _part(part: Part, how: How) -> Part:
    if native.kernels() is not None and how in BITS:
        if isinstance(part, TransformerEncoder):
            return LeanEncoder(part, BITS[how])
        if isinstance(part, StackDecoder) and can_be_lean(part):
            return LeanDecoder(part, BITS[how])
    return cast(Part, pack_linears(cast(nn.Module, part), how))

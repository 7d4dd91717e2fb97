"""The weights of torch.nn.Transformer in Saccade's modules: the same function, so both can be decoded by one search."""

from typing import Any

import torch

from bench.engines.saccade import build_model
from bench.engines.torch import Plain
from saccade.models.encdec import EncoderDecoder
from saccade.models.transformer import TransformerDecoder, TransformerEncoder


@torch.no_grad()
def as_saccade(plain: Plain) -> EncoderDecoder:
    model = build_model(plain.embedding.num_embeddings)
    encoder, decoder, theirs = model.encoder, model.decoder, plain.transformer
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    encoder.embed.tokens.weight.copy_(plain.embedding.weight)  # one matrix, used thrice
    for block, layer in zip(encoder.blocks, theirs.encoder.layers, strict=True):
        _copy_shared(block, layer, layer.norm2)
    for block, layer in zip(decoder.blocks, theirs.decoder.layers, strict=True):
        _copy_shared(block, layer, layer.norm3)
        _copy_cross(block, layer)
    _copy(encoder.norm, theirs.encoder.norm)
    _copy(decoder.norm, theirs.decoder.norm)
    return model.eval()


def _copy_shared(block: Any, layer: Any, last_norm: Any) -> None:
    own, other = block.self_attention, layer.self_attn
    own.project.weight.copy_(other.in_proj_weight)
    own.project.bias.copy_(other.in_proj_bias)
    _copy(own.out, other.out_proj)
    _copy(block.around_self.norm, layer.norm1)
    _copy(block.feedforward.widen, layer.linear1)
    _copy(block.feedforward.narrow, layer.linear2)
    _copy(block.around_feedforward.norm, last_norm)


def _copy_cross(block: Any, layer: Any) -> None:
    """Theirs projects with one matrix: its first third makes queries, the rest keys and values."""
    own, other = block.cross_attention, layer.multihead_attn
    width = own.query.out_features
    own.query.weight.copy_(other.in_proj_weight[:width])
    own.query.bias.copy_(other.in_proj_bias[:width])
    own.project.weight.copy_(other.in_proj_weight[width:])
    own.project.bias.copy_(other.in_proj_bias[width:])
    _copy(own.out, other.out_proj)
    _copy(block.around_cross.norm, layer.norm2)


def _copy(to: Any, of: Any) -> None:
    to.load_state_dict(of.state_dict())

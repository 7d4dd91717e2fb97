"""Saccade's weights as a CTranslate2 model: the same numbers in another program."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from ctranslate2.specs import TransformerSpec, common_spec
from torch import nn

from saccade.models.encdec import EncoderDecoder
from saccade.models.transformer import TransformerDecoder, TransformerEncoder
from saccade.nn.block import Block
from saccade.nn.norms import PreNorm
from saccade.tokens.marks import Marks

LONGEST = 512


def write_ctranslate2(model: EncoderDecoder, words: Sequence[str], marks: Marks, folder: Path) -> None:
    """Write the folder that `ctranslate2.Translator` reads; `words` are the tokens' names in the order of their ids."""
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    first = next(iter(encoder.blocks))
    assert isinstance(first.around_self, PreNorm), "only pre-norm is written"
    spec = TransformerSpec.from_config(
        (len(encoder.blocks), len(decoder.blocks)),
        first.self_attention.heads,
        pre_norm=True,
        activation=common_spec.Activation.RELU,
    )
    _stack(spec.encoder, spec.encoder.embeddings[0], encoder)
    _stack(spec.decoder, spec.decoder.embeddings, decoder)
    _linear(spec.decoder.projection, decoder.head)
    spec.register_source_vocabulary(list(words))
    spec.register_target_vocabulary(list(words))
    spec.config.unk_token = words[marks.pad]  # it insists on one; ours never occurs
    spec.config.bos_token, spec.config.decoder_start_token = words[marks.begin], words[marks.start]
    spec.config.eos_token = words[marks.end]
    spec.config.layer_norm_epsilon = first.around_self.norm.eps
    spec.validate()
    spec.optimize(quantization=None)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _stack(spec: Any, embeddings: Any, stack: TransformerEncoder | TransformerDecoder) -> None:
    embeddings.weight = stack.embed.tokens.weight.detach()
    spec.scale_embeddings = True  # by √d, as ours
    assert stack.embed.positions is not None
    spec.position_encodings.encodings = stack.embed.positions(torch.arange(LONGEST), LONGEST - 1).clone()
    assert isinstance(stack.norm, nn.LayerNorm)
    _norm(spec.layer_norm, stack.norm)
    for layer, block in zip(spec.layer, stack.blocks, strict=True):
        _block(layer, block)


def _block(layer: Any, block: Block) -> None:
    """Both programs project queries, keys and values with one matrix; across, queries apart."""
    attention = layer.self_attention
    _norm(attention.layer_norm, block.around_self.norm)
    _linear(attention.linear[0], block.self_attention.project)
    _linear(attention.linear[1], block.self_attention.out)
    if block.cross_attention is not None and block.around_cross is not None:
        cross = block.cross_attention
        _norm(layer.attention.layer_norm, block.around_cross.norm)
        for place, linear in enumerate((cross.query, cross.project, cross.out)):
            _linear(layer.attention.linear[place], linear)
    _norm(layer.ffn.layer_norm, block.around_feedforward.norm)
    _linear(layer.ffn.linear_0, block.feedforward.widen)
    _linear(layer.ffn.linear_1, block.feedforward.narrow)


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = norm.weight.detach(), norm.bias.detach()


def _linear(spec: Any, linear: Any) -> None:
    spec.weight = linear.weight.detach()
    if linear.bias is not None:
        spec.bias = linear.bias.detach()

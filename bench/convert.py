"""Saccade's weights as CTranslate2 models: the same numbers in another program."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from ctranslate2.specs import TransformerDecoderModelSpec, TransformerSpec, common_spec
from ctranslate2.specs.transformer_spec import TransformerEncoderModelSpec, TransformerEncoderSpec
from torch import nn

from saccade.models.bert import Bert
from saccade.models.encdec import EncoderDecoder
from saccade.models.gpt import LanguageModel
from saccade.models.transformer import TransformerDecoder, TransformerEncoder
from saccade.nn.block import Block
from saccade.nn.feedforward import GatedFeedForward
from saccade.nn.norms import PreNorm
from saccade.tokens.marks import Marks

LONGEST = 512
ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "silu": common_spec.Activation.SWISH,
}


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
    _save(spec, folder)


def write_language(model: LanguageModel, words: Sequence[str], marks: Marks, folder: Path, compute: str) -> None:
    """Write the folder that `ctranslate2.Generator` reads, its weights already of the numbers that it computes with."""
    config, decoder = model.config, model.decoder
    rotary = config.positions if config.positions.kind == "rotary" else None
    spec = TransformerDecoderModelSpec.from_config(
        config.layers,
        config.heads,
        pre_norm=True,
        activation=ACTIVATIONS[config.activation],
        ffn_glu=config.gated,
        rms_norm=config.norm == "rms",
        rotary_dim=None if rotary is None else 0,  # 0: all channels of a head
        rotary_interleave=rotary is not None and rotary.layout == "interleaved",
        rotary_base=10_000 if rotary is None else rotary.base,
        num_heads_kv=config.key_heads,
    )
    stack = spec.decoder
    stack.scale_embeddings = False
    stack.embeddings.weight = _copy(decoder.embed.tokens.weight)
    if decoder.embed.positions is not None:
        stack.position_encodings.encodings = _vectors(decoder.embed.positions)
    _norm(stack.layer_norm, decoder.norm)
    _linear(stack.projection, decoder.head)
    for layer, block in zip(stack.layer, decoder.blocks, strict=True):
        _block(layer, block)
    spec.register_vocabulary(list(words))
    spec.config.unk_token, spec.config.bos_token = words[marks.pad], words[marks.begin]
    spec.config.eos_token = words[marks.end]
    spec.config.layer_norm_epsilon = config.epsilon
    _save(spec, folder, compute)


def write_encoder(model: Bert, words: Sequence[str], marks: Marks, folder: Path, compute: str) -> None:
    """Write the folder that `ctranslate2.Encoder` reads; without a pooler."""
    config, embed = model.config, model.embed
    spec = TransformerEncoderModelSpec(
        TransformerEncoderSpec(
            config.layers,
            config.heads,
            pre_norm=False,
            activation=ACTIVATIONS[config.activation],
            layernorm_embedding=True,
            num_source_embeddings=2,
            embeddings_merge=common_spec.EmbeddingsMerge.ADD,
        )
    )
    stack = spec.encoder
    assert embed.segments is not None
    assert embed.positions is not None
    stack.scale_embeddings = False
    stack.embeddings[0].weight = _copy(embed.tokens.weight)
    stack.embeddings[1].weight = _copy(embed.segments.weight)
    stack.position_encodings.encodings = _vectors(embed.positions)
    _norm(stack.layernorm_embedding, embed.norm)
    for layer, block in zip(stack.layer, model.blocks, strict=True):
        _block(layer, block)
    spec.register_vocabulary(list(words))
    spec.config.unk_token = words[marks.pad]
    spec.config.layer_norm_epsilon = config.epsilon
    _save(spec, folder, compute)


def _save(spec: Any, folder: Path, compute: str = "float32") -> None:
    spec.validate()
    spec.optimize(quantization=None if compute == "float32" else compute)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _vectors(positions: Any) -> torch.Tensor:
    """Learned position vectors."""
    return _copy(positions.vectors.weight)


def _copy(weight: torch.Tensor) -> torch.Tensor:
    """CTranslate2 rounds to int8 in place: what it is given must not be the model's own."""
    return weight.detach().clone()


def _stack(spec: Any, embeddings: Any, stack: TransformerEncoder | TransformerDecoder) -> None:
    embeddings.weight = _copy(stack.embed.tokens.weight)
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
    if block.memories:
        cross = block.cross_attention
        _norm(layer.attention.layer_norm, block.around_cross.norm)
        for place, linear in enumerate((cross.query, cross.project, cross.out)):
            _linear(layer.attention.linear[place], linear)
    _norm(layer.ffn.layer_norm, block.around_feedforward.norm)
    widen = block.feedforward.widen
    if isinstance(block.feedforward, GatedFeedForward):
        layer.ffn.linear_0.weight, layer.ffn.linear_0_noact.weight = _copy(widen.weight).chunk(2)
        assert widen.bias is None, "only gates without biases are written"
    else:
        _linear(layer.ffn.linear_0, widen)
    _linear(layer.ffn.linear_1, block.feedforward.narrow)


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma = _copy(norm.weight)
    if hasattr(spec, "beta"):  # RMSNorm has none
        spec.beta = _copy(norm.bias)


def _linear(spec: Any, linear: Any) -> None:
    spec.weight = _copy(linear.weight)
    if linear.bias is not None:
        spec.bias = _copy(linear.bias)

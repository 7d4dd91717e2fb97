"""Saccade's weights in Hugging Face's models: the same functions in another program."""

from typing import Any

import torch
import transformers

from saccade.arch.bert import BertConfig
from saccade.arch.gpt import GptConfig
from saccade.models.bert import Bert
from saccade.models.gpt import LanguageModel
from saccade.nn.block import Block


def as_language_model(model: LanguageModel, end: int) -> transformers.PreTrainedModel:
    """GPT-2, or Llama where the feed-forward network is gated."""
    return as_llama(model, end) if model.config.gated else as_gpt2(model, end)


def as_gpt2(model: LanguageModel, end: int) -> transformers.GPT2LMHeadModel:
    config, decoder = model.config, model.decoder
    made = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=decoder.head.out_features,
            n_positions=config.context,
            n_embd=config.width,
            n_layer=config.layers,
            n_head=config.heads,
            n_inner=config.feedforward,
            activation_function=config.activation,  # its gelu is the exact one too
            layer_norm_epsilon=config.epsilon,
            **_ends(end),
        )
    )
    theirs: Any = made.transformer
    assert decoder.embed.positions is not None
    _fill(theirs.wte, decoder.embed.tokens)
    _fill(theirs.wpe, decoder.embed.positions.vectors)
    _fill(theirs.ln_f, decoder.norm)
    for layer, block in zip(theirs.h, decoder.blocks, strict=True):
        _fill(layer.ln_1, block.around_self.norm)
        _fill(layer.ln_2, block.around_feedforward.norm)
        # Its matrices are [inputs, outputs].
        for place, linear in (
            (layer.attn.c_attn, block.self_attention.project),
            (layer.attn.c_proj, block.self_attention.out),
            (layer.mlp.c_fc, block.feedforward.widen),
            (layer.mlp.c_proj, block.feedforward.narrow),
        ):
            place.load_state_dict({"weight": linear.weight.T, "bias": linear.bias})
    return made.eval()


def as_llama(model: LanguageModel, end: int) -> transformers.LlamaForCausalLM:
    config, decoder = model.config, model.decoder
    made = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=decoder.head.out_features,
            max_position_embeddings=config.context,
            hidden_size=config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.key_heads,
            intermediate_size=config.feedforward,
            hidden_act=config.activation,
            rms_norm_eps=config.epsilon,
            rope_parameters={"rope_type": "default", "rope_theta": _rotary_base(config)},
            tie_word_embeddings=config.tie,
            **_ends(end),
        )
    )
    theirs: Any = made.model
    _fill(theirs.embed_tokens, decoder.embed.tokens)
    _fill(theirs.norm, decoder.norm)
    for layer, block in zip(theirs.layers, decoder.blocks, strict=True):
        _fill(layer.input_layernorm, block.around_self.norm)
        _fill(layer.post_attention_layernorm, block.around_feedforward.norm)
        _fill_parts(
            (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj), block.self_attention.project
        )
        _fill(layer.self_attn.o_proj, block.self_attention.out)
        _fill_parts((layer.mlp.gate_proj, layer.mlp.up_proj), block.feedforward.widen)
        _fill(layer.mlp.down_proj, block.feedforward.narrow)
    return made.eval()


def as_bert(model: Bert) -> transformers.BertModel:
    """Without a pooler: what is compared are the states of the last layer."""
    config: BertConfig = model.config
    made = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=model.embed.tokens.num_embeddings,
            max_position_embeddings=config.context,
            hidden_size=config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.feedforward,
            hidden_act=config.activation,
            layer_norm_eps=config.epsilon,
            type_vocab_size=config.segments,
        ),
        add_pooling_layer=False,
    )
    theirs, own = made.embeddings, model.embed
    assert own.positions is not None
    assert own.segments is not None
    _fill(theirs.word_embeddings, own.tokens)
    _fill(theirs.position_embeddings, own.positions.vectors)
    _fill(theirs.token_type_embeddings, own.segments)
    _fill(theirs.LayerNorm, own.norm)
    for layer, block in zip(made.encoder.layer, model.blocks, strict=True):
        _fill_bert_layer(layer, block)
    return made.eval()


def _fill_bert_layer(layer: Any, block: Block) -> None:
    attention = layer.attention.self
    _fill_parts((attention.query, attention.key, attention.value), block.self_attention.project)
    _fill(layer.attention.output.dense, block.self_attention.out)
    _fill(layer.attention.output.LayerNorm, block.around_self.norm)
    _fill(layer.intermediate.dense, block.feedforward.widen)
    _fill(layer.output.dense, block.feedforward.narrow)
    _fill(layer.output.LayerNorm, block.around_feedforward.norm)


def _fill(place: Any, module: Any) -> None:
    place.load_state_dict(module.state_dict())


def _fill_parts(places: tuple[Any, ...], joined: Any) -> None:
    """One matrix of Saccade is several here, by its outputs."""
    sizes = [place.out_features for place in places]
    parts = {name: value.split(sizes) for name, value in joined.state_dict().items()}
    for number, place in enumerate(places):
        place.load_state_dict({name: part[number] for name, part in parts.items()})


def _rotary_base(config: GptConfig) -> float:
    assert config.positions.kind == "rotary"
    assert config.positions.layout == "halves", "its rotary positions turn halves"
    return config.positions.base


def _ends(end: int) -> dict[str, Any]:
    return {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "torch_dtype": torch.float32}

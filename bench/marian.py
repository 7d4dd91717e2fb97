"""Hugging Face's Marian in the sizes of a comparison: trained by one engine, asked to `generate` by another."""

import transformers

from saccade.tokens.marks import Marks


def build_marian(
    *,
    vocabulary: int,
    marks: Marks,
    width: int,
    layers: int,
    heads: int,
    feedforward: int,
    dropout: float,
    use_cache: bool,
) -> transformers.MarianMTModel:
    """Random weights; dropout after the embedding and each sub-layer only, as the other engines have it."""
    config = transformers.MarianConfig(
        vocab_size=vocabulary,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=feedforward,
        decoder_ffn_dim=feedforward,
        dropout=dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        max_position_embeddings=512,
        scale_embedding=True,
        use_cache=use_cache,
        pad_token_id=marks.pad,
        eos_token_id=marks.end,
        decoder_start_token_id=marks.start,
        forced_eos_token_id=None,
    )
    return transformers.MarianMTModel(config)

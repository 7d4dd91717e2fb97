"""Hugging Face's Marian in the sizes of a comparison: trained by one engine, asked to `generate` by another."""

import transformers

from saccade.tokens.marks import BEGIN, END, PAD


def build_marian(
    *, vocabulary: int, width: int, layers: int, heads: int, hidden: int, dropout: float, use_cache: bool
) -> transformers.MarianMTModel:
    """Random weights; dropout after the embedding and each sub-layer only, as the other engines have it."""
    config = transformers.MarianConfig(
        vocab_size=vocabulary,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=hidden,
        decoder_ffn_dim=hidden,
        dropout=dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        max_position_embeddings=512,
        scale_embedding=True,
        use_cache=use_cache,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=BEGIN,
        forced_eos_token_id=None,
    )
    return transformers.MarianMTModel(config)

"""Encoder and decoder as one model: read X, attend, write Y."""

from typing import Literal

from pydantic import model_validator
from torch import Tensor, nn

from saccade.config import Record
from saccade.models.contract import Decoder, Encoder, Memory
from saccade.models.transformer import StackConfig, TransformerDecoder, TransformerEncoder, build_embedding


class EncoderDecoderConfig(Record):
    """Which encoder, which decoder, and which of their vocabularies' matrices are one."""

    kind: Literal["encoder-decoder"] = "encoder-decoder"
    encoder: StackConfig = StackConfig()
    """What reads."""
    decoder: StackConfig = StackConfig()
    """What writes."""
    tie: Literal["all", "decoder", "none"] = "all"
    """all: source and target embedding and output share one matrix (Press & Wolf 2017); decoder: the last two."""

    @model_validator(mode="after")
    def _tied_matrices_fit(self) -> "EncoderDecoderConfig":
        if self.tie == "all" and self.encoder.width != self.decoder.width:
            raise ValueError(
                f"tie = 'all' needs equal widths, not {self.encoder.width} and {self.decoder.width}; "
                "use tie = 'decoder'"
            )
        stacks = (self.decoder,) if self.tie == "decoder" else (self.encoder, self.decoder)
        if self.tie != "none" and any(stack.combine == "concatenate" for stack in stacks):
            raise ValueError(
                "concatenated positions halve the token vectors, which then cannot be tied; use tie = 'none'"
            )
        return self


class EncoderDecoder(nn.Module):
    """P(Y | X): the decoder writes while it looks at what the encoder read."""

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, source_MS: Tensor, source_mask_MS: Tensor | None, target_BT: Tensor) -> Tensor:
        """Teacher-forced logits [B, T, V]."""
        logits: Tensor = self.decoder(target_BT, self.read(source_MS, source_mask_MS))
        return logits

    def read(self, source_MS: Tensor, source_mask_MS: Tensor | None) -> Memory:
        memory: Memory = self.encoder(source_MS, source_mask_MS)
        return memory

    def flops(self, source: int, target: int) -> float:
        """Floating-point operations of one forward pass over so many tokens, in weight matrices."""
        return self.encoder.flops(source) + self.decoder.flops(source, target)


def build_encoder_decoder(config: EncoderDecoderConfig, vocabulary: int) -> EncoderDecoder:
    source_embed = build_embedding(config.encoder, vocabulary)
    target_embed = build_embedding(config.decoder, vocabulary)
    head = nn.Linear(config.decoder.width, vocabulary, bias=False)
    nn.init.normal_(head.weight, std=config.decoder.width**-0.5)
    if config.tie != "none":
        head.weight = target_embed.tokens.weight
    if config.tie == "all":
        source_embed.tokens = target_embed.tokens
    encoder = TransformerEncoder(config.encoder, source_embed)
    return EncoderDecoder(encoder, TransformerDecoder(config.decoder, target_embed, head, encoder.width))

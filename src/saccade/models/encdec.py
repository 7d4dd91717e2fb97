"""Encoder and decoder as one model: read X, attend, write Y."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from torch import Tensor, nn

from saccade.config import Record
from saccade.models.contract import Decoder, Encoder, Memory
from saccade.models.conv import ConvConfig, ConvDecoder, ConvEncoder
from saccade.models.rnn import RecurrentDecoder, RecurrentDecoderConfig, RecurrentEncoder, RecurrentEncoderConfig
from saccade.models.transformer import StackConfig, TransformerDecoder, TransformerEncoder
from saccade.nn.embed import Embedding
from saccade.nn.positions import NoPositionsConfig, PositionsConfig
from saccade.nn.rotary import RotaryConfig

EncoderConfig = Annotated[StackConfig | RecurrentEncoderConfig | ConvConfig, Field(discriminator="kind")]
DecoderConfig = Annotated[StackConfig | RecurrentDecoderConfig | ConvConfig, Field(discriminator="kind")]


class EncoderDecoderConfig(Record):
    """Which encoder, which decoder, and which of their vocabularies' matrices are one."""

    kind: Literal["encoder-decoder"] = "encoder-decoder"
    encoder: EncoderConfig = StackConfig()
    """What reads: kind = "transformer", "recurrent" or "convolution"."""
    decoder: DecoderConfig = StackConfig()
    """What writes; any encoder goes with any decoder."""
    tie: Literal["all", "decoder", "none"] = "all"
    """all: source and target embedding and output share one matrix (Press & Wolf 2017); decoder: the last two."""

    @model_validator(mode="before")
    @classmethod
    def _a_stack_is_a_transformer_unless_said(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        parts = {name: table[name] for name in ("encoder", "decoder") if isinstance(table.get(name), dict)}
        return table | {name: {"kind": "transformer"} | part for name, part in parts.items()}

    @model_validator(mode="after")
    def _tied_matrices_fit(self) -> "EncoderDecoderConfig":
        if self.tie == "all" and self.encoder.embed != self.decoder.embed:
            raise ValueError(
                f"tie = 'all' needs token vectors of equal width, not {self.encoder.embed} and {self.decoder.embed}; "
                "use tie = 'decoder'"
            )
        stacks = (self.decoder,) if self.tie == "decoder" else (self.encoder, self.decoder)
        if self.tie != "none" and any(getattr(stack, "combine", "add") == "concatenate" for stack in stacks):
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
    head = nn.Linear(config.decoder.embed, vocabulary, bias=False)
    nn.init.normal_(head.weight, std=config.decoder.embed**-0.5)
    if config.tie != "none":
        head.weight = target_embed.tokens.weight
    if config.tie == "all":
        source_embed.tokens = target_embed.tokens
    encoder = build_encoder(config.encoder, source_embed)
    return EncoderDecoder(encoder, build_decoder(config.decoder, target_embed, head, encoder))


def build_embedding(config: EncoderConfig | DecoderConfig, vocabulary: int) -> Embedding:
    if isinstance(config, RecurrentEncoderConfig | RecurrentDecoderConfig):
        positions: PositionsConfig = NoPositionsConfig()  # a state knows where it stands
    elif isinstance(config.positions, RotaryConfig):
        positions = NoPositionsConfig()  # every attention knows how far it looks
    else:
        positions = config.positions
    return Embedding(
        vocabulary,
        config.embed,
        positions,
        concatenate=getattr(config, "combine", "add") == "concatenate",
        dropout=config.dropout,
    )


def build_encoder(config: EncoderConfig, embed: Embedding) -> Encoder:
    match config:
        case RecurrentEncoderConfig():
            return RecurrentEncoder(config, embed)
        case ConvConfig():
            return ConvEncoder(config, embed)
        case _:
            return TransformerEncoder(config, embed)


def build_decoder(config: DecoderConfig, embed: Embedding, head: nn.Linear, encoder: Encoder) -> Decoder:
    match config:
        case RecurrentDecoderConfig():
            return RecurrentDecoder(config, embed, head, encoder.width, encoder.summary_width)
        case ConvConfig():
            return ConvDecoder(config, embed, head, encoder.width)
        case _:
            return TransformerDecoder(config, embed, head, encoder.width)

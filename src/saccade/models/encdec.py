"""Encoder and decoder as one model: read X, attend, write Y."""

from torch import Tensor, nn

from saccade.arch.convolution import ConvConfig
from saccade.arch.encoder_decoder import DecoderConfig, EncoderConfig, EncoderDecoderConfig
from saccade.arch.positions import NoPositionsConfig, PositionsConfig, added
from saccade.arch.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.models.contract import Decoder, Encoder, Memory
from saccade.models.conv import ConvDecoder, ConvEncoder
from saccade.models.rnn import RecurrentDecoder, RecurrentEncoder
from saccade.models.transformer import TransformerDecoder, TransformerEncoder
from saccade.nn.embed import Embedding


class EncoderDecoder(nn.Module):
    """P(Y | X): the decoder writes while it looks at what the encoder read."""

    def __init__(self, encoder: Encoder, decoder: Decoder, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.config = config

    def forward(self, source_MS: Tensor, source_mask_MS: Tensor | None, target_BT: Tensor) -> Tensor:
        """Teacher-forced logits [B, T, V]."""
        logits: Tensor = self.decoder(target_BT, self.read(source_MS, source_mask_MS))
        return logits

    def read(self, source_MS: Tensor, source_mask_MS: Tensor | None) -> Memory:
        memory: Memory = self.encoder(source_MS, source_mask_MS)
        return memory

    def flops(self, source: int, target: int) -> float:
        """Floating-point operations of one forward pass over so many tokens, in weight matrices."""
        return self.config.flops(self.decoder.head.out_features, source, target)


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
    return EncoderDecoder(encoder, build_decoder(config.decoder, target_embed, head, encoder), config)


def build_embedding(config: EncoderConfig | DecoderConfig, vocabulary: int) -> Embedding:
    if isinstance(config, RecurrentEncoderConfig | RecurrentDecoderConfig):
        positions: PositionsConfig = NoPositionsConfig()  # a state knows where it stands
    else:
        positions = added(config.positions)
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

"""Encoder and decoder as one model: read X, attend, write Y."""

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from saccade.arch.convolution import ConvConfig
from saccade.arch.convolutions import ConvolutionsFrontEnd
from saccade.arch.encoder_decoder import DecoderConfig, EncoderConfig, EncoderDecoderConfig
from saccade.arch.front_end import PatchesFrontEnd
from saccade.arch.grid import GridConfig
from saccade.arch.memories import check_memories, named
from saccade.arch.positions import NoPositionsConfig, PositionsConfig, added
from saccade.arch.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.arch.sound import SoundFrontEnd
from saccade.models.contract import AnyMemory, Decoder, Encoder, Memory, NamedMemories
from saccade.models.conv import ConvDecoder, ConvEncoder
from saccade.models.grid import GridEncoder
from saccade.models.rnn import RecurrentDecoder, RecurrentEncoder
from saccade.models.transformer import TransformerDecoder, TransformerEncoder
from saccade.nn.convolutions import PictureConvolutions
from saccade.nn.embed import Embedding
from saccade.nn.front_end import Patches
from saccade.nn.front_ends import AnyFrontEnd
from saccade.nn.sound import SoundFrames
from saccade.sites import SOURCE

Sources = Mapping[str, tuple[Tensor, Tensor | None]]
"""What several encoders read, by the names of their memories: the input, and which of it is real, tokens [M, S] or
pixels [M, height, width]."""


class EncoderDecoder(nn.Module):
    """P(Y | X): the decoder writes while it looks at what the encoders read.

    An only encoder is called `encoder`, the one whose memory is called picture `encoder_picture`.
    """

    def __init__(self, encoders: Mapping[str, Encoder], decoder: Decoder, config: EncoderDecoderConfig) -> None:
        super().__init__()
        for name, encoder in encoders.items():
            self.add_module(named("encoder", name), encoder)
        self.decoder = decoder
        self.config = config
        width, vocabulary = sum(config.memory_widths.values()), decoder.head.out_features
        self.ctc = nn.Linear(width, vocabulary) if config.ctc else None

    @property
    def encoders(self) -> dict[str, Encoder]:
        """By the names of their memories."""
        return {name: cast(Encoder, getattr(self, named("encoder", name))) for name in self.config.readers}

    def forward(self, source: Tensor | Sources, source_mask_MS: Tensor | None, target_BT: Tensor) -> Tensor:
        """Teacher-forced logits [B, T, V]."""
        logits: Tensor = self.decoder(target_BT, self.read(source, source_mask_MS))
        return logits

    def read(self, source: Tensor | Sources, source_mask_MS: Tensor | None = None) -> AnyMemory:
        """What an only encoder is given, with its mask, or what each of several is given, by name, with theirs."""
        encoders = self.encoders
        if isinstance(source, Tensor):
            source = dict.fromkeys(list(encoders)[:1], (source, source_mask_MS))
        check_memories(source, encoders)
        memories = {name: encoder(*source[name]) for name, encoder in encoders.items()}
        return NamedMemories(memories) if len(memories) > 1 else next(iter(memories.values()))

    def columns(self, memory: Memory) -> tuple[Tensor, Tensor]:
        """What CTC reads: logits [M, W, V] of each column of a picture's grid, or of each position where there is no
        grid; and how many of them are real [M]."""
        assert self.ctc is not None
        x_MSD, real_MS = memory.states_MSD, memory.mask_MS
        real_MS = x_MSD.new_ones(x_MSD.shape[:2], dtype=torch.bool) if real_MS is None else real_MS
        if memory.grid is not None:
            height, width = memory.grid
            cells = (len(x_MSD), height, width)
            real_MHW = real_MS[:, -height * width :].reshape(cells)
            share_MHW1 = real_MHW[..., None].to(x_MSD.dtype)
            x_MSD = (x_MSD[:, -height * width :].reshape(*cells, -1) * share_MHW1).sum(1) / share_MHW1.sum(1).clamp(1)
            real_MS = real_MHW.any(dim=1)
        return self.ctc(x_MSD), real_MS.sum(dim=1)

    def flops(self, source: int | Mapping[str, int], target: int) -> float:
        """Floating-point operations of one forward pass over so many positions, in weight matrices."""
        return self.config.flops(self.decoder.head.out_features, source, target)


def build_encoder_decoder(config: EncoderDecoderConfig, vocabulary: int) -> EncoderDecoder:
    fronts = {name: build_front_end(reader, vocabulary, name) for name, reader in config.readers.items()}
    target_embed = build_embedding(config.decoder, vocabulary)
    head = nn.Linear(config.decoder.embed, vocabulary, bias=False)
    nn.init.normal_(head.weight, std=config.decoder.embed**-0.5)
    if config.tie != "none":
        head.weight = target_embed.tokens.weight
    for front in fronts.values() if config.tie == "all" else ():
        if isinstance(front, Embedding):
            front.tokens = target_embed.tokens
    encoders = {name: build_encoder(reader, fronts[name], name) for name, reader in config.readers.items()}
    return EncoderDecoder(encoders, build_decoder(config, target_embed, head), config)


def build_front_end(config: EncoderConfig, vocabulary: int, memory: str = SOURCE) -> Embedding | AnyFrontEnd:
    """How an encoder's input becomes vectors; `memory` is the name of what it reads."""
    match front := config.front_end:
        case PatchesFrontEnd():
            return Patches(front, config.embed, config.dropout)
        case ConvolutionsFrontEnd():
            return PictureConvolutions(front, config.embed, config.dropout, memory)
        case SoundFrontEnd():
            return SoundFrames(front, config.embed, config.dropout, memory)
    assert not isinstance(config, GridConfig)
    return build_embedding(config, vocabulary)


def build_embedding(config: DecoderConfig | RecurrentEncoderConfig, vocabulary: int) -> Embedding:
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


def build_encoder(config: EncoderConfig, front: Embedding | AnyFrontEnd, memory: str = SOURCE) -> Encoder:
    """`memory` is the name of what it reads."""
    match config:
        case RecurrentEncoderConfig():
            return RecurrentEncoder(config, front)
        case ConvConfig():
            assert isinstance(front, Embedding)
            return ConvEncoder(config, front)
        case GridConfig():
            assert isinstance(front, PictureConvolutions)
            return GridEncoder(config, front)
        case _:
            return TransformerEncoder(config, front, memory)


def build_decoder(config: EncoderDecoderConfig, embed: Embedding, head: nn.Linear) -> Decoder:
    decoder, memories = config.decoder, config.memory_widths
    match decoder:
        case RecurrentDecoderConfig():
            return RecurrentDecoder(decoder, embed, head, memories, config.summary_width)
        case ConvConfig():
            return ConvDecoder(decoder, embed, head, memories)
        case _:
            return TransformerDecoder(decoder, embed, head, memories)

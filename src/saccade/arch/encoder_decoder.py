"""Encoder and decoder as one model: read X, attend, write Y. Any encoder goes with any decoder."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from saccade.arch.block import BlockConfig, position_vectors
from saccade.arch.convolution import ConvConfig
from saccade.arch.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.arch.weights import Weights, flops, linear, table, tied, within
from saccade.config import Record


class StackConfig(BlockConfig):
    """One of a Transformer's two stacks (Vaswani et al. 2017)."""

    kind: Literal["transformer"] = "transformer"
    combine: Literal["add", "concatenate"] = "add"
    """Positions added to the token's vector, or put beside it in half of the channels."""

    @property
    def concatenates(self) -> bool:
        """Whether position vectors take half of the channels."""
        return self.combine == "concatenate" and self.positions.kind in ("sinusoidal", "learned")

    @property
    def embed(self) -> int:
        """Width of what enters the first block."""
        return self.width

    @property
    def token_width(self) -> int:
        """Width of the token vectors themselves."""
        return self.width // 2 if self.concatenates else self.width

    @property
    def looks(self) -> int:
        """Cross-attention layers, in a decoder."""
        return self.layers

    @model_validator(mode="after")
    def _sinusoids_fit_half_of_the_width(self) -> "StackConfig":
        if self.positions.kind == "sinusoidal" and self.combine == "concatenate" and self.width % 4:
            raise ValueError(f"sinusoidal positions need an even width, not {self.width / 2:g}")
        return self


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
    def _a_stack_is_a_transformer_unless_said(cls, table: object) -> object:
        if not isinstance(table, dict):
            return table
        parts = {name: table[name] for name in ("encoder", "decoder") if isinstance(table.get(name), dict)}
        return table | {name: {"kind": "transformer"} | part for name, part in parts.items()}

    @model_validator(mode="after")
    def _parts_fit(self) -> "EncoderDecoderConfig":
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
        if isinstance(self.encoder, StackConfig) and any(self.encoder.windows):
            raise ValueError("windows are for stacks that write; an encoder looks in both directions")
        return self

    @property
    def summary_width(self) -> int:
        """Width of a memory in one vector: a recurrent encoder's last states, else the mean of all states."""
        encoder = self.encoder
        return encoder.summary_width if isinstance(encoder, RecurrentEncoderConfig) else encoder.width

    def weights(self, vocabulary: int) -> Weights:
        return self.encoder_weights(vocabulary) | self.decoder_weights(vocabulary)

    def encoder_weights(self, vocabulary: int) -> Weights:
        encoder = self.encoder
        match encoder:
            case RecurrentEncoderConfig():
                parts = encoder.weights()
            case ConvConfig():
                parts = encoder.weights("source")
            case _:
                parts = encoder.stack("source")
        return within("encoder", _embedding(encoder, vocabulary) | parts)

    def decoder_weights(self, vocabulary: int) -> Weights:
        decoder, memory = self.decoder, self.encoder.width
        match decoder:
            case RecurrentDecoderConfig():
                parts = decoder.weights(memory, self.summary_width)
            case ConvConfig():
                parts = decoder.weights("target", memory)
            case _:
                parts = decoder.stack("target", memory)
        embed = within("decoder", _embedding(decoder, vocabulary))
        tokens, head = "decoder.embed.tokens", "decoder.head"
        if self.tie == "all":
            embed |= tied(tokens, "encoder.embed.tokens", vocabulary, decoder.embed, per="lookup")
            tokens = "encoder.embed.tokens"
        if self.tie == "none":
            output = linear(head, vocabulary, decoder.embed, "target", bias=False)
        else:
            output = tied(head, tokens, vocabulary, decoder.embed, "target")
        return embed | within("decoder", parts) | output

    def flops(self, vocabulary: int, source: int, target: int) -> float:
        """Floating-point operations of one forward pass over so many tokens, in weight matrices."""
        return flops(self.weights(vocabulary), {"source": source, "target": target})


def _embedding(config: EncoderConfig | DecoderConfig, vocabulary: int) -> Weights:
    if isinstance(config, RecurrentEncoderConfig | RecurrentDecoderConfig):
        return table("embed.tokens", vocabulary, config.embed)
    width = config.token_width if isinstance(config, StackConfig) else config.width
    return table("embed.tokens", vocabulary, width) | position_vectors("embed.positions", config.positions, width)

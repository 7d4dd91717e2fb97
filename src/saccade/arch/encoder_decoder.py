"""Encoder and decoder as one model: read X, attend, write Y. Any encoder goes with any decoder."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from saccade.arch.block import NO_MEMORY, BlockConfig
from saccade.arch.convolution import ConvConfig
from saccade.arch.front_end import AnyInputFrontEnd, FrontEnd, TokensFrontEnd
from saccade.arch.grid import GridConfig
from saccade.arch.memories import check_name, named
from saccade.arch.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.arch.weights import Weight, Weights, flops, joined, linear, norm, tied, within
from saccade.config import Record, Table
from saccade.sites import SOURCE


class StackConfig(BlockConfig):
    """One of a Transformer's two stacks (Vaswani et al. 2017)."""

    kind: Literal["transformer"] = "transformer"
    combine: Literal["add", "concatenate"] = "add"
    """Positions added to the token's vector, or put beside it in half of the channels."""
    front: AnyInputFrontEnd | None = None
    """In an encoder, how the input becomes vectors: kind = "patches" or "convolutions" for pictures, "sound" for
    recordings; if not given, it is tokens."""
    convolution: int = Field(0, ge=0, le=255)
    """In an encoder, the neighbours that a convolution module in each block sees, an odd number, between self-attention
    and feed-forward network (Gulati et al. 2020, 2.2); 0: no such module."""

    @classmethod
    def modern(cls, table: Table) -> Table:
        table = super().modern(table)
        if table.get("front") is None or "positions" in table:
            return table
        return table | {"positions": {"kind": "none"}}

    @property
    def front_end(self) -> FrontEnd:
        return self.front or TokensFrontEnd(positions=self.positions, concatenate=self.concatenates)

    @property
    def concatenates(self) -> bool:
        """Whether position vectors take half of the channels."""
        return self.combine == "concatenate" and self.positions.kind in ("sinusoidal", "learned")

    @property
    def embed(self) -> int:
        """Width of what enters the first block."""
        return self.width

    @property
    def looks(self) -> int:
        """Cross-attention layers, in a decoder."""
        return self.layers

    @model_validator(mode="after")
    def _sinusoids_fit_half_of_the_width(self) -> "StackConfig":
        if self.positions.kind == "sinusoidal" and self.combine == "concatenate" and self.width % 4:
            raise ValueError(f"sinusoidal positions need an even width, not {self.width / 2:g}")
        return self

    @model_validator(mode="after")
    def _positions_are_the_front_ends(self) -> "StackConfig":
        known = ("none", "rotary") if self.front is not None and self.front.kind == "sound" else ("none",)
        if self.front is not None and self.front.kind == "sound" and self.positions.kind not in known:
            raise ValueError(f"front = 'sound' goes with positions of kind none or rotary, not {self.positions.kind!r}")
        if self.front is not None and self.positions.kind not in known:
            raise ValueError(f"front = {self.front.kind!r} has positions of its own, not {self.positions.kind!r} ones")
        return self

    @model_validator(mode="after")
    def _windows_have_a_middle(self) -> "StackConfig":
        if self.convolution and self.convolution % 2 == 0:
            raise ValueError(f"a convolution is odd, so that its window has a middle, not {self.convolution}")
        return self

    def block(self, per: str, memories: Mapping[str, int] = NO_MEMORY) -> Weights:
        found = super().block(per, memories)
        if not self.convolution:
            return found
        width = self.width
        parts = [
            linear("convolution.widen", 2 * width, width, per),
            {"convolution.taps": Weight((width, self.convolution), per), "convolution.bias": Weight((width,))},
            norm("convolution.norm", width),
            linear("convolution.out", width, width, per),
            norm("around_convolution.norm", width, self.norm),
        ]
        return found | joined(parts)


EncoderConfig = Annotated[StackConfig | RecurrentEncoderConfig | ConvConfig | GridConfig, Field(discriminator="kind")]
DecoderConfig = Annotated[StackConfig | RecurrentDecoderConfig | ConvConfig, Field(discriminator="kind")]


class EncoderDecoderConfig(Record):
    """Which encoder, which decoder, and which of their vocabularies' matrices are one."""

    kind: Literal["encoder-decoder"] = "encoder-decoder"
    encoder: EncoderConfig | None = None
    """What reads: kind = "transformer", "recurrent", "convolution" or "grid". A Transformer unless there are
    `encoders`."""
    encoders: dict[str, EncoderConfig] | None = Field(None, min_length=1, max_length=8)
    """Several that read, in place of `encoder`: the decoder looks at the memory of each, in this order, under its
    name, such as picture or question."""
    decoder: DecoderConfig = StackConfig()
    """What writes; any encoder goes with any decoder."""
    tie: Literal["all", "decoder", "none"] = "all"
    """all: the embeddings of source and target and the output share one matrix (Press & Wolf 2017); decoder: the last
    two."""
    ctc: bool | None = None
    """A layer on the memory that tells the text by itself, position by position (Graves et al. 2006): a second loss in
    training. Of a picture the positions are its columns."""

    @model_validator(mode="before")
    @classmethod
    def _a_stack_is_a_transformer_unless_said(cls, table: object) -> object:
        if not isinstance(table, dict):
            return table
        if table.get("encoder") is None and table.get("encoders") is None:
            table = table | {"encoder": {}}
        parts = {name: _transformer_unless_said(table.get(name)) for name in ("encoder", "decoder") if name in table}
        if isinstance(encoders := table.get("encoders"), dict):
            parts["encoders"] = {name: _transformer_unless_said(part) for name, part in encoders.items()}
        return table | parts

    @model_validator(mode="after")
    def _parts_fit(self) -> "EncoderDecoderConfig":
        if self.encoder is not None and self.encoders is not None:
            raise ValueError("a model has one encoder, or several encoders by name, not both")
        for name, encoder in self.readers.items():
            check_name(name)
            if isinstance(encoder, StackConfig) and any(encoder.windows):
                raise ValueError("windows are for stacks that write; an encoder looks in both directions")
            if isinstance(encoder, StackConfig) and encoder.positions.kind == "relative":
                raise ValueError("relative positions are for stacks that write; an encoder's are of another kind")
        if isinstance(self.decoder, StackConfig) and self.decoder.convolution:
            raise ValueError("a convolution module looks in both directions; a decoder has none")
        if isinstance(self.decoder, StackConfig) and self.decoder.front is not None:
            raise ValueError("a front end is an encoder's; what a decoder writes are tokens")
        if isinstance(self.decoder, ConvConfig) and len(self.readers) > 1:
            raise ValueError(f"a convolutional decoder looks at one memory, not at {len(self.readers)}")
        if self.ctc and len(self.readers) > 1:
            raise ValueError(f"ctc reads one memory, not {len(self.readers)}")
        self._ties_fit()
        return self

    def _ties_fit(self) -> None:
        tied_parts = [self.decoder, *(self.token_readers.values() if self.tie == "all" else ())]
        for part in tied_parts:
            if self.tie != "none" and part.embed != self.decoder.embed:
                raise ValueError(
                    f"tie = 'all' needs token vectors of equal width, not {part.embed} and {self.decoder.embed}; "
                    "use tie = 'decoder'"
                )
        if self.tie != "none" and any(getattr(part, "combine", "add") == "concatenate" for part in tied_parts):
            raise ValueError(
                "concatenated positions halve the token vectors, which then cannot be tied; use tie = 'none'"
            )

    @property
    def readers(self) -> dict[str, EncoderConfig]:
        """All encoders by the names of their memories."""
        if self.encoder is not None:
            return {SOURCE: self.encoder}
        return dict(self.encoders or {})

    @property
    def token_readers(self) -> dict[str, EncoderConfig]:
        """Those encoders that read tokens."""
        return {name: reader for name, reader in self.readers.items() if reader.front_end.kind == "tokens"}

    @property
    def memory_widths(self) -> dict[str, int]:
        """Widths of the memories by name."""
        return {name: reader.width for name, reader in self.readers.items()}

    @property
    def summary_width(self) -> int:
        """Width of all memories in one vector: recurrent encoders' last states, else the mean of all states."""
        return sum(
            reader.summary_width if isinstance(reader, RecurrentEncoderConfig) else reader.width
            for reader in self.readers.values()
        )

    @property
    def shared_tokens(self) -> str:
        """The first name of the token vectors that `tie` makes one matrix with the output layer."""
        first = next(iter(self.token_readers), None) if self.tie == "all" else None
        return f"{'decoder' if first is None else named('encoder', first)}.embed.tokens"

    def weights(self, vocabulary: int) -> Weights:
        found = self.encoder_weights(vocabulary) | self.decoder_weights(vocabulary)
        for name, width in self.memory_widths.items() if self.ctc else ():
            found |= linear("ctc", vocabulary, width, f"{name} column")
        return found

    def encoder_weights(self, vocabulary: int) -> Weights:
        found = joined(
            within(named("encoder", name), reader_weights(reader, vocabulary, name))
            for name, reader in self.readers.items()
        )
        if self.tie == "all":
            for name, reader in self.token_readers.items():
                found |= self._tied(f"{named('encoder', name)}.embed.tokens", vocabulary, reader.embed, "lookup")
        return found

    def decoder_weights(self, vocabulary: int) -> Weights:
        decoder, memories = self.decoder, self.memory_widths
        match decoder:
            case RecurrentDecoderConfig():
                parts = TokensFrontEnd().weights(decoder.embed, vocabulary, "target")
                parts |= decoder.weights(memories, self.summary_width)
            case ConvConfig():
                parts = decoder.front_end.weights(decoder.width, vocabulary, "target")
                parts |= decoder.weights("target", sum(memories.values()))
            case _:
                parts = decoder.front_end.weights(decoder.width, vocabulary, "target")
                parts |= decoder.stack("target", memories)
        found = within("decoder", parts)
        if self.tie == "none":
            return found | linear("decoder.head", vocabulary, decoder.embed, "target", bias=False)
        found |= self._tied("decoder.embed.tokens", vocabulary, decoder.embed, "lookup")
        return found | self._tied("decoder.head", vocabulary, decoder.embed, "target")

    def _tied(self, name: str, vocabulary: int, width: int, per: str) -> Weights:
        return {} if name == self.shared_tokens else tied(name, self.shared_tokens, vocabulary, width, per=per)

    def flops(self, vocabulary: int, source: int | Mapping[str, int], target: int) -> float:
        """Floating-point operations of one forward pass over so many positions, in weight matrices; several memories
        have theirs by name."""
        positions = dict.fromkeys(self.readers, source) if isinstance(source, int) else source
        counts = {"target": target}
        for name, reader in self.readers.items():
            counts |= reader_counts(reader, name, positions[name])
        return flops(self.weights(vocabulary), counts)


def reader_counts(config: EncoderConfig, memory: str, positions: int) -> dict[str, int]:
    """How often an encoder's matrices are multiplied for so many positions of its memory."""
    part = config if isinstance(config, RecurrentEncoderConfig) else config.front_end
    return part.counts(memory, positions)


def reader_weights(config: EncoderConfig, vocabulary: int, memory: str = SOURCE) -> Weights:
    """The tensors of an encoder with its front end; `memory` is what it reads, by name."""
    vectors = config.front_end.weights(config.embed, vocabulary, memory)
    return vectors | (config.stack(memory) if isinstance(config, StackConfig) else config.weights(memory))


def _transformer_unless_said(part: object) -> object:
    return {"kind": "transformer"} | part if isinstance(part, dict) else part

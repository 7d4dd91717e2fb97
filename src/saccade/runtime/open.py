"""Which runtime a model gets, and why: the C kernels where they know all its parts, else plain NumPy.

What neither knows is said by name; such a model needs PyTorch (`models/answering.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from saccade import native
from saccade.arch.bert import BertConfig
from saccade.arch.block import BlockConfig
from saccade.arch.encoder_decoder import DecoderConfig, EncoderConfig, EncoderDecoderConfig, StackConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.grid import GridConfig
from saccade.arch.heads import EncoderModel, HeadedConfig
from saccade.arch.memories import check_memories, named
from saccade.arch.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.runtime.contract import (
    AnyArrayMemory,
    AnyDecoder,
    ArrayMemories,
    ArrayMemory,
    ArraySources,
    Booleans,
    EncoderLike,
    Floats,
    How,
    Ids,
    Source,
)
from saccade.runtime.heads import head_outputs
from saccade.runtime.kernel_pictures import KernelGrid, unknown_in_pictures
from saccade.runtime.kernels import KernelDecoder, KernelEncoder, unknown_parts
from saccade.runtime.layers import Weights, part_of, renamed
from saccade.runtime.packing import BITS
from saccade.runtime.plain import PlainDecoder, PlainEncoder, PlainGrid
from saccade.runtime.recurrent import RecurrentReader, RecurrentWriter
from saccade.runtime.sound import column_logprobs
from saccade.runtime.watch import ArraysHeard, edit_here, watched, watcher, watching
from saccade.sites import SOURCE

FASTEST: How = "int16"
"""The near-lossless packing that is used where nothing else is asked for."""


@dataclass(frozen=True)
class Choice:
    """How a model, or a part of it, runs."""

    how: How
    engine: str
    """kernels, plain or PyTorch."""
    why: str

    def __str__(self) -> str:
        return f"{self.engine} ({self.how}): {self.why}"


Part = EncoderConfig | DecoderConfig | GptConfig | HeadedConfig
"""What a model is made of."""


class UnknownPart(Exception):
    """A part that runs neither on the kernels nor in plain NumPy."""


def choose(configs: Sequence[Part], how: How | None, memories: Sequence[str] = (SOURCE,)) -> Choice:
    """The runtime of a model made of these stacks, which looks at these memories; `how` is what was asked for."""
    if unknown := unknown_to_plain(configs):
        raise UnknownPart(", ".join(unknown))
    if how == "exact":
        return Choice("exact", "plain", "exact was asked for")
    if native.kernels() is None:
        return Choice("exact", "plain", f"no C kernels here: {native.why_not()}")
    if missing := unknown_to_kernels(configs, memories):
        return Choice("exact", "plain", f"the C kernels do not know {', '.join(missing)}")
    return Choice(how or FASTEST, "kernels", "the C kernels know all parts")


def choose_sequence(config: EncoderDecoderConfig, how: How | None) -> Choice:
    """The runtime of encoders and a decoder: where the kernels know the decoder only, they write what plain NumPy has
    read. An input is read once, and written token by token."""
    parts, memories = (*config.readers.values(), config.decoder), list(config.readers)
    whole = choose(parts, how, memories)
    if whole.engine == "kernels" or how == "exact" or native.kernels() is None:
        return whole
    if unknown_to_kernels((config.decoder,), memories):
        return whole
    missing = ", ".join(unknown_to_kernels(tuple(config.readers.values())))
    why = f"the C kernels write; plain NumPy reads, for they do not know {missing} of the encoder"
    return Choice(how or FASTEST, "kernels", why)


def unknown_to_plain(configs: Sequence[Part]) -> list[str]:
    """The parts that plain NumPy cannot run, as recipes name them."""
    known = BlockConfig | RecurrentEncoderConfig | RecurrentDecoderConfig | GridConfig
    return list(dict.fromkeys(f"kind = {config.kind!r}" for config in configs if not isinstance(config, known)))


def unknown_to_kernels(configs: Sequence[Part], memories: Sequence[str] = (SOURCE,)) -> list[str]:
    """The parts that the kernels cannot run, as recipes name them."""
    found = [] if len(memories) == 1 else [f"encoders = {', '.join(memories)}"]
    for config in configs:
        if not isinstance(config, BlockConfig | GridConfig):
            found.append(f"kind = {config.kind!r}")
        if isinstance(config, BlockConfig):
            found += unknown_parts(config)
        if isinstance(config, StackConfig | GridConfig):
            found += unknown_in_pictures(config.front_end)
        if isinstance(config, StackConfig) and config.convolution:
            found.append(f"convolution = {config.convolution}")
    return list(dict.fromkeys(found))


def plain_encoder(config: EncoderConfig, weights: Weights, memory: str = SOURCE) -> EncoderLike:
    """`memory` is the name of what it reads."""
    match config:
        case StackConfig():
            return PlainEncoder(config, weights, memory)
        case RecurrentEncoderConfig():
            return RecurrentReader(config, weights, memory)
        case GridConfig():
            return PlainGrid(config, weights, memory)
    raise UnknownPart(f"kind = {config.kind!r}")


def plain_decoder(config: DecoderConfig, weights: Weights, memories: Sequence[str] = (SOURCE,)) -> AnyDecoder:
    """It looks at memories of these names."""
    match config:
        case StackConfig():
            return PlainDecoder(config, weights, memories)
        case RecurrentDecoderConfig():
            return RecurrentWriter(config, weights, memories)
    raise UnknownPart(f"kind = {config.kind!r}")


class SequenceRuntime:
    """Encoders and a decoder that answer; while somebody watches, the plain ones do."""

    def __init__(self, config: EncoderDecoderConfig, weights: Weights, how: How | None = None) -> None:
        """`weights` are all tensors by name, tied ones under each of their names."""
        self.choice = choose_sequence(config, how)
        self.config = config
        self._ctc = {name: weights[name] for name in ("ctc.weight", "ctc.bias") if config.ctc}
        self.reading = {name: part_of(weights, named("encoder", name)) for name in config.readers}
        self.writing = part_of(weights, "decoder")
        if self.choice.engine == "kernels":
            _ = self._fast  # packed now: several threads may ask for it at once

    @cached_property
    def _plain(self) -> tuple[Mapping[str, EncoderLike], AnyDecoder]:
        # Widened once, for every call reads them.
        readers = {
            name: plain_encoder(config, dict(self.reading[name]), name) for name, config in self.config.readers.items()
        }
        return readers, plain_decoder(self.config.decoder, dict(self.writing), list(readers))

    @cached_property
    def _fast(self) -> tuple[Mapping[str, EncoderLike], AnyDecoder]:
        if self.choice.engine != "kernels":
            return self._plain
        bits, writer = BITS[self.choice.how], self.config.decoder
        readers: dict[str, EncoderLike] = {}
        for name, reader in self.config.readers.items():
            known = not unknown_to_kernels((reader,))
            readers[name] = _kernel_encoder(reader, self.reading[name], bits) if known else self._plain[0][name]
        assert isinstance(writer, StackConfig)
        (memory,) = readers
        return readers, KernelDecoder(writer, _looking_at_source(self.writing, memory), bits)

    @property
    def encoders(self) -> Mapping[str, EncoderLike]:
        """By the names of their memories."""
        return (self._plain if watched() else self._fast)[0]

    @property
    def decoder(self) -> AnyDecoder:
        return (self._plain if watched() else self._fast)[1]

    def read(self, source: Source | ArraySources, mask_MS: Booleans | None = None) -> AnyArrayMemory:
        """What an only encoder is given, padded, with its mask; or what each of several is given, by name, with
        theirs."""
        encoders = self.encoders
        if not isinstance(source, Mapping):
            source = dict.fromkeys(list(encoders)[:1], (source, mask_MS))
        check_memories(source, encoders)
        memories = {name: encoder(*source[name]) for name, encoder in encoders.items()}
        return ArrayMemories(memories) if len(memories) > 1 else next(iter(memories.values()))

    def columns(self, memory: AnyArrayMemory) -> Floats | None:
        """What CTC tells by itself at each position of a memory: log-probabilities [M, S, V]; None where a model has no
        such layer."""
        return column_logprobs(self._ctc, memory.states_MSD) if self._ctc and isinstance(memory, ArrayMemory) else None

    def look(self, source: Source | ArraySources, target_BT: Ids) -> ArraysHeard:
        """Every attention weight of one teacher-forced pass."""
        return _heard(lambda: _write(self.decoder, self.read(source), target_BT))


class LanguageRuntime:
    """A decoder without memory."""

    def __init__(self, config: GptConfig, weights: Weights, how: How | None = None) -> None:
        self.choice = choose((config,), how)
        self.config, self.weights, self.context = config, part_of(weights, "decoder"), config.context
        if self.choice.engine == "kernels":
            _ = self._fast  # packed now: the first text should not wait for it

    @cached_property
    def plain(self) -> PlainDecoder:
        return PlainDecoder(self.config, dict(self.weights))

    @cached_property
    def _fast(self) -> AnyDecoder:
        if self.choice.engine != "kernels":
            return self.plain
        return KernelDecoder(self.config, self.weights, BITS[self.choice.how])

    @property
    def decoder(self) -> AnyDecoder:
        return self.plain if watched() else self._fast

    def logits(self, tokens_BT: Ids) -> Floats:
        """Of the token that follows each position, exact: [B, T, V]."""
        return _write(self.plain, None, tokens_BT)

    def written(self, tokens_BT: Ids) -> Floats:
        """The same, in the arithmetic that it writes in."""
        return _write(self.decoder, None, tokens_BT)

    def look(self, tokens_BT: Ids) -> ArraysHeard:
        """Every attention weight of one pass over a text."""
        return _heard(lambda: self.logits(tokens_BT))


class EncoderRuntime:
    """An encoder with a head."""

    def __init__(self, config: EncoderModel, weights: Weights, how: How | None = None) -> None:
        self.choice = choose((config.encoder,), how)
        self.config, self.weights, self.context = config, weights, config.context

    @cached_property
    def plain(self) -> PlainEncoder | PlainGrid:
        encoder, weights = self.config.encoder, dict(part_of(self.weights, "encoder"))
        return (
            PlainGrid(encoder, weights) if isinstance(encoder, GridConfig) else PlainEncoder(_stack(encoder), weights)
        )

    @cached_property
    def _fast(self) -> PlainEncoder | PlainGrid | KernelEncoder | KernelGrid:
        if self.choice.engine != "kernels":
            return self.plain
        return _kernel_encoder(self.config.encoder, part_of(self.weights, "encoder"), BITS[self.choice.how])

    @cached_property
    def _head(self) -> Weights:
        return {name: self.weights[name] for name in self.weights if not name.startswith("encoder.")}

    def outputs(
        self,
        tokens_BT: Source,
        mask_BT: Booleans | None = None,
        segments_BT: Ids | None = None,
        chosen_BT: Booleans | None = None,
    ) -> Floats:
        """What the head says: of the chosen positions, row after row [N, V], or of whole rows [B, classes]."""
        encoder = self.plain if watched() else self._fast
        memory = encoder(tokens_BT, mask_BT, segments_BT)
        return head_outputs(self.config, self._head, memory, chosen_BT)

    def look(self, tokens_BT: Source, segments_BT: Ids | None = None) -> ArraysHeard:
        """Every attention weight of one pass over a text."""
        return _heard(lambda: self.plain(tokens_BT, None, segments_BT))


def _looking_at_source(weights: Weights, memory: str) -> Weights:
    """A decoder's tensors as the kernels name them: to them an only memory is called `source`, whatever its name."""
    if memory == SOURCE:
        return weights
    looks = {f".{named(part, memory)}.": f".{part}." for part in ("cross_attention", "around_cross")}

    def by_kernels(name: str) -> str:
        for ours, theirs in looks.items():
            name = name.replace(ours, theirs)
        return name

    return renamed(weights, by_kernels)


def _heard(run: Callable[[], object]) -> ArraysHeard:
    """What is heard while something runs, under the edit of whoever watches already."""
    above = watcher()
    with watching(edit_here()) as looks:
        if above is not None:
            looks.inside, looks.arrays = above.inside, above.arrays
        run()
    return looks


def _write(decoder: AnyDecoder, memory: AnyArrayMemory | None, tokens_BT: Ids) -> Floats:
    """Logits [B, T, V] of what follows each token, all written from the beginning."""
    rows, length = tokens_BT.shape
    state = decoder.start(memory, 1 if memory is not None else rows)
    return decoder.extend(tokens_BT, np.full(rows, length), state, every=True)[0]


def _kernel_encoder(config: EncoderConfig | HeadedConfig, weights: Weights, bits: int) -> KernelEncoder | KernelGrid:
    if isinstance(config, GridConfig):
        return KernelGrid(config, weights, bits)
    assert isinstance(config, BertConfig | StackConfig)
    return KernelEncoder(config, weights, bits)


def _stack(config: HeadedConfig) -> BertConfig | StackConfig:
    assert isinstance(config, BertConfig | StackConfig)
    return config

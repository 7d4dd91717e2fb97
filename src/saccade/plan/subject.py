"""What is planned: the tensors of a model, and how often each is multiplied for one training text."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from saccade.arch.block import BlockConfig
from saccade.arch.encoder_decoder import EncoderDecoderConfig, reader_counts
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import ClassHead
from saccade.arch.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.arch.weights import Weights, parameters
from saccade.arch.xlnet import XlnetConfig
from saccade.presets.preset import AnyModel, Preset, Trained

NOT_TOLD = Trained()
MASKED_SHARE = 0.15
"""Of the tokens of a text, those that are masked and guessed (Devlin et al. 2018, 3.1)."""


@dataclass(frozen=True)
class PlannedStack:
    """A stack of equal Transformer blocks in one training text."""

    name: str
    config: BlockConfig | XlnetConfig
    length: int
    """Positions of a text."""
    seen: tuple[int, ...] = ()
    """Positions of each memory that it looks at."""
    causal: bool = False

    @property
    def layers(self) -> int:
        return self.config.layers

    @property
    def width(self) -> int:
        return self.config.width

    @property
    def heads(self) -> int:
        return self.config.heads

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return getattr(self.config, "key_heads", None) or self.heads

    @property
    def projected(self) -> int:
        """Numbers of a position's query, key and value."""
        return sum(self.config.sizes) if isinstance(self.config, BlockConfig) else 3 * self.width

    def keys(self, layer: int) -> int:
        """Positions of its own text that a position looks at, at most."""
        window = self.config.window(layer) if isinstance(self.config, BlockConfig) else None
        return min(self.length, window or self.length)


@dataclass(frozen=True)
class Subject:
    """A model and the shape of its training texts."""

    name: str
    title: str
    model: AnyModel
    vocabulary: int
    context: int
    """Positions of a text; of a pair, of each side."""
    trained: Trained = NOT_TOLD
    uncounted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    published: str = ""
    """The number of parameters as the paper prints it."""

    @classmethod
    def of(cls, preset: Preset, context: int | None = None) -> "Subject":
        return cls(
            preset.name, preset.title, preset.model, preset.vocabulary, context or preset.context, preset.trained,
            preset.uncounted, preset.notes, preset.published,
        )  # fmt: skip

    def with_context(self, context: int) -> "Subject":
        return replace(self, context=context)

    @cached_property
    def weights(self) -> Weights:
        return self.model.weights(self.vocabulary)

    @cached_property
    def parameters(self) -> int:
        """As papers count them; `weights` may hold a head more, which only pre-training needs."""
        counted = {
            name: weight
            for name, weight in self.weights.items()
            if not any(name.startswith(f"{part}.") for part in self.uncounted)
        }
        return parameters(counted)

    @property
    def stored(self) -> int:
        """Numbers that are trained, all heads included."""
        return parameters(self.weights)

    @property
    def tokens(self) -> int:
        """Of a training text: both sides of a pair."""
        readers = len(self.model.readers) if isinstance(self.model, EncoderDecoderConfig) else 0
        return self.context * (1 + readers)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How often matrices are multiplied for one text, by what they are multiplied with."""
        model, length = self.model, self.context
        if isinstance(model, EncoderDecoderConfig):
            found = {"target": length, "row": 1, "distance": length}
            for name, reader in model.readers.items():
                found |= reader_counts(reader, name, length)
            return found
        if isinstance(model, GptConfig):
            return {"target": length, "distance": length}
        chosen = length if not isinstance(model.head, ClassHead) else 1
        found = {"source": length, "row": 1, "chosen": max(1, round(MASKED_SHARE * chosen)), "distance": 2 * length}
        front = getattr(model.encoder, "front_end", None)
        return found | (front.counts("source", length) if front is not None else {})

    @cached_property
    def stacks(self) -> tuple[PlannedStack, ...]:
        """Its stacks of Transformer blocks; recurrent and convolutional parts are none."""
        model, length = self.model, self.context
        if isinstance(model, EncoderDecoderConfig):
            found = [_stack("encoder", reader, length) for reader in model.readers.values()]
            seen = tuple(length for _ in model.readers)
            found.append(_stack("decoder", model.decoder, length, seen=seen, causal=True))
            return tuple(one for one in found if one is not None)
        if isinstance(model, GptConfig):
            return (PlannedStack("decoder", model, length, causal=True),)
        one = _stack("encoder", model.encoder, length)
        return () if one is None else (one,)

    @property
    def recurrent(self) -> list[tuple[RecurrentEncoderConfig | RecurrentDecoderConfig, int]]:
        """Its recurrent parts, and the positions of a text that they go through."""
        if not isinstance(self.model, EncoderDecoderConfig):
            return []
        kinds = RecurrentEncoderConfig | RecurrentDecoderConfig
        parts = [*self.model.readers.values(), self.model.decoder]
        return [(part, self.context) for part in parts if isinstance(part, kinds)]

    @property
    def layers(self) -> int:
        """Of all stacks."""
        return sum(stack.layers for stack in self.stacks)


def _stack(name: str, config: Any, length: int, **more: Any) -> PlannedStack | None:
    return PlannedStack(name, config, length, **more) if isinstance(config, BlockConfig | XlnetConfig) else None

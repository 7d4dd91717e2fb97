"""Recurrent encoder and decoder: from a fixed vector (Sutskever, Cho) to attention (Bahdanau, Luong)."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from saccade.arch.front_end import AnyInputFrontEnd, FrontEnd, TokensFrontEnd
from saccade.arch.memories import named
from saccade.arch.weights import Weights, joined, linear, within
from saccade.config import Record
from saccade.sites import SOURCE

CellName = Literal["gru", "lstm"]
GATES: dict[CellName, int] = {"gru": 3, "lstm": 4}
"""Gates of a cell, each as wide as its state."""
CARRIES: dict[CellName, int] = {"gru": 1, "lstm": 2}
"""Vectors a cell carries from step to step."""


class RecurrentEncoderConfig(Record):
    """A stack of recurrent layers that reads."""

    kind: Literal["recurrent"] = "recurrent"
    cell: CellName = "gru"
    """gru: gated recurrent unit; lstm: long short-term memory."""
    layers: int = Field(1, ge=1, le=100)
    """Layers, one above the other."""
    width: int = Field(256, ge=1, le=65536)
    """Width of the state; a bidirectional layer has two of half the width."""
    embed: int = Field(256, ge=1, le=65536)
    """Width of the vectors that enter the first layer: those of tokens, or of what the front end makes."""
    front: AnyInputFrontEnd | None = None
    """How the input becomes vectors: kind = "patches" or "convolutions" for pictures, "sound" for recordings; if not
    given, it is tokens."""
    bidirectional: bool = True
    """A second state reads from the end."""
    pyramid: int = Field(0, ge=0, le=8)
    """So many of the upper layers read the states below in pairs, side by side, so that each halves the number of
    positions (Chan et al. 2016, 3.1)."""
    reverse: bool = False
    """Read from the end only (Sutskever et al. 2014, 3.3)."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Share of each layer's input and output dropped in training."""

    @model_validator(mode="after")
    def _directions_make_sense(self) -> "RecurrentEncoderConfig":
        if self.bidirectional and self.reverse:
            raise ValueError("a bidirectional encoder reads in both directions already; set reverse = false")
        if self.bidirectional and self.width % 2:
            raise ValueError(f"the two directions share the width, and {self.width} is odd")
        return self

    @model_validator(mode="after")
    def _the_pyramid_has_a_base(self) -> "RecurrentEncoderConfig":
        if self.pyramid >= self.layers:
            raise ValueError(f"of {self.layers} layers at most {self.layers - 1} can halve the positions")
        if self.pyramid and self.front is not None and self.front.kind != "sound":
            raise ValueError(f"a pyramid reads tokens or a sound, not front = {self.front.kind!r}")
        return self

    def halves(self, layer: int) -> bool:
        """Whether a layer, counted from 0, reads pairs."""
        return layer >= self.layers - self.pyramid

    def inputs(self, layer: int) -> int:
        """Width of what a layer, counted from 0, reads."""
        return (self.width if layer else self.embed) * (2 if self.halves(layer) else 1)

    def counts(self, per: str, positions: int) -> dict[str, int]:
        """How often the matrices of each layer are multiplied for so many positions of the memory `per`."""
        found, below = {}, positions
        for layer in reversed(range(self.layers)):
            found[_layer(per, layer)] = below
            below *= 2 if self.halves(layer) else 1
        return self.front_end.counts(per, below) | found | {per: positions}

    @property
    def backwards(self) -> list[bool]:
        """The directions of each layer: whether it reads from the end."""
        return [False, True] if self.bidirectional else [self.reverse]

    @property
    def summary_width(self) -> int:
        """All last states side by side."""
        return self.layers * CARRIES[self.cell] * self.width

    @property
    def front_end(self) -> FrontEnd:
        return self.front or TokensFrontEnd()  # a state knows where it stands

    def weights(self, per: str = SOURCE) -> Weights:
        """Without the front end."""
        part = self.width // len(self.backwards)
        return joined(
            within(f"layers.{layer}.{side}", cell(self.cell, self.inputs(layer), part, _layer(per, layer)))
            for layer in range(self.layers)
            for side in range(len(self.backwards))
        )


class RecurrentDecoderConfig(Record):
    """A stack of recurrent layers that writes."""

    kind: Literal["recurrent"] = "recurrent"
    cell: CellName = "gru"
    """gru: gated recurrent unit; lstm: long short-term memory."""
    layers: int = Field(1, ge=1, le=100)
    """Layers, one above the other."""
    width: int = Field(256, ge=1, le=65536)
    """Width of the state."""
    embed: int = Field(256, ge=1, le=65536)
    """Width of the token vectors, and of what the output layer reads."""
    attention: Literal["none", "additive", "dot", "general", "scaled-dot"] = "additive"
    """How the state is matched with the source; none: the context is the source's last state, always the same."""
    context: Literal["none", "update", "output", "feeding"] = "update"
    """Where the context goes. update: into every step and output (Cho, Bahdanau); output: into the output alone
    (Luong); feeding: that output also into the next step (Luong 3.3); none: the last state starts the decoder, that is
    all (Sutskever)."""
    dropout: float = Field(0.2, ge=0, lt=1)
    """Share of each layer's input and output dropped in training."""

    @model_validator(mode="after")
    def _attention_goes_somewhere(self) -> "RecurrentDecoderConfig":
        if self.attention != "none" and self.context == "none":
            raise ValueError("attention makes a context, and context = 'none' has no use for it")
        return self

    @property
    def attends(self) -> bool:
        return self.attention != "none"

    @property
    def looks(self) -> int:
        """Cross-attention layers."""
        return 1 if self.attends else 0

    def seen_width(self, memory_width: int) -> int:
        """Width of the context, for memories that are so wide together."""
        if self.context == "none":
            return 0
        return memory_width if self.attends else self.width

    def beside_width(self, memory_width: int) -> int:
        """Width of what enters the first cell beside the token."""
        seen = self.seen_width(memory_width)
        return {"none": 0, "update": seen, "output": 0, "feeding": self.embed}[self.context]

    def weights(self, memories: Mapping[str, int], summary_width: int) -> Weights:
        """Without token vectors and output layer; `memories` are the names and widths of what it looks at."""
        width = self.width
        memory_width = sum(memories.values())
        seen, beside = self.seen_width(memory_width), self.beside_width(memory_width)
        parts = [self._score(*memory) for memory in memories.items()]
        for layer in range(self.layers):
            inputs = width if layer else self.embed
            parts.append(within(f"layers.{layer}", cell(self.cell, inputs, width, "target")))
        # Once for each memory: the source's last states become the first ones here.
        parts.append(linear("begin", self.layers * CARRIES[self.cell] * width, summary_width, "row"))
        if not self.attends and self.context != "none":
            parts.append(linear("summarize", width, summary_width, "row"))
        if beside:
            parts.append(linear("beside", GATES[self.cell] * width, beside, "target", bias=False))
        inputs = width + seen + (self.embed if self.context == "update" else 0)
        return joined([*parts, linear("readout", self.embed, inputs, "target")])

    def _score(self, memory: str, memory_width: int) -> Weights:
        """How its state is matched with one memory."""
        width, score = self.width, f"{named('cross_attention', memory)}.score"
        scores: dict[str, Weights] = {
            "additive": linear(f"{score}.query", width, width, "target")
            | linear(f"{score}.key", width, memory_width, memory, bias=False)
            | linear(f"{score}.energy", 1, width, "target", bias=False),
            "general": linear(f"{score}.key", width, memory_width, memory, bias=False),
        }
        return scores.get(self.attention, {})


def _layer(per: str, layer: int) -> str:
    return f"{per} layer {layer}"


def cell(name: CellName, inputs: int, width: int, per: str) -> Weights:
    """The tensors of one cell, its gates side by side in PyTorch's order."""
    gates = GATES[name] * width
    return linear("input", gates, inputs, per) | linear("state", gates, width, per)

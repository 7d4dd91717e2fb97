"""Convolutional encoder and decoder with attention in every layer (Gehring et al. 2017)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from saccade.arch.convolution import ConvConfig
from saccade.errors import UserError
from saccade.models.contract import (
    AnyMemory,
    Decoder,
    Encoder,
    Memory,
    State,
    join_memories,
    memories_by_name,
    memories_kept,
    rows_per_memory,
)
from saccade.nn.attention import attend
from saccade.nn.conv import GatedConvolution
from saccade.nn.embed import Embedding
from saccade.nn.masks import Keys
from saccade.nn.scores import ScaledDot
from saccade.sites import SOURCE, Site

HALF = math.sqrt(0.5)
"""Two unit variances added and scaled by this are one again."""


class Convolutions(nn.ModuleList):
    """A list of convolutions that knows it holds convolutions."""

    def __iter__(self) -> Iterator[GatedConvolution]:
        return cast(Iterator[GatedConvolution], super().__iter__())


class ConvEncoder(Encoder):
    """Each layer widens what a position sees by its neighbours."""

    def __init__(self, config: ConvConfig, embed: Embedding) -> None:
        super().__init__()
        if config.kernel % 2 == 0:
            raise UserError(f"an encoder's kernel has a middle: it must be odd, not {config.kernel}")
        self.width = config.width
        self.embed = embed
        self.layers = Convolutions(
            GatedConvolution(config.width, config.kernel, config.dropout) for _ in range(config.layers)
        )
        self.beside = (config.kernel - 1) // 2

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None) -> Memory:
        x = embedded = self.embed(source_MS)
        for layer in self.layers:
            # Padding within the batch must look like the zeros beyond every text's end.
            x = x if mask_MS is None else x * mask_MS[..., None]
            x = (x + layer(nn.functional.pad(x, (0, 0, self.beside, self.beside)))) * HALF
        # What is looked at says both what stands there and what stands around it (their 3.3).
        return Memory((x + embedded) * HALF, mask_MS)


class ConvLook(nn.Module):
    """A layer's looks at the memory, the last word's vector in the query (their 3.3)."""

    def __init__(self, width: int, memory_width: int, memory: str = SOURCE) -> None:
        super().__init__()
        self.site = Site.cross(memory)
        self.query = nn.Linear(width, memory_width)
        self.out = nn.Linear(memory_width, width)
        # Theirs is not scaled; unscaled, most layers' weights were all 0 or 1 soon and learnt nothing more.
        self.score = ScaledDot()

    def forward(self, x_BTD: Tensor, embedded_BTD: Tensor, memory_MSD: Tensor, mask: Keys | None) -> Tensor:
        q_BTD = self.query((x_BTD + embedded_BTD) * HALF)
        memory = memory_MSD[:, None]
        q = q_BTD.reshape(len(memory_MSD), 1, -1, q_BTD.shape[-1])
        context = attend(self, q, memory, memory, score=self.score, mask=mask).reshape(q_BTD.shape)
        out: Tensor = self.out(context)
        return out


@dataclass(frozen=True)
class ConvState(State):
    """The last few inputs of every layer, and the memory."""

    windows: list[Tensor]
    """[B, kernel - 1, D] each; zeros stand before the beginning."""
    lengths_B: Tensor
    """How much each row has written."""
    memory_MSD: Tensor
    mask_MS: Tensor | None

    @property
    def rows(self) -> int:
        return self.lengths_B.shape[0]

    @property
    def device(self) -> torch.device:
        return self.lengths_B.device

    @property
    def nbytes(self) -> int:
        return sum(window.nbytes for window in self.windows) + self.memory_MSD.nbytes

    def reorder(self, rows: Tensor) -> "ConvState":
        windows = [window.index_select(0, rows) for window in self.windows]
        after = replace(self, windows=windows, lengths_B=self.lengths_B.index_select(0, rows))
        kept = memories_kept(rows, self.rows, len(self.memory_MSD))
        if kept is None:
            return after
        mask_MS = None if self.mask_MS is None else self.mask_MS.index_select(0, kept)
        return replace(after, memory_MSD=self.memory_MSD.index_select(0, kept), mask_MS=mask_MS)

    def repeat(self, times: int) -> "ConvState":
        windows = [window.repeat_interleave(times, dim=0) for window in self.windows]
        return replace(self, windows=windows, lengths_B=self.lengths_B.repeat_interleave(times))

    def join(self, other: "ConvState") -> "ConvState":
        (memory_MSD,), mask_MS = join_memories([self.memory_MSD], [other.memory_MSD], self.mask_MS, other.mask_MS)
        return ConvState(
            windows=[torch.cat(pair) for pair in zip(self.windows, other.windows, strict=True)],
            lengths_B=torch.cat([self.lengths_B, other.lengths_B]),
            memory_MSD=memory_MSD,
            mask_MS=mask_MS,
        )


class ConvDecoder(Decoder):
    """Each layer sees a few of the words before, then looks at the memory."""

    def __init__(self, config: ConvConfig, embed: Embedding, head: nn.Linear, memories: Mapping[str, int]) -> None:
        super().__init__()
        ((self.memory, memory_width),) = memories.items()
        self.embed, self.head = embed, head
        self.layers = Convolutions(
            GatedConvolution(config.width, config.kernel, config.dropout) for _ in range(config.layers)
        )
        self.cross_attentions = nn.ModuleList(
            ConvLook(config.width, memory_width, self.memory) for _ in range(config.layers)
        )
        self.width, self.before = config.width, config.kernel - 1

    def features(self, tokens_BT: Tensor, memory: AnyMemory | None = None) -> Tensor:
        features_BTD, _ = self._write(tokens_BT, self.start(memory, rows_per_memory(tokens_BT, memory)))
        return features_BTD

    def start(self, memory: AnyMemory | None, rows: int = 1) -> ConvState:
        if memory is None:
            raise ValueError("a convolutional decoder looks at what an encoder read")
        one = memories_by_name(memory, [self.memory])[self.memory]
        states_MSD = one.states_MSD
        count = len(states_MSD) * rows
        windows = [states_MSD.new_zeros(count, self.before, self.width) for _ in self.layers]
        lengths_B = torch.zeros(count, dtype=torch.long, device=states_MSD.device)
        return ConvState(windows, lengths_B, states_MSD, one.mask_MS)

    def extend(self, tokens_BT: Tensor, lengths_B: Tensor, state: State) -> tuple[Tensor, ConvState]:
        assert isinstance(state, ConvState)
        features_BTD, inputs = self._write(tokens_BT, state)
        # Each row's own last inputs: [lengths, lengths + before) of the window and what came after it.
        at_BW1 = (lengths_B[:, None] + torch.arange(self.before, device=lengths_B.device))[..., None]
        windows = [x_BTD.gather(1, at_BW1.expand(-1, -1, self.width)) for x_BTD in inputs]
        return self.logits(features_BTD), replace(state, windows=windows, lengths_B=state.lengths_B + lengths_B)

    def step(self, tokens_B: Tensor, state: State) -> tuple[Tensor, ConvState]:
        assert isinstance(state, ConvState)
        features_B1D, inputs = self._write(tokens_B[:, None], state)
        after = replace(state, windows=[x_BTD[:, 1:] for x_BTD in inputs], lengths_B=state.lengths_B + 1)
        return self.logits(features_B1D[:, 0]), after

    def _write(self, tokens_BT: Tensor, state: ConvState) -> tuple[Tensor, list[Tensor]]:
        """Features, and each layer's inputs with the window before them."""
        last = int(state.lengths_B.max()) + tokens_BT.shape[1] - 1
        x = embedded = self.embed(tokens_BT, state.lengths_B, last=last)
        mask = None if state.mask_MS is None else Keys(state.mask_MS)
        inputs = []
        for layer, look, window in zip(self.layers, self.cross_attentions, state.windows, strict=True):
            inputs.append(torch.cat([window, x], dim=1))
            seen = layer(inputs[-1])
            seen = (seen + look(seen, embedded, state.memory_MSD, mask)) * HALF
            x = (x + seen) * HALF
        return x, inputs

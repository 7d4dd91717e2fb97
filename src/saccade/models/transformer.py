"""The Transformer's two stacks (Vaswani et al. 2017): an encoder that sees all, a decoder that sees its past."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from saccade.arch.block import NO_MEMORY
from saccade.arch.encoder_decoder import StackConfig, reader_weights
from saccade.arch.weights import flops
from saccade.models.blocks import build_blocks, last_norm
from saccade.models.contract import (
    AnyMemory,
    Decoder,
    Encoder,
    Memory,
    State,
    inputs_of,
    memories_by_name,
    memories_kept,
)
from saccade.models.projected import ProjectedMemory, in_layer
from saccade.nn.block import Blocks
from saccade.nn.cache import KeyValueCache, Past
from saccade.nn.embed import Embedding
from saccade.nn.front_ends import AnyFrontEnd
from saccade.nn.masks import Causal, Keys, Mask
from saccade.sites import SOURCE, Site


class TransformerEncoder(Encoder):
    """Every token looks at every token of its own text, or every patch at every patch of its own picture."""

    def __init__(self, config: StackConfig, embed: Embedding | AnyFrontEnd, memory: str = SOURCE) -> None:
        super().__init__()
        self.config, self.width = config, config.width
        self.embed = embed
        self.blocks = begin_blocks(build_blocks(config, Site.encoder(memory)))
        self.norm = last_norm(config)

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None) -> Memory:
        vectors = self.embed.read(source_MS, mask_MS)
        x, mask_MS = vectors.x_MSD, vectors.mask_MS
        mask = None if mask_MS is None else Keys(mask_MS)
        for block in self.blocks:
            x = block(x, mask, real_MS=mask_MS)
        return Memory(self.norm(x), mask_MS, grid=vectors.grid)

    def flops(self, source: int) -> float:
        return flops(reader_weights(self.config, 0), self.config.front_end.counts(SOURCE, source))


@dataclass(frozen=True)
class TransformerState(State):
    """Cached keys and values of what was written, and the memories', projected once per memory."""

    caches: list[KeyValueCache]
    memories: dict[str, ProjectedMemory]
    lengths_B: Tensor
    """How much each row has written."""
    longest: int
    """The largest of the lengths, known without reading the tensor back."""
    even: bool
    """All rows have the same length: no mask is needed to step."""

    @property
    def rows(self) -> int:
        return self.lengths_B.shape[0]

    @property
    def device(self) -> torch.device:
        return self.lengths_B.device

    @property
    def nbytes(self) -> int:
        return sum(cache.nbytes for cache in self.caches) + sum(one.nbytes for one in self.memories.values())

    def reorder(self, rows: Tensor) -> "TransformerState":
        caches = [cache.reorder(rows) for cache in self.caches]
        lengths_B = self.lengths_B.index_select(0, rows)
        # Without its longest rows a state is shorter.
        longest = self.longest if self.even else int(lengths_B.max())
        even = self.even or bool((lengths_B == longest).all())
        after = replace(self, caches=caches, lengths_B=lengths_B, longest=longest, even=even)
        if not self.memories:
            return after
        kept = memories_kept(rows, self.rows, next(iter(self.memories.values())).memories)
        if kept is None:
            return after
        return replace(after, memories={name: memory.reorder(kept) for name, memory in self.memories.items()})

    def repeat(self, times: int) -> "TransformerState":
        rows = torch.arange(self.rows, device=self.device).repeat_interleave(times)
        caches = [cache.reorder(rows) for cache in self.caches]
        return replace(self, caches=caches, lengths_B=self.lengths_B.index_select(0, rows))

    def join(self, other: "TransformerState") -> "TransformerState":
        longest = max(self.longest, other.longest)
        return TransformerState(
            caches=[mine.join(theirs, longest) for mine, theirs in zip(self.caches, other.caches, strict=True)],
            memories={name: memory.join(other.memories[name]) for name, memory in self.memories.items()},
            lengths_B=torch.cat([self.lengths_B, other.lengths_B]),
            longest=longest,
            even=self.even and other.even and self.longest == other.longest,
        )


class StackDecoder(Decoder):
    """Every token looks at itself and its past, then at the memories, if there are any; the blocks are handed in."""

    def __init__(self, embed: Embedding, blocks: Blocks, norm: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.embed = embed
        self.blocks = blocks
        self.norm = norm
        self.head = head

    def features(self, tokens_BT: Tensor, memory: AnyMemory | None = None, only: Mask | None = None) -> Tensor:
        """`only` restricts further who may look at whom, as where a row holds several documents."""
        x, memories = self.embed(tokens_BT), self._project(memory)
        # Padding stands at the end, where no real token looks: causal is all the mask needed.
        mask = Causal() if only is None else Causal() & only
        for layer, block in enumerate(self.blocks):
            x = block(x, mask, memories=in_layer(memories, layer))
        features: Tensor = self.norm(x)
        return features

    def start(self, memory: AnyMemory | None, rows: int = 1) -> TransformerState:
        count = (1 if memory is None else inputs_of(memory)) * rows
        return TransformerState(
            caches=[KeyValueCache() for _ in self.blocks],
            memories=self._project(memory),
            lengths_B=torch.zeros(count, dtype=torch.long, device=self.embed.tokens.weight.device),
            longest=0,
            even=True,
        )

    def extend(self, tokens_BT: Tensor, lengths_B: Tensor, state: State) -> tuple[Tensor, TransformerState]:
        assert isinstance(state, TransformerState)
        count = tokens_BT.shape[1]
        logits_BTV = self._write(tokens_BT, state)
        lengths_B = state.lengths_B + lengths_B
        even = state.even and bool((lengths_B == state.longest + count).all())
        longest = state.longest + count if even else int(lengths_B.max())
        return logits_BTV, replace(state, lengths_B=lengths_B, longest=longest, even=even)

    def step(self, tokens_B: Tensor, state: State) -> tuple[Tensor, TransformerState]:
        assert isinstance(state, TransformerState)
        logits_B1V = self._write(tokens_B[:, None], state)
        return logits_B1V[:, 0], replace(state, lengths_B=state.lengths_B + 1, longest=state.longest + 1)

    def _write(self, tokens_BT: Tensor, state: TransformerState) -> Tensor:
        count = tokens_BT.shape[1]
        used = state.longest + count
        # Rows of one length share a slice of the cache; otherwise each row writes at its own place. What a
        # row writes past its own length is hidden by the causal mask and overwritten by what comes next.
        start = state.longest if state.even else state.lengths_B
        mask = _past(state, count)
        x = self.embed(tokens_BT, start, last=used - 1)
        for layer, (block, cache) in enumerate(zip(self.blocks, state.caches, strict=True)):
            x = block(x, mask, memories=in_layer(state.memories, layer), past=Past(cache, start, used))
        return self.logits(self.norm(x))

    def _project(self, memory: AnyMemory | None) -> dict[str, ProjectedMemory]:
        """Each block's own keys and values of every memory."""
        given = memories_by_name(memory, next(iter(self.blocks)).memories)
        return {name: ProjectedMemory.of(name, one, self.blocks) for name, one in given.items()}


class TransformerDecoder(StackDecoder):
    """The decoder of "Attention is all you need"; it looks at `memories` of these names and widths."""

    def __init__(
        self, config: StackConfig, embed: Embedding, head: nn.Linear, memories: Mapping[str, int] = NO_MEMORY
    ) -> None:
        blocks = begin_blocks(build_blocks(config, Site.decoder(), memories))
        super().__init__(embed, blocks, last_norm(config), head)


def _past(state: TransformerState, count: int) -> Mask | None:
    if state.even and count == 1:
        return None
    if state.longest == 0:
        return Causal()
    return Causal(state.lengths_B)


def begin_blocks(blocks: Blocks) -> Blocks:
    """Matrices as in the paper's program; biases at zero."""
    for module in blocks.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return blocks

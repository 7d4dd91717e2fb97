"""The Transformer's two stacks (Vaswani et al. 2017): an encoder that sees all, a decoder that sees its past."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from saccade.arch.encoder_decoder import StackConfig
from saccade.models.blocks import build_blocks, last_norm
from saccade.models.contract import Decoder, Encoder, Memory, State, join_memories, memories_kept
from saccade.nn.block import Blocks, KeysValues
from saccade.nn.cache import KeyValueCache, Past
from saccade.nn.embed import Embedding
from saccade.nn.masks import Causal, Keys, Mask
from saccade.sites import Site


class TransformerEncoder(Encoder):
    """Every token looks at every token of its own text."""

    def __init__(self, config: StackConfig, embed: Embedding) -> None:
        super().__init__()
        self.width = config.width
        self.embed = embed
        self.blocks = begin_blocks(build_blocks(config, Site.encoder()))
        self.norm = last_norm(config)

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None) -> Memory:
        x = self.embed(source_MS)
        mask = None if mask_MS is None else Keys(mask_MS)
        for block in self.blocks:
            x = block(x, mask)
        return Memory(self.norm(x), mask_MS)


@dataclass(frozen=True)
class TransformerState(State):
    """Cached keys and values of what was written, and the memory's, projected once per memory."""

    caches: list[KeyValueCache]
    memories: list[KeysValues]
    memory_mask: Keys | None
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
        return sum(c.nbytes for c in self.caches) + sum(k.nbytes + v.nbytes for k, v in self.memories)

    def reorder(self, rows: Tensor) -> "TransformerState":
        caches = [cache.reorder(rows) for cache in self.caches]
        lengths_B = self.lengths_B.index_select(0, rows)
        # Without its longest rows a state is shorter.
        longest = self.longest if self.even else int(lengths_B.max())
        even = self.even or bool((lengths_B == longest).all())
        after = replace(self, caches=caches, lengths_B=lengths_B, longest=longest, even=even)
        if not self.memories:
            return after
        kept = memories_kept(rows, self.rows, len(self.memories[0][0]))
        if kept is None:
            return after
        memories = [(k.index_select(0, kept), v.index_select(0, kept)) for k, v in self.memories]
        memory_mask = Keys(self.memory_mask.keys_BS.index_select(0, kept)) if self.memory_mask else None
        return replace(after, memories=memories, memory_mask=memory_mask)

    def repeat(self, times: int) -> "TransformerState":
        rows = torch.arange(self.rows, device=self.device).repeat_interleave(times)
        caches = [cache.reorder(rows) for cache in self.caches]
        return replace(self, caches=caches, lengths_B=self.lengths_B.index_select(0, rows))

    def join(self, other: "TransformerState") -> "TransformerState":
        longest = max(self.longest, other.longest)
        memories, memory_mask = _join_memories(self, other)
        return TransformerState(
            caches=[mine.join(theirs, longest) for mine, theirs in zip(self.caches, other.caches, strict=True)],
            memories=memories,
            memory_mask=memory_mask,
            lengths_B=torch.cat([self.lengths_B, other.lengths_B]),
            longest=longest,
            even=self.even and other.even and self.longest == other.longest,
        )


class StackDecoder(Decoder):
    """Every token looks at itself and its past, then at the memory, if there is one; the blocks are handed in."""

    def __init__(self, embed: Embedding, blocks: Blocks, norm: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.embed = embed
        self.blocks = blocks
        self.norm = norm
        self.head = head

    def features(self, tokens_BT: Tensor, memory: Memory | None = None, only: Mask | None = None) -> Tensor:
        """`only` restricts further who may look at whom, as where a row holds several documents."""
        x = self.embed(tokens_BT)
        memory_mask = _memory_mask(memory)
        # Padding stands at the end, where no real token looks: causal is all the mask needed.
        mask = Causal() if only is None else Causal() & only
        for block, keys_values in zip(self.blocks, self._project(memory), strict=True):
            x = block(x, mask, memory=keys_values, memory_mask=memory_mask)
        features: Tensor = self.norm(x)
        return features

    def start(self, memory: Memory | None, rows: int = 1) -> TransformerState:
        count = (memory.states_MSD.shape[0] if memory else 1) * rows
        return TransformerState(
            caches=[KeyValueCache() for _ in self.blocks],
            memories=[keys_values for keys_values in self._project(memory) if keys_values is not None],
            memory_mask=_memory_mask(memory),
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
        memories: Sequence[KeysValues | None] = state.memories or [None] * len(self.blocks)
        for block, keys_values, cache in zip(self.blocks, memories, state.caches, strict=True):
            x = block(x, mask, memory=keys_values, memory_mask=state.memory_mask, past=Past(cache, start, used))
        return self.logits(self.norm(x))

    def _project(self, memory: Memory | None) -> list[KeysValues | None]:
        """Each block's own keys and values of the memory."""
        if memory is None:
            return [None] * len(self.blocks)
        crossing = [block.cross_attention for block in self.blocks if block.cross_attention is not None]
        return [cross.keys_values(memory.states_MSD) for cross in crossing]


class TransformerDecoder(StackDecoder):
    """The decoder of "Attention is all you need"."""

    def __init__(self, config: StackConfig, embed: Embedding, head: nn.Linear, memory_width: int | None) -> None:
        super().__init__(
            embed, begin_blocks(build_blocks(config, Site.decoder(), memory_width)), last_norm(config), head
        )


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


def _memory_mask(memory: Memory | None) -> Keys | None:
    return Keys(memory.mask_MS) if memory is not None and memory.mask_MS is not None else None


def _join_memories(one: TransformerState, other: TransformerState) -> tuple[list[KeysValues], Keys | None]:
    if not one.memories:
        return [], None
    mine, theirs = ([part for keys_values in state.memories for part in keys_values] for state in (one, other))
    masks = (state.memory_mask.keys_BS if state.memory_mask else None for state in (one, other))
    joined, mask_MS = join_memories(mine, theirs, *masks)
    return list(zip(joined[::2], joined[1::2], strict=True)), Keys(mask_MS)

"""A memory as a Transformer decoder looks at it: the keys and values of every layer, projected once."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from saccade.models.contract import Memory, join_memories
from saccade.nn.block import Blocks, KeysValues, LayerMemory
from saccade.nn.masks import Keys


@dataclass(frozen=True)
class ProjectedMemory:
    """Keys and values [M, N, S, H] of each layer, however many rows look at them."""

    layers: list[KeysValues]
    mask: Keys | None

    @classmethod
    def of(cls, name: str, memory: Memory, blocks: Blocks) -> "ProjectedMemory":
        """The memory of this name, which each block projects by matrices of its own."""
        layers = [block.look(name).keys_values(memory.states_MSD) for block in blocks]
        return cls(layers, None if memory.mask_MS is None else Keys(memory.mask_MS))

    @property
    def memories(self) -> int:
        """How many inputs were read."""
        return len(self.layers[0][0])

    @property
    def nbytes(self) -> int:
        return sum(k.nbytes + v.nbytes for k, v in self.layers)

    def reorder(self, kept: Tensor) -> "ProjectedMemory":
        layers = [(k.index_select(0, kept), v.index_select(0, kept)) for k, v in self.layers]
        return ProjectedMemory(layers, Keys(self.mask.keys_BS.index_select(0, kept)) if self.mask else None)

    def join(self, other: "ProjectedMemory") -> "ProjectedMemory":
        mine, theirs = ([part for keys_values in memory.layers for part in keys_values] for memory in (self, other))
        masks = (memory.mask.keys_BS if memory.mask else None for memory in (self, other))
        joined, mask_MS = join_memories(mine, theirs, *masks)
        return ProjectedMemory(list(zip(joined[::2], joined[1::2], strict=True)), Keys(mask_MS))


def in_layer(memories: Mapping[str, ProjectedMemory], layer: int) -> dict[str, LayerMemory]:
    """All memories as one layer looks at them."""
    return {name: (memory.layers[layer], memory.mask) for name, memory in memories.items()}

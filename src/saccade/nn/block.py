"""The Transformer block: attention, perhaps a look at one or several memories, then a feed-forward network."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import cast

from torch import Tensor, nn

from saccade.arch.memories import named
from saccade.nn.cache import Past
from saccade.nn.masks import Mask
from saccade.nn.multihead import CrossAttention, SelfAttention
from saccade.nn.neighbours import ConvolutionModule

KeysValues = tuple[Tensor, Tensor]
LayerMemory = tuple[KeysValues, Mask | None]
"""A memory as one layer looks at it: its keys and values, and which of them may be looked at."""
NO_MEMORIES: Mapping[str, LayerMemory] = MappingProxyType({})
NO_LOOKS: Mapping[str, CrossAttention] = MappingProxyType({})


class Block(nn.Module):
    """One layer of an encoder, or, with `cross_attentions`, of a decoder that looks at memories of these names, one
    after the other, each with a norm and a residual connection of its own.

    `residual` makes the connection around each sub-layer: PreNorm or PostNorm. The look at the memory `picture` is
    called `cross_attention_picture`, that at `source` just `cross_attention`.
    """

    def __init__(
        self,
        self_attention: SelfAttention,
        feedforward: nn.Module,
        residual: Callable[[], nn.Module],
        cross_attentions: Mapping[str, CrossAttention] = NO_LOOKS,
        convolution: ConvolutionModule | None = None,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.around_self = residual()
        self.convolution = convolution
        self.around_convolution = None if convolution is None else residual()
        self.memories = tuple(cross_attentions)
        for memory, cross in cross_attentions.items():
            self.add_module(named("cross_attention", memory), cross)
            self.add_module(named("around_cross", memory), residual())
        self.feedforward = feedforward
        self.around_feedforward = residual()

    def forward(
        self,
        x: Tensor,
        mask: Mask | None,
        *,
        memories: Mapping[str, LayerMemory] = NO_MEMORIES,
        past: Past | None = None,
        real_MS: Tensor | None = None,
    ) -> Tensor:
        """`real_MS` is True where there is something, for a convolution module."""
        x = self.around_self(x, lambda y: self.self_attention(y, mask, past))
        if self.convolution is not None and self.around_convolution is not None:
            convolution = self.convolution
            x = self.around_convolution(x, lambda y: convolution(y, real_MS))
        for memory in self.memories:
            x = self._look_at(memory, x, memories[memory], 0 if past is None else past.start)
        result: Tensor = self.around_feedforward(x, self.feedforward)
        return result

    def look(self, memory: str) -> CrossAttention:
        """How this layer looks at one memory."""
        return cast(CrossAttention, getattr(self, named("cross_attention", memory)))

    def _look_at(self, memory: str, x: Tensor, seen: LayerMemory, start: int | Tensor) -> Tensor:
        look, around = self.look(memory), cast(nn.Module, getattr(self, named("around_cross", memory)))
        result: Tensor = around(x, lambda y: look(y, *seen, start))
        return result


class Blocks(nn.ModuleList):
    """A list of blocks that knows it holds blocks."""

    def __iter__(self) -> Iterator[Block]:
        return cast(Iterator[Block], super().__iter__())

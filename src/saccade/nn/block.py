"""The Transformer block: attention, perhaps a look at a memory, then a feed-forward network."""

from collections.abc import Callable, Iterator
from typing import cast

from torch import Tensor, nn

from saccade.nn.cache import Past
from saccade.nn.masks import Mask
from saccade.nn.multihead import CrossAttention, SelfAttention

KeysValues = tuple[Tensor, Tensor]


class Block(nn.Module):
    """One layer of an encoder, or, with `cross_attention`, of a decoder that looks back.

    `residual` makes the connection around each sub-layer: PreNorm or PostNorm.
    """

    def __init__(
        self,
        self_attention: SelfAttention,
        feedforward: nn.Module,
        residual: Callable[[], nn.Module],
        cross_attention: CrossAttention | None = None,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.around_self = residual()
        self.cross_attention = cross_attention
        self.around_cross = residual() if cross_attention is not None else None
        self.feedforward = feedforward
        self.around_feedforward = residual()

    def forward(
        self,
        x: Tensor,
        mask: Mask | None,
        *,
        memory: KeysValues | None = None,
        memory_mask: Mask | None = None,
        past: Past | None = None,
    ) -> Tensor:
        x = self.around_self(x, lambda y: self.self_attention(y, mask, past))
        if self.cross_attention is not None and self.around_cross is not None:
            cross = self.cross_attention
            start = 0 if past is None else past.start
            x = self.around_cross(x, lambda y: cross(y, memory, memory_mask, start))
        result: Tensor = self.around_feedforward(x, self.feedforward)
        return result


class Blocks(nn.ModuleList):
    """A list of blocks that knows it holds blocks."""

    def __iter__(self) -> Iterator[Block]:
        return cast(Iterator[Block], super().__iter__())

"""The Transformer block: attention, perhaps a look at a memory, then a feed-forward network."""

from collections.abc import Callable

from torch import Tensor, nn

from saccade.nn.cache import KeyValueCache
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
        cache: KeyValueCache | None = None,
        start: int | Tensor = 0,
        used: int = 0,
    ) -> Tensor:
        x = self.around_self(x, lambda y: self.self_attention(y, mask, cache=cache, start=start, used=used))
        if self.cross_attention is not None and self.around_cross is not None:
            cross = self.cross_attention
            x = self.around_cross(x, lambda y: cross(y, memory, memory_mask))
        result: Tensor = self.around_feedforward(x, self.feedforward)
        return result

"""XLNet (Yang et al. 2019): a text's words are predicted in any order, each from those before it in that order.

The content stream knows every word it stands for. The query stream knows where it stands but not the word, and
predicts it. After pretraining only the content stream is left, an encoder in which all see all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from saccade.arch.positions import NoPositionsConfig
from saccade.arch.weights import flops
from saccade.arch.xlnet import XlnetConfig
from saccade.models.contract import Memory, TextEncoder
from saccade.nn.embed import Embedding
from saccade.nn.feedforward import FeedForward
from saccade.nn.masks import Keys, Mask
from saccade.nn.norms import PostNorm
from saccade.nn.relative import Relation, RelativeAttention, encode_distances

NORM = partial(nn.LayerNorm, eps=1e-12)
"""As the authors' program has it."""


@dataclass(frozen=True)
class Order:
    """The order in which a text's words are predicted."""

    places_BT: Tensor
    """Each position's place in it. Who shares a place sees one another."""
    targets_BK: Tensor
    """The positions that are predicted, in any order; a row with fewer than K is filled up with any."""


@dataclass(frozen=True)
class Remembered:
    """What every layer read of the segment before, cut off from its gradient."""

    states: tuple[Tensor, ...]
    """[B, M, D] for each layer."""
    mask_BM: Tensor
    """True where there is something."""


@dataclass(frozen=True)
class Streams:
    """The last layer's states."""

    content_BTD: Tensor | None
    query_BKD: Tensor
    remembered: Remembered | None
    """For the segment that follows; None in a model without memory."""


@dataclass(frozen=True)
class Visible(Mask):
    """Told for every pair."""

    pairs_BTS: Tensor

    def allowed(self, queries: int, keys: int) -> Tensor:
        return self.pairs_BTS[:, None]


class XlnetBlock(nn.Module):
    """Attention, then a feed-forward network; both streams go through the same weights."""

    def __init__(self, config: XlnetConfig) -> None:
        super().__init__()
        self.self_attention = RelativeAttention(config.width, config.heads, segments=config.segments)
        self.around_self = PostNorm(config.width, config.dropout, NORM)
        self.feedforward = FeedForward(config.width, config.feedforward, config.activation)
        self.around_feedforward = PostNorm(config.width, config.dropout, NORM)

    def forward(self, x_BTD: Tensor, seen_BSD: Tensor, relation: Relation) -> Tensor:
        x = self.around_self(x_BTD, lambda y: self.self_attention(y, seen_BSD, relation))
        result: Tensor = self.around_feedforward(x, self.feedforward)
        return result


class XlnetBlocks(nn.ModuleList):
    """A list of blocks that knows it holds blocks."""

    def __iter__(self) -> Iterator[XlnetBlock]:
        return cast(Iterator[XlnetBlock], super().__iter__())


class Xlnet(TextEncoder):
    """Every token looks at every token of its own text; in pretraining, at those before it in some order."""

    def __init__(self, config: XlnetConfig, embed: Embedding) -> None:
        super().__init__()
        self.config = config
        self.width, self.memory, self.context = config.width, config.memory, config.context
        self.embed = embed
        self.unknown = nn.Parameter(torch.zeros(config.width))
        """What the query stream begins with at every target."""
        self.blocks = XlnetBlocks(XlnetBlock(config) for _ in range(config.layers))

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None, segments_MS: Tensor | None = None) -> Memory:
        x = self.embed(source_MS)
        length = source_MS.shape[1]
        relation = Relation(
            encode_distances(length, length, self.width, x.device),
            ordered=length,
            same_BTS=None if segments_MS is None else segments_MS[:, :, None] == segments_MS[:, None],
            mask=None if mask_MS is None else Keys(mask_MS),
        )
        for block in self.blocks:
            x = block(x, x, relation)
        return Memory(x, mask_MS)

    def two_streams(
        self,
        tokens_BT: Tensor,
        order: Order,
        *,
        mask_BT: Tensor | None = None,
        segments_BT: Tensor | None = None,
        documents_BT: Tensor | None = None,
        before: Remembered | None = None,
        content: bool = True,
    ) -> Streams:
        """Both streams of a text of which targets are to be predicted.

        `documents_BT` numbers the documents of a row, each of which keeps to itself; 0 is one that began in the
        segment before and sees what is remembered. Without `content` the last layer of that stream, which nobody
        looks at, is left out.
        """
        rows, length = tokens_BT.shape
        past = 0 if before is None else before.mask_BM.shape[1]
        # The query stream is some more rows to the same layers, beside the content stream's.
        asked_BKD = self.embed.dropout(self.unknown.expand(rows, order.targets_BK.shape[1], -1))
        x = torch.cat([self.embed(tokens_BT), asked_BKD], dim=1)
        standing_BR = torch.cat([_positions(tokens_BT), order.targets_BK], dim=1)
        pairs_BRS = _visible(order, standing_BR, mask_BT, documents_BT, before)
        same_BRS = None if segments_BT is None else _same_segment(segments_BT, standing_BR, past)
        keys_S = torch.arange(past + length, device=x.device)
        relation = Relation(
            encode_distances(length, past + length, self.width, x.device),
            ordered=length,
            columns_BKS=length - order.targets_BK[:, :, None] + keys_S,
            same_BTS=same_BRS,
            mask=Visible(pairs_BRS),
        )
        same_BKS = None if same_BRS is None else same_BRS[:, length:]
        queries = replace(relation, ordered=0, same_BTS=same_BKS, mask=Visible(pairs_BRS[:, length:]))
        seen_states = []
        for layer, block in enumerate(self.blocks):
            seen_BSD = x[:, :length]
            if before is not None:
                seen_BSD = torch.cat([before.states[layer], seen_BSD], dim=1)
            seen_states.append(seen_BSD)
            if content or layer + 1 < len(self.blocks):
                x = block(x, seen_BSD, relation)
            else:
                x = block(x[:, length:], seen_BSD, queries)
        return Streams(
            content_BTD=x[:, :length] if content else None,
            query_BKD=x[:, length:] if content else x,
            remembered=self._remember(seen_states, tokens_BT, mask_BT, before),
        )

    def flops(self, source: int) -> float:
        return flops(self.config.weights(0), {"source": source})

    def _remember(
        self, seen: list[Tensor], tokens_BT: Tensor, mask_BT: Tensor | None, before: Remembered | None
    ) -> Remembered | None:
        if not self.memory:
            return None
        mask_BS = torch.ones_like(tokens_BT, dtype=torch.bool) if mask_BT is None else mask_BT
        if before is not None:
            mask_BS = torch.cat([before.mask_BM, mask_BS], dim=1)
        kept = slice(-self.memory, None)
        return Remembered(tuple(seen_BSD[:, kept].detach() for seen_BSD in seen), mask_BS[:, kept])


class PermutationModel(nn.Module):
    """P(text), a word at a time in any order: each given those before it in the order, wherever they stand."""

    def __init__(self, encoder: Xlnet, head: nn.Linear) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        """The output layer; its matrix is the token vectors'."""

    def forward(self, tokens_BT: Tensor, order: Order, mask_BT: Tensor | None = None) -> Tensor:
        """Logits [B, K, V] of the targets."""
        logits_BKV: Tensor = self.head(self.features(tokens_BT, order, mask_BT=mask_BT).query_BKD)
        return logits_BKV

    def features(
        self,
        tokens_BT: Tensor,
        order: Order,
        *,
        mask_BT: Tensor | None = None,
        segments_BT: Tensor | None = None,
        documents_BT: Tensor | None = None,
        before: Remembered | None = None,
    ) -> Streams:
        """`query_BKD` is what `head` reads; `remembered` is for the segment that follows; there is no `content_BTD`."""
        return self.encoder.two_streams(
            tokens_BT,
            order,
            mask_BT=mask_BT,
            segments_BT=segments_BT,
            documents_BT=documents_BT,
            before=before,
            content=False,
        )

    def guess(
        self, tokens_BT: Tensor, chosen_BT: Tensor, mask_BT: Tensor | None = None, segments_BT: Tensor | None = None
    ) -> tuple[Tensor, None]:
        """Logits [N, V] of the chosen positions, row after row, each from all that are not chosen."""
        most = int(chosen_BT.sum(dim=1).max())
        targets_BK = chosen_BT.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
        order = Order(chosen_BT.long(), targets_BK)
        query_BKD = self.features(tokens_BT, order, mask_BT=mask_BT, segments_BT=segments_BT).query_BKD
        return self.head(query_BKD[chosen_BT.gather(1, targets_BK)]), None

    def flops(self, tokens: int, targets: int) -> float:
        """Floating-point operations of `features` and `head` over so many tokens, in weight matrices."""
        return self.encoder.config.pretraining_flops(self.head.out_features, tokens, targets)


def build_xlnet(config: XlnetConfig, vocabulary: int) -> PermutationModel:
    embed = Embedding(vocabulary, config.width, NoPositionsConfig(), dropout=config.dropout, scaled=False)
    encoder = Xlnet(config, embed)
    for name, weight in encoder.named_parameters():
        if "around" in name or name.startswith("embed"):
            continue  # norms are ones and zeros already, token vectors small
        if name.endswith(("widen.bias", "narrow.bias")):
            nn.init.zeros_(weight)
        else:
            nn.init.normal_(weight, std=0.02)
    head = nn.Linear(config.width, vocabulary)
    nn.init.zeros_(head.bias)
    head.weight = embed.tokens.weight
    return PermutationModel(encoder, head)


def _positions(tokens_BT: Tensor) -> Tensor:
    return torch.arange(tokens_BT.shape[1], device=tokens_BT.device).expand_as(tokens_BT)


def _visible(
    order: Order,
    standing_BR: Tensor,
    mask_BT: Tensor | None,
    documents_BT: Tensor | None,
    before: Remembered | None,
) -> Tensor:
    """[B, T + K, M + T]: content sees the places up to its own, h(z≤t); a query sees those before, h(z<t)."""
    places_BT = order.places_BT
    last_BR = torch.cat([places_BT, places_BT.gather(1, order.targets_BK) - 1], dim=1)
    pairs_BRS = places_BT[:, None] <= last_BR[:, :, None]
    if mask_BT is not None:
        pairs_BRS &= mask_BT[:, None]
    continues_BR = torch.ones_like(standing_BR, dtype=torch.bool)
    if documents_BT is not None:
        own_BR = documents_BT.gather(1, standing_BR)
        pairs_BRS &= own_BR[:, :, None] == documents_BT[:, None]
        continues_BR = own_BR == 0
    if before is None:
        return pairs_BRS
    return torch.cat([continues_BR[:, :, None] & before.mask_BM[:, None], pairs_BRS], dim=2)


def _same_segment(segments_BT: Tensor, standing_BR: Tensor, past: int) -> Tensor:
    """[B, T + K, M + T]; what is remembered counts as the first segment."""
    keys_BS = nn.functional.pad(segments_BT, (past, 0))
    return segments_BT.gather(1, standing_BR)[:, :, None] == keys_BS[:, None]

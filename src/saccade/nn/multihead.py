"""Multi-head attention: several small attentions side by side (Vaswani et al. 2017, 3.2.2)."""

import torch
from torch import Tensor, nn

from saccade.nn.attention import attend
from saccade.nn.cache import Past
from saccade.nn.masks import Band, Mask
from saccade.nn.relative_bias import RelativeBias
from saccade.nn.rotary import Rotary
from saccade.nn.split_heads import Part, split_heads, splits_at_once
from saccade.nn.stacked import Stacked
from saccade.sites import SOURCE, Site

READING = Site.encoder()


class SelfAttention(nn.Module):
    """One query per input: a sequence looks at itself, or at its own past in a cache.

    `key_heads`: several query heads share one head of keys and values, so that the cache is smaller (Ainslie et al.
    2023). `rotary` turns queries and keys by their position. `window`: nobody looks further back than so many
    positions, its own counted (the locally banded layers of GPT-3; Child et al. 2019). `relative` tells queries how far
    back each key stands. Watchers are told the `site`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        key_heads: int | None = None,
        rotary: Rotary | None = None,
        window: int | None = None,
        relative: RelativeBias | None = None,
        bias: bool = True,
        site: Site = READING,
    ) -> None:
        super().__init__()
        self.site = site
        self.heads = _check(width, heads)
        self.key_heads = heads if key_heads is None else key_heads
        if heads % self.key_heads:
            raise ValueError(f"{heads} heads cannot share {self.key_heads} heads of keys and values evenly")
        self.rotary, self.window, self.relative = rotary, window, relative
        self.head_width = width // heads
        self.sizes = [part * self.head_width for part in (heads, self.key_heads, self.key_heads)]
        self.project = Stacked(width, self.sizes, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)

    def forward(self, x_BTD: Tensor, mask: Mask | None = None, past: Past | None = None) -> Tensor:
        start = 0 if past is None else past.start
        q, k, v = self._queries_keys_values(self.project(x_BTD), start)
        if past is not None:
            k, v = past.append(k, v)
        if self.key_heads < self.heads:
            k, v = (part.repeat_interleave(self.heads // self.key_heads, dim=1) for part in (k, v))
        if self.window is not None and k.shape[2] > self.window:
            band = Band(self.window, start)
            mask = band if mask is None else mask & band
        bias = None
        if self.relative is not None:
            q, bias = self.relative(q, k.shape[2], start)
        out: Tensor = self.out(_merge(attend(self, q, k, v, mask=mask, bias=bias)))
        return out

    def _queries_keys_values(self, x_BTE: Tensor, start: int | Tensor) -> tuple[Tensor, ...]:
        turned = self.rotary is not None
        if splits_at_once(x_BTE, start, self.head_width):
            parts = (Part(self.heads, turned), Part(self.key_heads, turned), Part(self.key_heads))
            return split_heads(x_BTE, parts, self.rotary, int(start))
        q, k, v = torch.split(x_BTE, self.sizes, dim=-1)
        q, k, v = _split(q, self.heads), _split(k, self.key_heads), _split(v, self.key_heads)
        return (q, k, v) if self.rotary is None else (self.rotary(q, start), self.rotary(k, start), v)


class CrossAttention(nn.Module):
    """A decoder's queries look at an encoder's memory.

    Keys and values are projected once per memory. Several rows may share one (the beams of a
    sentence): they are then simply more queries to the same keys. `rotary` turns queries by their place in what is
    written and keys by theirs in the memory. `memory` is that one's name, which watchers are told.
    """

    def __init__(
        self, width: int, heads: int, memory_width: int, *, rotary: Rotary | None = None, memory: str = SOURCE
    ) -> None:
        super().__init__()
        self.site = Site.cross(memory)
        self.heads = _check(width, heads)
        self.head_width = width // heads
        self.rotary = rotary
        self.query = nn.Linear(width, width)
        self.project = Stacked(memory_width, (width, width))
        self.out = nn.Linear(width, width)

    def keys_values(self, states_MSD: Tensor) -> tuple[Tensor, Tensor]:
        projected_MSE = self.project(states_MSD)
        if splits_at_once(projected_MSE, 0, self.head_width):
            keys, values = split_heads(
                projected_MSE, (Part(self.heads, self.rotary is not None), Part(self.heads)), self.rotary
            )
            return keys, values
        keys_MSD, values_MSD = projected_MSE.chunk(2, dim=-1)
        return _split(self.turned(keys_MSD), self.heads), _split(values_MSD, self.heads)

    def turned(self, x_BTD: Tensor, start: int | Tensor = 0) -> Tensor:
        """Queries or keys, by their places, if positions are rotary; the first of each row stands at `start`."""
        return x_BTD if self.rotary is None else _merge(self.rotary(_split(x_BTD, self.heads), start))

    def forward(
        self, x_BTD: Tensor, keys_values: tuple[Tensor, Tensor], mask: Mask | None = None, start: int | Tensor = 0
    ) -> Tensor:
        """`start`: where in what is written the first token of each row stands."""
        k, v = keys_values
        rows, length, _ = x_BTD.shape
        memories = k.shape[0]
        q = self._queries(self.query(x_BTD), memories, start)
        context = _merge(attend(self, q, k, v, mask=mask)).view(rows, length, -1)
        out: Tensor = self.out(context)
        return out

    def _queries(self, q_BTD: Tensor, memories: int, start: int | Tensor) -> Tensor:
        """[M, N, T, H]: those of all rows of a memory, one after the other."""
        if memories == len(q_BTD) and splits_at_once(q_BTD, start, self.head_width):
            return split_heads(q_BTD, [Part(self.heads, self.rotary is not None)], self.rotary, int(start))[0]
        return _split(self.turned(q_BTD, start).reshape(memories, -1, q_BTD.shape[-1]), self.heads)


def _check(width: int, heads: int) -> int:
    if width % heads:
        raise ValueError(f"width {width} does not divide into {heads} heads")
    return heads


def _split(x_BTD: Tensor, heads: int) -> Tensor:
    """[B, T, D] -> [B, N, T, H]"""
    return x_BTD.view(*x_BTD.shape[:-1], heads, -1).transpose(1, 2)


def _merge(x_BNTH: Tensor) -> Tensor:
    """[B, N, T, H] -> [B, T, D]: the heads concatenated; `out` then mixes them (W^O)."""
    return x_BNTH.transpose(1, 2).flatten(2)

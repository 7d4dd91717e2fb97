"""A Transformer stack as plain numbers: all that the C kernels must know of one, wherever it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Numbers = np.ndarray
FIRST_POSITIONS = 512
"""Positions that are prepared at once."""
EPSILON = 1e-5
"""Of a layer norm, unless said otherwise."""


@dataclass(frozen=True)
class Stack:
    """What a stack is beside its weights, which have the names they have in `models/transformer.py`."""

    weights: Mapping[str, Numbers]
    layers: int
    heads: int
    post: bool
    """Norms after the sums."""
    gelu: bool
    scale: float
    """Of the token vectors."""
    epsilon: float = EPSILON
    sinusoids: str | None = None
    """The layout of sinusoidal positions; learned ones are among the weights."""
    concatenate: bool = False
    """Positions stand beside the token vectors."""
    rates: Numbers | None = None
    """[H / 2]: how fast each pair of channels turns, where positions are rotary."""
    halves: bool = False
    """Pairs are channels i and i + H/2, not 2i and 2i + 1."""

    @property
    def width(self) -> int:
        return int(self.weights["blocks.0.self_attention.out.weight"].shape[0])

    @property
    def hidden(self) -> int:
        return int(self.weights["blocks.0.feedforward.widen.weight"].shape[0])

    @property
    def cross(self) -> bool:
        """Whether it looks at a memory."""
        return "blocks.0.cross_attention.query.weight" in self.weights

    def angles(self, count: int) -> Numbers:
        """[count, H]: cosines, then sines, of the turns at the first positions."""
        assert self.rates is not None
        angles = np.arange(count, dtype=np.float32)[:, None] * self.rates
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)

    def turned(self, x_MSD: Numbers) -> Numbers:
        """Keys of a memory turned by their places."""
        rows, length, width = x_MSD.shape
        x = x_MSD.reshape(rows, length, self.heads, -1)
        cos, sin = np.split(self.angles(length)[:, None], 2, axis=-1)
        half = x.shape[-1] // 2
        one, other = (x[..., :half], x[..., half:]) if self.halves else (x[..., ::2], x[..., 1::2])
        turned = (one * cos - other * sin, one * sin + other * cos)
        joined = np.concatenate(turned, axis=-1) if self.halves else np.stack(turned, axis=-1)
        return joined.reshape(rows, length, width)


class Places:
    """The vectors of positions, those of the first ones ready."""

    def __init__(self, stack: Stack) -> None:
        learned = stack.weights.get("embed.positions.vectors.weight")
        self.layout, self.learned = stack.sinusoids, learned
        self.width = stack.width // 2 if stack.concatenate else stack.width
        self.table: Numbers = sinusoids(FIRST_POSITIONS, self.width, self.layout or "") if learned is None else learned

    def __call__(self, positions: Numbers, last: int) -> Numbers:
        """[..., D] of positions [...], none higher than `last`."""
        if last >= len(self.table):
            if self.learned is not None:
                raise ValueError(f"position {last} asked of a model with {len(self.learned)} learned positions")
            self.table = sinusoids(2 * last, self.width, self.layout or "")
        found: Numbers = self.table[positions]
        return found


def sinusoids(count: int, width: int, layout: str) -> Numbers:
    """As `nn/positions.py` has them."""
    rates = np.exp(np.arange(0, width, 2, dtype=np.float32) * np.float32(-np.log(10_000.0) / width))
    angles = np.arange(count, dtype=np.float32)[:, None] * rates
    parts = (np.sin(angles), np.cos(angles))
    return np.concatenate(parts, axis=-1) if layout == "halves" else np.stack(parts, axis=-1).reshape(count, width)

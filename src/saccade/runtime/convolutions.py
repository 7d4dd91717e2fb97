"""Convolutions over pictures in plain NumPy: windows laid side by side (im2col), one product each, norms folded in."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from saccade.arch.convolutions import ConvolutionsFrontEnd, ConvolutionStage, Pair, stage_memory
from saccade.runtime.contract import Booleans, Floats, Source
from saccade.runtime.layers import ACTIVATIONS, Weights, attend, linear, normalise, part_of
from saccade.runtime.watch import watched
from saccade.sites import SOURCE, Site

EPSILON = np.float32(1e-5)
"""Added to the variance in norms, as in training."""
NUMBERS_AT_ONCE = 4_000_000
"""Of the windows of one convolution: pictures go through all stages a few at a time, in the caches."""
Real = Floats | None
"""1 where a field is of a picture, 0 elsewhere, [M, H, W, 1]; None: everywhere."""
Stage = Callable[[Floats, Real], tuple[Floats, Real]]
"""A grid and which of its fields are real -> the same of the next grid."""


@dataclass(frozen=True)
class Folded:
    """A convolution with its batch norm in it: norm(W x) = (W g/s) x + (b - m g/s), where s² = variance + epsilon."""

    matrix: Floats
    """[window, outputs]"""
    bias: Floats
    weights: Weights
    """Of a layer norm, which cannot be folded."""

    @classmethod
    def of(cls, weights: Weights) -> "Folded":
        matrix, bias = weights["convolution.weight"], weights.get("convolution.bias")
        if "norm.mean" in weights:
            scale = weights["norm.weight"] / np.sqrt(weights["norm.variance"] + EPSILON)
            matrix, bias = matrix * scale[:, None], weights["norm.bias"] - weights["norm.mean"] * scale
        shift: Floats = np.zeros(len(matrix), dtype=np.float32) if bias is None else bias
        norm = {} if "norm.mean" in weights else part_of(weights, "norm")
        return cls(np.ascontiguousarray(matrix.T, dtype=np.float32), shift, {f"norm.{n}": w for n, w in norm.items()})

    def __call__(self, x_MHWC: Floats, kernel: int, stride: Pair, real: Real) -> Floats:
        windows, grid = _windows(x_MHWC, kernel, stride)
        y: Floats = windows @ self.matrix
        y += self.bias
        y = y.reshape(len(x_MHWC), *grid, -1)
        if self.weights:
            y = normalise(self.weights, "norm", y, float(EPSILON))
        return y if real is None else y * real


class PlainStage:
    """Convolution, pooling, activation; then the convolutions that keep the grid; perhaps a look around."""

    def __init__(self, config: ConvolutionsFrontEnd, number: int, weights: Weights, name: str, memory: str) -> None:
        self.stage: ConvolutionStage = config.stages[number]
        self.weights, self.name = weights, f"{name}.embed.stages.{number}.attention"
        self.site = Site.encoder(stage_memory(memory, number)) if number + 1 in config.attention else None
        self.activation = ACTIVATIONS[config.activation]
        self.first = Folded.of(part_of(weights, "first"))
        self.more = [Folded.of(part_of(weights, f"more.{i}")) for i in range(self.stage.more)]
        self.residual = [
            [Folded.of(part_of(weights, f"residual.{i}.{part}")) for part in ("one", "two")]
            for i in range(self.stage.residual)
        ]

    def __call__(self, x: Floats, real: Real) -> tuple[Floats, Real]:
        stage, activation = self.stage, self.activation
        real = every(real, stage.stride)
        x = self.first(x, stage.kernel, stage.stride, real)
        real = every(real, stage.pool)
        x = activation(_pooled(x, stage.pool))
        for unit in self.more:
            x = activation(unit(x, stage.kernel, (1, 1), real))
        for one, two in self.residual:
            y = activation(one(x, stage.kernel, (1, 1), real))
            x = x + activation(two(y, stage.kernel, (1, 1), real))
        return (x if self.site is None else self._look_around(x, real, self.site)), real

    def _look_around(self, x_MHWC: Floats, real: Real, site: Site) -> Floats:
        """x + gain · softmax(q·k / √d) v over all fields."""
        x_MSC = x_MHWC.reshape(len(x_MHWC), -1, x_MHWC.shape[-1])
        allowed = None if real is None else real.reshape(len(real), 1, 1, -1) > 0
        q, k, v = (linear(self.weights, f"attention.{part}", x_MSC)[:, None] for part in ("query", "key", "value"))
        seen = attend(self.name, site, q, k, v, allowed)[:, 0].reshape(x_MHWC.shape)
        changed: Floats = x_MHWC + self.weights["attention.gain"] * (seen if real is None else seen * real)
        return changed


class PlainConvolutions:
    """A picture [M, height, width, channels] as vectors of the fields of its last grid, row by row."""

    def __init__(self, config: ConvolutionsFrontEnd, weights: Weights, name: str = "encoder", memory: str = SOURCE):
        self.config = config
        self.weights = {
            key: weights[key] for key in weights if key.startswith("embed.") and not key.startswith("embed.stages.")
        }
        self.stages = [
            self._stage(number, part_of(weights, f"embed.stages.{number}"), name, memory)
            for number in range(len(config.stages))
        ]
        self.at_once = max(1, NUMBERS_AT_ONCE // _largest(config))

    def __call__(self, pictures_MHWC: Source, mask_MHW: Booleans | None = None) -> tuple[Floats, Booleans | None, Pair]:
        """Vectors [M, S, D], which of them are real, and the last grid."""
        memories, height, width, channels = pictures_MHWC.shape
        grid = self.config.grid_of(height, width, channels)
        parts = []
        for first in range(0, memories, self._step(memories)):
            chosen = slice(first, first + self._step(memories))
            parts.append(self._grid(pictures_MHWC[chosen], None if mask_MHW is None else mask_MHW[chosen]))
        x_MSD = parts[0] if len(parts) == 1 else np.concatenate(parts)
        mask_MS = None if mask_MHW is None else self._real(mask_MHW)
        if "embed.project.weight" in self.weights:
            x_MSD = self._projected(x_MSD)
        if self.config.positions:
            vectors = self.weights["embed.positions.vectors.weight"]
            places = vectors[self.config.extra :].reshape(*self.config.grid, -1)[: grid[0], : grid[1]]
            x_MSD = x_MSD + places.reshape(grid[0] * grid[1], -1)
        if self.config.class_token:
            first_1D = self.weights["embed.class_token"] + vectors[:1]
            x_MSD = np.concatenate([np.broadcast_to(first_1D, (memories, *first_1D.shape)), x_MSD], axis=1)
            mask_MS = None if mask_MS is None else np.pad(mask_MS, ((0, 0), (1, 0)), constant_values=True)
        return x_MSD, mask_MS, grid

    def _stage(self, number: int, weights: Weights, name: str, memory: str) -> Stage:
        return PlainStage(self.config, number, weights, name, memory)

    def _projected(self, x_MSD: Floats) -> Floats:
        return linear(self.weights, "embed.project", x_MSD)

    def _step(self, memories: int) -> int:
        # Who watches hears one look of all pictures, as of every other layer.
        return max(1, memories) if watched() else self.at_once

    def _grid(self, pictures_MHWC: Source, mask_MHW: Booleans | None) -> Floats:
        x: Floats = np.asarray(pictures_MHWC, dtype=np.float32)
        real: Real = None
        if mask_MHW is not None:
            real = mask_MHW[..., None].astype(np.float32)
            x = x * real
        for stage in self.stages:
            x, real = stage(x, real)
        return x.reshape(len(x), -1, x.shape[-1])

    def _real(self, mask_MHW: Booleans) -> Booleans:
        """A field is real if its first pixel is: a picture is an upper left corner."""
        real: Booleans = mask_MHW
        for stage in self.config.stages:
            for down, across in (stage.stride, stage.pool):
                real = real[:, ::down, ::across]
        return real.reshape(len(real), -1)


def _largest(config: ConvolutionsFrontEnd) -> int:
    """Numbers in the windows of one picture, at most."""
    (height, width), inputs, found = (config.height, config.width), config.channels, 0
    for stage, (down, across) in zip(config.stages, config.grids_of(height, width), strict=True):
        fields = stage.kernel**2 * down * across
        first = fields * stage.pool[0] * stage.pool[1] * inputs
        found, inputs = max(found, first, fields * stage.width), stage.width
    return found


def _windows(x_MHWC: Floats, kernel: int, stride: Pair) -> tuple[Floats, Pair]:
    """Every window as a row, field by field, then its channels: what the matrix of a convolution is multiplied with."""
    pictures, height, width, channels = x_MHWC.shape
    down, across = -(-height // stride[0]), -(-width // stride[1])
    if kernel == 1:
        return x_MHWC[:, :: stride[0], :: stride[1]].reshape(-1, channels), (down, across)
    margin = kernel // 2
    wide = np.pad(x_MHWC, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    windows = np.empty((pictures, down, across, kernel, kernel, channels), dtype=np.float32)
    for row in range(kernel):
        for column in range(kernel):
            rows, columns = slice(row, row + height, stride[0]), slice(column, column + width, stride[1])
            windows[:, :, :, row, column] = wide[:, rows, columns]
    return windows.reshape(pictures * down * across, -1), (down, across)


def every(real: Real, steps: Pair) -> Real:
    return None if real is None else real[:, :: steps[0], :: steps[1]]


def _pooled(x_MHWC: Floats, pool: Pair) -> Floats:
    """The largest of each field's values; what is missing at an edge counts as zeros."""
    if pool == (1, 1):
        return x_MHWC
    pictures, height, width, channels = x_MHWC.shape
    whole = np.pad(x_MHWC, ((0, 0), (0, -height % pool[0]), (0, -width % pool[1]), (0, 0)))
    fields = whole.reshape(pictures, whole.shape[1] // pool[0], pool[0], whole.shape[2] // pool[1], pool[1], channels)
    largest: Floats = fields.max(axis=(2, 4))
    return largest

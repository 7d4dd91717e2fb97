"""Convolutions over pictures: a unit of convolution and norm, stages of them, and the self-attention module."""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.arch.convolutions import ConvolutionsFrontEnd, ConvolutionStage, Pair, stage_memory
from saccade.nn.attention import attend
from saccade.nn.dropout import Dropout
from saccade.nn.feedforward import ACTIVATIONS
from saccade.nn.front_end import GridPositions, Vectors
from saccade.nn.masks import Keys
from saccade.sites import SOURCE, Site

EPSILON = 1e-5
"""Added to the variance in batch norm."""
MOMENTUM = 0.1
"""Share of a batch in the running mean and variance."""


class GridConvolution(nn.Linear):
    """A k x k convolution, "same" padding, as a matrix: each row is a window, field by field, then its channels. So
    stored, int8 has a scale for every output, and the matrix is what an im2col product takes."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: Pair = (1, 1), *, bias: bool) -> None:
        super().__init__(kernel * kernel * inputs, outputs, bias=bias)
        self.inputs, self.kernel, self.stride = inputs, kernel, stride
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x_MCHW: Tensor) -> Tensor:
        # The matrix as PyTorch wants it is already in the order of channels_last, twice as fast on a CPU.
        weight = self.weight.view(-1, self.kernel, self.kernel, self.inputs).permute(0, 3, 1, 2)
        return F.conv2d(x_MCHW, weight, self.bias, self.stride, self.kernel // 2)


class BatchNorm(nn.Module):
    """By the mean and variance of each channel (Ioffe & Szegedy 2015). The running ones are parameters that are not
    learnt, so that checkpoints, averages and model folders hold them like all others."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.mean = nn.Parameter(torch.zeros(width), requires_grad=False)
        self.variance = nn.Parameter(torch.ones(width), requires_grad=False)

    def forward(self, x_MCHW: Tensor) -> Tensor:
        counts = self.training and torch.is_grad_enabled()
        return F.batch_norm(x_MCHW, self.mean, self.variance, self.weight, self.bias, counts, MOMENTUM, EPSILON)


class ChannelNorm(nn.LayerNorm):
    """Layer norm of each field's channels."""

    def forward(self, x_MCHW: Tensor) -> Tensor:
        return super().forward(x_MCHW.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


NORMS = {"batch": BatchNorm, "layer": ChannelNorm}


class Unit(nn.Module):
    """A convolution and its norm; what lies outside a picture stays zero."""

    def __init__(self, config: ConvolutionsFrontEnd, inputs: int, stage: ConvolutionStage, stride: Pair) -> None:
        super().__init__()
        plain = config.norm == "none"
        self.convolution = GridConvolution(inputs, stage.width, stage.kernel, stride, bias=plain)
        self.norm = nn.Identity() if plain else NORMS[config.norm](stage.width)

    def forward(self, x_MCHW: Tensor, real_M1HW: Tensor | None) -> Tensor:
        y: Tensor = self.norm(self.convolution(x_MCHW))
        return y if real_M1HW is None else y * real_M1HW


class Residual(nn.Module):
    """x + f(f(x))."""

    def __init__(self, config: ConvolutionsFrontEnd, stage: ConvolutionStage) -> None:
        super().__init__()
        self.one, self.two = (Unit(config, stage.width, stage, (1, 1)) for _ in range(2))
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x_MCHW: Tensor, real_M1HW: Tensor | None) -> Tensor:
        y = self.activation(self.one(x_MCHW, real_M1HW))
        return x_MCHW + self.activation(self.two(y, real_M1HW))


class GridAttention(nn.Module):
    """x + gain · softmax(q·k / √d) v over all fields of a grid; the gain begins at 0, so the module changes nothing at
    the start (SAGAN; Zhang et al. 2018, 3). `memory` is what watchers know the grid by."""

    def __init__(self, stage: ConvolutionStage, memory: str) -> None:
        super().__init__()
        self.query = nn.Linear(stage.width, stage.narrow)
        self.key = nn.Linear(stage.width, stage.narrow, bias=False)
        self.value = nn.Linear(stage.width, stage.width)
        self.gain = nn.Parameter(torch.zeros(1))
        self.site = Site.encoder(memory)

    def forward(self, x_MCHW: Tensor, real_M1HW: Tensor | None) -> Tensor:
        x_MSC = x_MCHW.permute(0, 2, 3, 1).flatten(1, 2)
        mask = None if real_M1HW is None else Keys(real_M1HW.flatten(1) > 0)
        q, k, v = (layer(x_MSC)[:, None] for layer in (self.query, self.key, self.value))
        seen_MSC = attend(self, q, k, v, mask=mask)[:, 0]
        seen_MCHW = seen_MSC.reshape(x_MSC.shape[0], *x_MCHW.shape[2:], -1).permute(0, 3, 1, 2)
        if real_M1HW is not None:
            seen_MCHW = seen_MCHW * real_M1HW
        changed: Tensor = x_MCHW + self.gain * seen_MCHW
        return changed


class Stage(nn.Module):
    """Convolution, norm, pooling, activation; then the convolutions that keep the grid; perhaps a look around."""

    def __init__(self, config: ConvolutionsFrontEnd, number: int, memory: str) -> None:
        super().__init__()
        stage = config.stages[number]
        inputs = config.stages[number - 1].width if number else config.channels
        self.stage, self.activation = stage, ACTIVATIONS[config.activation]
        self.first = Unit(config, inputs, stage, stage.stride)
        self.more = nn.ModuleList(Unit(config, stage.width, stage, (1, 1)) for _ in range(stage.more))
        self.residual = nn.ModuleList(Residual(config, stage) for _ in range(stage.residual))
        looks = number + 1 in config.attention
        self.attention = GridAttention(stage, stage_memory(memory, number)) if looks else None

    def forward(self, x_MCHW: Tensor, real_M1HW: Tensor | None) -> tuple[Tensor, Tensor | None]:
        real_M1HW = _every(real_M1HW, self.stage.stride)
        x = self.first(x_MCHW, real_M1HW)
        real_M1HW = _every(real_M1HW, self.stage.pool)
        # Pooled before the activation, of which there is then less to do.
        x = self.activation(_pooled(x, self.stage.pool))
        for unit in self.more:
            x = self.activation(unit(x, real_M1HW))
        for block in self.residual:
            x = block(x, real_M1HW)
        if self.attention is not None:
            x = self.attention(x, real_M1HW)
        return x, real_M1HW


class PictureConvolutions(nn.Module):
    """A picture [M, height, width, channels] as vectors of the fields of its last grid, row by row."""

    def __init__(self, config: ConvolutionsFrontEnd, width: int, dropout: float, memory: str = SOURCE) -> None:
        super().__init__()
        self.config = config
        self.stages = nn.ModuleList(Stage(config, number, memory) for number in range(len(config.stages)))
        self.project = nn.Linear(config.last_width, width) if config.last_width != width else None
        self.class_token = nn.Parameter(torch.zeros(width)) if config.class_token else None
        self.positions = GridPositions(config, width) if config.positions else None
        self.dropout = Dropout(dropout)
        if self.class_token is not None:
            nn.init.normal_(self.class_token, std=0.02)

    def read(self, source: Tensor, mask: Tensor | None = None) -> Vectors:
        vectors: Vectors = self(source, mask)
        return vectors

    def forward(self, pictures_MHWC: Tensor, mask_MHW: Tensor | None = None) -> Vectors:
        """`mask_MHW` is True for the pixels that are of a picture, its upper left corner. A field is real if a pixel of
        it is."""
        memories, height, width, channels = pictures_MHWC.shape
        grid = self.config.grid_of(height, width, channels)
        x, real = pictures_MHWC.permute(0, 3, 1, 2).to(next(self.parameters()).dtype), None
        if mask_MHW is not None:
            real = mask_MHW[:, None].to(x.dtype)
            x = x * real
        for stage in self.stages:
            x, real = cast(Stage, stage)(x, real)
        x_MSD = x.permute(0, 2, 3, 1).flatten(1, 2)
        mask_MS = None if real is None else real.flatten(1) > 0
        if self.project is not None:
            x_MSD = self.project(x_MSD)
        if self.positions is not None:
            x_MSD = x_MSD + self.positions(grid)
        if self.class_token is not None and self.positions is not None:
            first_D = self.class_token + self.positions.vectors.weight[0]
            x_MSD = torch.cat([first_D.to(x_MSD.dtype).expand(memories, 1, -1), x_MSD], dim=1)
            mask_MS = None if mask_MS is None else F.pad(mask_MS, (1, 0), value=True)
        return Vectors(self.dropout(x_MSD), mask_MS, grid)


def _every(real_M1HW: Tensor | None, steps: Pair) -> Tensor | None:
    """A field is real if its first one is: a picture is an upper left corner."""
    return None if real_M1HW is None else real_M1HW[..., :: steps[0], :: steps[1]]


def _pooled(x_MCHW: Tensor, pool: Pair) -> Tensor:
    """The largest of each field's values; what is missing at an edge counts as zeros, as what lies outside a picture
    in a batch does."""
    if pool == (1, 1):
        return x_MCHW
    height, width = x_MCHW.shape[2:]
    missing = (0, -width % pool[1], 0, -height % pool[0])
    return F.max_pool2d(F.pad(x_MCHW, missing) if any(missing) else x_MCHW, pool)

"""Frames of a sound as vectors: convolutions that make it shorter, then a projection."""

from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from saccade.arch.sound import SoundFrontEnd
from saccade.nn.convolutions import Stage
from saccade.nn.dropout import Dropout
from saccade.nn.front_end import Vectors
from saccade.sites import SOURCE


class SoundFrames(nn.Module):
    """Log-mel energies [M, T, mels] as vectors [M, T / shrinks, D]."""

    def __init__(self, config: SoundFrontEnd, width: int, dropout: float, memory: str = SOURCE) -> None:
        super().__init__()
        self.config = config
        grid = config.grid
        self.stages = nn.ModuleList(Stage(grid, number, memory) for number in range(len(config.stages)) if grid)
        self.project = nn.Linear(config.inputs, width)
        self.dropout = Dropout(dropout)
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def read(self, source: Tensor, mask: Tensor | None = None) -> Vectors:
        vectors: Vectors = self(source, mask)
        return vectors

    def forward(self, frames_MTF: Tensor, mask_MT: Tensor | None = None) -> Vectors:
        """`mask_MT` is True for the frames that are of a sound, which stand before the padding. A position is real if
        its first frame is."""
        self.config.check(frames_MTF.shape[-1])
        x, real = frames_MTF.to(self.project.weight.dtype)[:, None], None
        if mask_MT is not None:
            real = mask_MT[:, None, :, None].to(x.dtype).expand(-1, -1, -1, x.shape[-1])
            x = x * real
        for stage in self.stages:
            x, real = cast(Stage, stage)(x, real)
        x_MSD = self.project(x.permute(0, 2, 3, 1).flatten(2))
        return Vectors(self.dropout(x_MSD), None if real is None else real[:, 0, :, 0] > 0)


def paired(x_MSD: Tensor, mask_MS: Tensor) -> tuple[Tensor, Tensor]:
    """Every two neighbours side by side, a last one beside zeros (Chan et al. 2016, 3.1); a pair is real if its first
    one is. What is padded must be zero."""
    missing = x_MSD.shape[1] % 2
    x_MSD, mask_MS = F.pad(x_MSD, (0, 0, 0, missing)), F.pad(mask_MS, (0, missing))
    return x_MSD.reshape(len(x_MSD), -1, 2 * x_MSD.shape[2]), mask_MS[:, ::2]

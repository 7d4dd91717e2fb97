"""What every front end hands to an encoder's layers, and the one that cuts pictures into patches."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from saccade.arch.front_end import PatchesFrontEnd, PictureFrontEnd
from saccade.nn.dropout import Dropout


@dataclass(frozen=True)
class Vectors:
    """An input as the first layer takes it."""

    x_MSD: Tensor
    mask_MS: Tensor | None = None
    """True where there is something; None when every position is real."""
    grid: tuple[int, int] | None = None
    """Height and width, where the last positions are those of a picture, row by row."""


class Patches(nn.Module):
    """A picture [M, height, width, channels] as vectors of its patches, row by row (Dosovitskiy et al. 2020, 3.1)."""

    def __init__(self, config: PatchesFrontEnd, width: int, dropout: float) -> None:
        super().__init__()
        self.config = config
        self.patches = nn.Linear(config.inputs, width)
        self.class_token = nn.Parameter(torch.zeros(width)) if config.class_token else None
        self.positions = GridPositions(config, width)
        self.dropout = Dropout(dropout)
        nn.init.xavier_uniform_(self.patches.weight)
        nn.init.zeros_(self.patches.bias)
        if self.class_token is not None:
            nn.init.normal_(self.class_token, std=0.02)

    def read(self, source: Tensor, mask: Tensor | None = None) -> Vectors:
        vectors: Vectors = self(source, mask)
        return vectors

    def forward(self, pictures_MHWC: Tensor, mask_MHW: Tensor | None = None) -> Vectors:
        """`mask_MHW` is True for the pixels that are of a picture. A patch is real if any of its pixels is, and the
        class token always is."""
        memories, height, width, channels = pictures_MHWC.shape
        grid, mask_MS = self.config.grid_of(height, width, channels), None
        if mask_MHW is not None:
            # Padding within the batch must look like the zeros that fill up a picture alone.
            pictures_MHWC = pictures_MHWC.masked_fill(~mask_MHW[..., None], 0)
            mask_MS = self._cut(mask_MHW[..., None], grid).any(dim=-1)
        cut = self._cut(pictures_MHWC, grid).to(self.patches.weight.dtype)
        x_MSD = self.patches(cut) + self.positions(grid)
        if self.class_token is not None:
            first_D = self.class_token + self.positions.vectors.weight[0]
            x_MSD = torch.cat([first_D.to(x_MSD.dtype).expand(memories, 1, -1), x_MSD], dim=1)
            mask_MS = None if mask_MS is None else nn.functional.pad(mask_MS, (1, 0), value=True)
        return Vectors(self.dropout(x_MSD), mask_MS, grid)

    def _cut(self, pixels_MHWC: Tensor, grid: tuple[int, int]) -> Tensor:
        """[M, S, patch · patch · C]: a patch is its pixels, row by row."""
        side, (memories, height, width, channels) = self.config.patch, pixels_MHWC.shape
        missing = (0, 0, 0, grid[1] * side - width, 0, grid[0] * side - height)
        whole = nn.functional.pad(pixels_MHWC, missing)
        cut = whole.reshape(memories, grid[0], side, grid[1], side, channels).transpose(2, 3)
        return cut.reshape(memories, grid[0] * grid[1], -1)


class GridPositions(nn.Module):
    """A learned vector for each place of the grid, after that of the class token, if there is one."""

    def __init__(self, config: PictureFrontEnd, width: int) -> None:
        super().__init__()
        self.config = config
        self.vectors = nn.Embedding(config.length, width)
        nn.init.normal_(self.vectors.weight, std=0.02)

    def forward(self, grid: tuple[int, int]) -> Tensor:
        """[S, D] of the upper left places."""
        places = self.vectors.weight[self.config.extra :].view(*self.config.grid, -1)
        return places[: grid[0], : grid[1]].flatten(0, 1)

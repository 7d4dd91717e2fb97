"""Front ends in plain NumPy: a picture becomes the vectors of its patches. Tokens are `plain.py`'s."""

import numpy as np

from saccade.arch.convolutions import ConvolutionsFrontEnd
from saccade.arch.front_end import FrontEnd, PatchesFrontEnd
from saccade.arch.memories import named
from saccade.arch.sound import SoundFrontEnd
from saccade.runtime.contract import Booleans, Floats, Source
from saccade.runtime.convolutions import PlainConvolutions
from saccade.runtime.layers import Weights, linear
from saccade.runtime.sound import PlainSound
from saccade.sites import SOURCE

Grid = tuple[int, int]


class PlainPatches:
    """A picture [M, height, width, channels] as vectors of its patches, row by row (Dosovitskiy et al. 2020, 3.1)."""

    def __init__(self, config: PatchesFrontEnd, weights: Weights) -> None:
        self.config = config
        self.weights = {name: weights[name] for name in weights if name.startswith("embed.")}
        positions = self.weights["embed.positions.vectors.weight"]
        self.first, self.places = positions[: config.extra], positions[config.extra :].reshape(*config.grid, -1)

    def __call__(self, pictures_MHWC: Source, mask_MHW: Booleans | None = None) -> tuple[Floats, Booleans | None, Grid]:
        """Vectors [M, S, D], which of them are real, and the grid of the last ones. `mask_MHW` is True for the pixels
        that are of a picture. A patch is real if any of its pixels is, and the class token always is."""
        memories, height, width, channels = pictures_MHWC.shape
        grid = self.config.grid_of(height, width, channels)
        mask_MS: Booleans | None = None
        if mask_MHW is not None:
            # Padding within the batch must look like the zeros that fill up a picture alone.
            pictures_MHWC = np.where(mask_MHW[..., None], pictures_MHWC, 0)
            mask_MS = np.asarray(self._cut(mask_MHW[..., None], grid).any(axis=-1))
        where_SD = self.places[: grid[0], : grid[1]].reshape(grid[0] * grid[1], -1)
        x_MSD = self._vectors(self._cut(pictures_MHWC.astype(np.float32), grid)) + where_SD
        if self.config.class_token:
            first_1D = self.weights["embed.class_token"] + self.first
            x_MSD = np.concatenate([np.broadcast_to(first_1D, (memories, *first_1D.shape)), x_MSD], axis=1)
            mask_MS = None if mask_MS is None else np.pad(mask_MS, ((0, 0), (1, 0)), constant_values=True)
        return x_MSD, mask_MS, grid

    def _vectors(self, patches_MSP: Floats) -> Floats:
        return linear(self.weights, "embed.patches", patches_MSP)

    def _cut(self, pixels_MHWC: Source, grid: Grid) -> Source:
        """[M, S, patch · patch · C]: a patch is its pixels, row by row."""
        side, (memories, height, width, channels) = self.config.patch, pixels_MHWC.shape
        whole = np.pad(pixels_MHWC, ((0, 0), (0, grid[0] * side - height), (0, grid[1] * side - width), (0, 0)))
        cut = whole.reshape(memories, grid[0], side, grid[1], side, channels).swapaxes(2, 3)
        return cut.reshape(memories, grid[0] * grid[1], -1)


def pictures_of(
    front: FrontEnd, weights: Weights, memory: str = SOURCE
) -> PlainPatches | PlainConvolutions | PlainSound | None:
    """What reads an encoder's pictures or sounds; None where it reads tokens. `memory` is the name of what it reads."""
    match front:
        case PatchesFrontEnd():
            return PlainPatches(front, weights)
        case ConvolutionsFrontEnd():
            return PlainConvolutions(front, weights, named("encoder", memory), memory)
        case SoundFrontEnd():
            return PlainSound(front, weights)
    return None

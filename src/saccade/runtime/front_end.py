"""Front ends in plain NumPy: a picture becomes the vectors of its patches. Tokens are `plain.py`'s."""

import numpy as np

from saccade.arch.front_end import FrontEnd, PatchesFrontEnd
from saccade.runtime.contract import Booleans, Floats, Source
from saccade.runtime.layers import Weights, linear

Grid = tuple[int, int]


class PlainPatches:
    """A picture [M, height, width, channels] as vectors of its patches, row by row (Dosovitskiy et al. 2020, 3.1)."""

    def __init__(self, config: PatchesFrontEnd, weights: Weights) -> None:
        self.config = config
        self.weights = {name: weights[name] for name in weights if name.startswith("embed.")}
        positions = self.weights["embed.positions.vectors.weight"]
        self.first, self.places = positions[: config.extra], positions[config.extra :].reshape(*config.grid, -1)

    def __call__(self, pictures_MHWC: Source, mask_MS: Booleans | None = None) -> tuple[Floats, Booleans | None, Grid]:
        """Vectors [M, S, D], which of them are real, and the grid of the last ones. `mask_MS` is True for the patches
        that are real; the class token always is."""
        side, (memories, height, width, channels) = self.config.patch, pictures_MHWC.shape
        rows, columns = self.config.grid_of(height, width, channels)
        # [M, rows, side, columns, side, C] -> a patch is its pixels, row by row
        cut = pictures_MHWC.astype(np.float32).reshape(memories, rows, side, columns, side, channels).swapaxes(2, 3)
        where_SD = self.places[:rows, :columns].reshape(rows * columns, -1)
        x_MSD: Floats = linear(self.weights, "embed.patches", cut.reshape(memories, rows * columns, -1)) + where_SD
        if self.config.class_token:
            first_1D = self.weights["embed.class_token"] + self.first
            x_MSD = np.concatenate([np.broadcast_to(first_1D, (memories, *first_1D.shape)), x_MSD], axis=1)
            mask_MS = None if mask_MS is None else np.pad(mask_MS, ((0, 0), (1, 0)), constant_values=True)
        return x_MSD, mask_MS, (rows, columns)


def patches_of(front: FrontEnd, weights: Weights) -> PlainPatches | None:
    """What reads an encoder's pictures; None where it reads tokens."""
    return PlainPatches(front, weights) if isinstance(front, PatchesFrontEnd) else None

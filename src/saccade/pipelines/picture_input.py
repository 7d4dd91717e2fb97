"""How a picture enters a model: its pixels, or features of them that another network computes and that stay as they
are."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from saccade.arch.front_end import PictureFrontEnd
from saccade.axes import Grid
from saccade.runtime.contract import Floats
from saccade.sources.picture import PictureSource


@dataclass(frozen=True)
class PictureInput:
    """What a front end reads of a picture."""

    front: PictureFrontEnd
    blind: bool = False
    """The model is shown nothing: what it then knows comes from texts alone."""

    @cached_property
    def source(self) -> PictureSource:
        """Brings every picture to the size that is read."""
        return PictureSource(
            size_HW=(self.front.height, self.front.width), channels=1 if self.front.channels == 1 else 3
        )

    @cached_property
    def grid(self) -> Grid:
        """The fields that are looked at."""
        return Grid(height=self.front.grid[0], width=self.front.grid[1])

    def values(self, pictures_BHWC: np.ndarray) -> Floats:
        """Pixels from 0 to 1."""
        values: Floats = pictures_BHWC.astype(np.float32) / np.float32(255)
        return np.zeros_like(values) if self.blind else values

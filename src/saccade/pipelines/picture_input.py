"""How a picture enters a model: its pixels, or features of them that another network computes and that stay as they
are."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from saccade.arch.front_end import PictureFrontEnd
from saccade.axes import Grid
from saccade.errors import UserError
from saccade.runtime.contract import Floats
from saccade.sources.picture import PictureSource

FeaturesName = Literal["none", "efficientnet-lite0"]
FEATURES_SIDE, FEATURES_SHAPE = 224, (7, 7, 1280)
"""Pixels of a side that EfficientNet-Lite0 reads, and the grid that it makes."""


@dataclass(frozen=True)
class PictureInput:
    """What a front end reads of a picture."""

    front: PictureFrontEnd
    blind: bool = False
    """The model is shown nothing: what it then knows comes from texts alone."""
    features: FeaturesName = "none"
    """The network whose last grid is read instead of pixels."""

    def __post_init__(self) -> None:
        shape = (self.front.height, self.front.width, self.front.channels)
        if self.features != "none" and shape != FEATURES_SHAPE:
            wanted = " x ".join(map(str, FEATURES_SHAPE))
            raise UserError(f"features = {self.features!r} are a grid of {wanted}; the front end reads {shape}")

    @cached_property
    def source(self) -> PictureSource:
        """Brings every picture to the size that is read."""
        if self.features != "none":
            return PictureSource(size_HW=(FEATURES_SIDE, FEATURES_SIDE))
        return PictureSource(
            size_HW=(self.front.height, self.front.width), channels=1 if self.front.channels == 1 else 3
        )

    @cached_property
    def grid(self) -> Grid:
        """The fields that are looked at."""
        return Grid(height=self.front.grid[0], width=self.front.grid[1])

    def encoded(self, pixels_BHWC: np.ndarray) -> np.ndarray:
        """Features in float16, or the pixels themselves."""
        if self.features == "none":
            return pixels_BHWC
        if find_spec("torch") is None:
            raise UserError(f"features = {self.features!r} run only with PyTorch: pip install 'saccade[imagenet]'")
        network: Any = import_module("saccade.models.efficientnet").open_efficientnet()
        features: np.ndarray = network.features(pixels_BHWC)
        return features

    def values(self, pictures_BHWC: np.ndarray) -> Floats:
        """Pixels from 0 to 1, or features as they are."""
        values: Floats = pictures_BHWC.astype(np.float32)
        if self.features == "none":
            values /= np.float32(255)
        return np.zeros_like(values) if self.blind else values

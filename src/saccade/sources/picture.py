"""A picture as input: a file, its bytes, a PIL image or an array -> pixels of one size, and pictures side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from saccade.errors import UserError
from saccade.sources.opener import LARGEST_FILE, MEGAPIXELS, TAKES, is_image, open_picture
from saccade.sources.source import Collated, Source, padded

if TYPE_CHECKING:
    from PIL.Image import Image

    from saccade.axes import Grid

DRAWN_SIDE = 1024
"""Pixels of the longer side of a picture that is given back to be drawn into."""


@dataclass(frozen=True)
class PictureItem:
    """A picture that was read."""

    name: str
    """Of its file; "picture" where it has none."""
    pixels_HWC: np.ndarray = field(repr=False)
    """uint8, 0 is black."""
    origin: Any = field(default=None, repr=False, compare=False)
    """What it was read from, if that shows the same part of the picture in more detail."""

    @property
    def image(self) -> "Image":
        """As a PIL image to draw into: the picture itself, or, where it cannot be had any more, as the model sees
        it."""
        if self.origin is not None:
            try:
                image = open_picture(self.origin)[1]
            except UserError:
                return self.seen
            image.thumbnail((DRAWN_SIDE, DRAWN_SIDE))
            return image
        return self.seen

    @property
    def seen(self) -> "Image":
        """As the model sees it."""
        from PIL import Image

        pixels = self.pixels_HWC
        return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


@dataclass(frozen=True)
class PictureSource(Source[PictureItem, Collated]):
    """A picture, turned as its camera says, in colour or grey, scaled to `size_HW` if there is one."""

    size_HW: tuple[int, int] | None = None
    """Height and width in pixels that every picture is brought to; None leaves it as it is."""
    fit: Literal["stretch", "pad"] = "stretch"
    """stretch: to the whole size, whatever its shape; pad: keeps its shape, what is left over at the right or at the
    bottom is padding."""
    channels: Literal[1, 3] = 3
    """1: grey; 3: red, green, blue."""
    cell: int = 1
    """Pixels along a side of one position that a model looks at."""
    megapixels: float = MEGAPIXELS
    """The largest picture, checked before it is decoded."""

    kind: ClassVar[str] = "picture"
    takes: ClassVar[str] = TAKES
    suffixes: ClassVar[tuple[str, ...]] = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm")

    @property
    def largest_file(self) -> int:
        return LARGEST_FILE

    def is_one(self, raw: Any) -> bool:
        return isinstance(raw, str | Path | bytes | np.ndarray) or is_image(raw)

    def read(self, raw: Any) -> PictureItem:
        name, image = open_picture(raw, self.megapixels)
        # A padded picture covers only a part of the grid, so looks are drawn into what the model sees.
        scaled = self.size_HW is not None and self.fit == "stretch"
        return PictureItem(name, self._fitted(image), raw if scaled else None)

    def label(self, item: PictureItem) -> str:
        return item.name

    def size(self, item: PictureItem) -> int:
        return int(item.pixels_HWC.shape[0] * item.pixels_HWC.shape[1])

    def collate(self, items: Sequence[PictureItem]) -> Collated:
        """float32 pixels from 0 to 1, [B, H, W, C], and which of them are of a picture, [B, H, W]."""
        pixels_BHWC, mask_BHW = padded([item.pixels_HWC for item in items], axes=2)
        values = pixels_BHWC.astype(np.float32) / np.float32(255)
        if self.size_HW is None or self.fit == "stretch" or (values.shape[1:3] == self.size_HW and mask_BHW is None):
            return Collated(values, mask_BHW)
        # Padded to the size that the model was made for, not only to the largest of these.
        height, width = self.size_HW
        down, right = height - values.shape[1], width - values.shape[2]
        real = np.ones(values.shape[:3], dtype=bool) if mask_BHW is None else mask_BHW
        whole = np.pad(values, ((0, 0), (0, down), (0, right), (0, 0)))
        return Collated(whole, np.pad(real, ((0, 0), (0, down), (0, right))))

    def labels(self, item: PictureItem) -> "Grid":
        from saccade.axes import Grid

        height, width = self.size_HW or item.pixels_HWC.shape[:2]
        return Grid(height=-(-height // self.cell), width=-(-width // self.cell))

    def _fitted(self, image: "Image") -> np.ndarray:
        from PIL import Image

        image = image.convert("L" if self.channels == 1 else "RGB")
        if self.size_HW is not None and (image.height, image.width) != self.size_HW:
            height, width = self.size_HW
            if self.fit == "pad":
                scale = min(height / image.height, width / image.width)
                height, width = max(1, round(image.height * scale)), max(1, round(image.width * scale))
                height, width = min(height, self.size_HW[0]), min(width, self.size_HW[1])
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(image, dtype=np.uint8).reshape(image.height, image.width, self.channels)

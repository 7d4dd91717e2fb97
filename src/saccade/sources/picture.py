"""A picture as input: a file, its bytes, a PIL image or an array -> pixels of one size, and pictures side by side."""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from saccade.errors import UserError, WrongUse
from saccade.sources.files import file_content, within
from saccade.sources.source import Collated, Source, padded, shown

if TYPE_CHECKING:
    from PIL.Image import Image

    from saccade.axes import Grid

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
"""All that is decoded: Pillow knows more, some of which start other programs."""


LARGEST_FILE = 64 * 2**20


@dataclass(frozen=True)
class PictureItem:
    """A picture that was read."""

    name: str
    """Of its file; "picture" where it has none."""
    pixels_HWC: np.ndarray = field(repr=False)
    """uint8, 0 is black."""

    @property
    def image(self) -> "Image":
        """As a PIL image, the way the model sees it."""
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
    megapixels: float = 25.0
    """The largest picture, checked before it is decoded."""

    kind: ClassVar[str] = "picture"
    takes: ClassVar[str] = "a picture is a file's name, its bytes, a PIL image or an array [height, width, channels]"
    suffixes: ClassVar[tuple[str, ...]] = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm")

    @property
    def largest_file(self) -> int:
        return LARGEST_FILE

    def is_one(self, raw: Any) -> bool:
        return isinstance(raw, str | Path | bytes | np.ndarray) or _is_image(raw)

    def read(self, raw: Any) -> PictureItem:
        if isinstance(raw, str | Path):
            return PictureItem(str(raw), self._decoded(file_content(raw, LARGEST_FILE), str(raw)))
        if isinstance(raw, bytes):
            return PictureItem("picture", self._decoded(within(raw, LARGEST_FILE, "picture"), "picture"))
        if isinstance(raw, np.ndarray):
            return PictureItem("picture", self._fitted(self._from_array(raw)))
        if _is_image(raw):
            self._check_size(raw.size, "picture")
            name = str(getattr(raw, "filename", "") or "picture")
            return PictureItem(name, self._guarded(raw, name))
        raise WrongUse(f"{self.takes}, not {shown(raw)}")

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

    def _decoded(self, content: bytes, name: str) -> np.ndarray:
        from PIL import Image

        try:
            with warnings.catch_warnings():
                # Pillow warns above a limit of its own, which is higher than ours.
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)
                opened = Image.open(io.BytesIO(content), formats=FORMATS)
        except Image.DecompressionBombError:
            raise UserError(f"{name}: larger than {self.megapixels:g} megapixels") from None
        except Exception as error:
            raise UserError(f"{name}: not a picture that can be read ({', '.join(FORMATS)}){_why(error)}") from None
        self._check_size(opened.size, name)
        return self._guarded(opened, name)

    def _guarded(self, image: "Image", name: str) -> np.ndarray:
        try:
            return self._fitted(_upright(image))
        except (
            Exception
        ) as error:  # each decoder of Pillow has errors of its own: SyntaxError, struct.error, EOFError …
            raise UserError(f"{name}: a damaged picture{_why(error)}") from None

    def _check_size(self, size: tuple[int, int], name: str) -> None:
        width, height = size
        if width * height > self.megapixels * 1e6:
            most = f"at most {self.megapixels:g} megapixels are read"
            raise UserError(f"{name}: {width:,} x {height:,} pixels are {width * height / 1e6:.1f} megapixels; {most}")
        if not width or not height:
            raise UserError(f"{name}: {width} x {height} pixels; there is nothing to see")

    def _from_array(self, array: np.ndarray) -> "Image":
        from PIL import Image

        if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)):
            raise WrongUse(f"an array [height, width] or [height, width, 1 or 3], not {list(array.shape)}")
        self._check_size((array.shape[1], array.shape[0]), "picture")
        if np.issubdtype(array.dtype, np.floating):
            if not bool(np.isfinite(array).all()) or array.min() < 0 or array.max() > 1:
                raise WrongUse("the numbers of a picture in floating point go from 0 to 1")
            array = np.rint(array * 255)
        elif array.dtype != np.uint8:
            raise WrongUse(
                f"a picture's numbers are uint8 from 0 to 255 or floating point from 0 to 1, not {array.dtype}"
            )
        flat = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
        return Image.fromarray(np.ascontiguousarray(flat.astype(np.uint8)))

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


def _upright(image: "Image") -> "Image":
    """Turned as its camera says, 8 bits deep, what is transparent as white."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I") or image.mode == "F":
        # Pillow would cut off what is above 255 instead of scaling it down.
        deep = np.asarray(image, dtype=np.float64)
        return Image.fromarray(np.clip(deep / (257 if image.mode.startswith("I") else 1), 0, 255).astype(np.uint8))
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image


def _is_image(raw: Any) -> bool:
    """Whether it is a PIL image, asked without importing Pillow."""
    return any(kind.__module__ == "PIL.Image" and kind.__name__ == "Image" for kind in type(raw).__mro__)


def _why(error: Exception) -> str:
    text = " ".join(str(error).split())[:100]
    return "" if not text or "BytesIO" in text else f": {text}"

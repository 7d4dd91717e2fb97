"""Opens a picture: a file, its bytes, a PIL image or an array -> a PIL image, upright and 8 bits deep, under limits.

All pictures come in here, those that models read as those that looks are drawn into. Sizes are checked before anything
is decoded, and what decoders find fault with becomes one clear line.
"""

import contextlib
import io
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saccade.errors import UserError, WrongUse
from saccade.sources.files import file_content, within
from saccade.sources.source import shown

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
"""All that is decoded: Pillow knows more, some of which start other programs."""
LARGEST_FILE = 64 * 2**20
MEGAPIXELS = 25.0
TAKES = "a picture is a file's name, its bytes, a PIL image or an array [height, width, channels]"


def open_picture(raw: Any, megapixels: float = MEGAPIXELS) -> tuple[str, "Image"]:
    """Its name, and the picture in mode L or RGB: turned as its camera says, what is transparent as white. The first
    one of an animation."""
    if isinstance(raw, str | Path):
        return str(raw), _decoded(file_content(raw, LARGEST_FILE), str(raw), megapixels)
    if isinstance(raw, bytes):
        return "picture", _decoded(within(raw, LARGEST_FILE, "picture"), "picture", megapixels)
    if isinstance(raw, np.ndarray):
        return "picture", _from_array(raw, megapixels)
    if is_image(raw):
        name = str(getattr(raw, "filename", "") or "picture")
        _check_size(raw.size, name, megapixels)
        return name, _guarded(raw, name)
    raise WrongUse(f"{TAKES}, not {shown(raw)}")


def is_image(raw: Any) -> bool:
    """Whether it is a PIL image, asked without importing Pillow."""
    return any(kind.__module__ == "PIL.Image" and kind.__name__ == "Image" for kind in type(raw).__mro__)


def _decoded(content: bytes, name: str, megapixels: float) -> "Image":
    from PIL import Image

    try:
        with warnings.catch_warnings():
            # Pillow warns above a limit of its own, which is higher than ours, and of damaged EXIF.
            warnings.simplefilter("ignore")
            opened = Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError:
        raise UserError(f"{name}: larger than {megapixels:g} megapixels") from None
    except Exception as error:
        raise UserError(f"{name}: not a picture that can be read ({', '.join(FORMATS)}){_why(error)}") from None
    _check_size(opened.size, name, megapixels)
    return _guarded(opened, name)


def _guarded(image: "Image", name: str) -> "Image":
    try:
        with warnings.catch_warnings(), _libtiff_silenced(image):
            warnings.simplefilter("ignore")
            return _plain(_upright(image))
    except MemoryError:
        raise UserError(f"{name}: not enough memory for {image.width:,} x {image.height:,} pixels") from None
    except Exception as error:  # each decoder of Pillow has errors of its own: SyntaxError, struct.error, EOFError …
        raise UserError(f"{name}: a damaged picture{_why(error)}") from None


def _check_size(size: tuple[int, int], name: str, megapixels: float) -> None:
    width, height = size
    if width * height > megapixels * 1e6:
        most = f"at most {megapixels:g} megapixels are read"
        raise UserError(f"{name}: {width:,} x {height:,} pixels are {width * height / 1e6:.1f} megapixels; {most}")
    if width < 1 or height < 1:
        raise UserError(f"{name}: {width} x {height} pixels; there is nothing to see")


_redirecting = threading.Lock()


@contextlib.contextmanager
def _libtiff_silenced(image: "Image") -> Iterator[None]:
    """libtiff writes what it finds odd to the process's own standard error, and Pillow cannot tell it not to."""
    if getattr(image, "format", None) != "TIFF":
        yield
        return
    with _redirecting:
        try:
            kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        except OSError:  # there is no standard error
            yield
            return
        try:
            os.dup2(nothing, 2)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nothing)


def _upright(image: "Image") -> "Image":
    """Turned as its camera says. EXIF that cannot be read is no reason to refuse the picture."""
    from PIL import ImageOps

    image.load()
    with contextlib.suppress(Exception):
        return ImageOps.exif_transpose(image)
    return image


def _plain(image: "Image") -> "Image":
    """In mode L or RGB."""
    from PIL import Image

    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_eight_bits(image))
    if image.mode == "LAB":  # Pillow converts it with a colour profile only; its lightness is a grey picture
        return image.getchannel(0)
    if "A" in image.getbands() or "a" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image if image.mode == "L" else image.convert("L" if image.mode == "1" else "RGB")


def _eight_bits(image: "Image") -> np.ndarray:
    """Pillow would cut off what is above 255 instead of scaling it down."""
    deep = np.nan_to_num(np.asarray(image, dtype=np.float64))
    if image.mode == "F":  # from 0 to 1 as programs for photographs write it, or from 0 to 255
        deep = deep * (255 if deep.max() <= 1 else 1)
    else:
        deep = deep / (257 if deep.max() <= 65535 else deep.max() / 255)
    return np.clip(np.rint(deep), 0, 255).astype(np.uint8)


def _from_array(array: np.ndarray, megapixels: float) -> "Image":
    from PIL import Image

    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)):
        raise WrongUse(f"an array [height, width] or [height, width, 1 or 3], not {list(array.shape)}")
    _check_size((array.shape[1], array.shape[0]), "picture", megapixels)
    if np.issubdtype(array.dtype, np.floating):
        if not bool(np.isfinite(array).all()) or array.min() < 0 or array.max() > 1:
            raise WrongUse("the numbers of a picture in floating point go from 0 to 1")
        array = np.rint(array * 255)
    elif array.dtype != np.uint8:
        raise WrongUse(f"a picture's numbers are uint8 from 0 to 255 or floating point from 0 to 1, not {array.dtype}")
    flat = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    return Image.fromarray(np.ascontiguousarray(flat.astype(np.uint8)))


def _why(error: Exception) -> str:
    text = " ".join(str(error).split())[:100]
    return "" if not text or "BytesIO" in text else f": {text}"

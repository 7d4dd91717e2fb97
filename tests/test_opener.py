"""Pictures of every kind come in alike: modes, depths, animations; damaged ones and bombs are one clear line each."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mutated_pictures import FORMATS, bombs, fault_of, mutated
from saccade.errors import UserError, WrongUse
from saccade.sources.opener import open_picture
from saccade.sources.picture import PictureSource

COLOUR = (200, 40, 90)


def written(image: Image.Image, kind: str, **options: Any) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def pixel(content: bytes) -> tuple[int, ...]:
    image = open_picture(content)[1]
    assert image.mode in ("L", "RGB")
    return tuple(np.asarray(image.convert("RGB"))[1, 1].tolist())


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("PNG", "RGB"), ("PNG", "RGBA"), ("PNG", "P"), ("JPEG", "CMYK"), ("TIFF", "CMYK"), ("TIFF", "YCbCr"),
     ("GIF", "P"), ("WEBP", "RGB"), ("BMP", "RGB"), ("PPM", "RGB")],
)  # fmt: skip
def test_a_colour_is_the_same_in_every_mode(kind: str, mode: str) -> None:
    image = Image.new("RGB", (8, 8), COLOUR)
    image = image.quantize(2) if mode == "P" else image.convert(mode)
    options = {"lossless": True} if kind == "WEBP" else {"quality": 100} if kind == "JPEG" else {}
    assert np.abs(np.array(pixel(written(image, kind, **options))) - COLOUR).max() <= 6


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P"])
def test_grey_is_grey(mode: str) -> None:
    image = Image.new("L", (4, 4), 255).convert(mode)
    assert pixel(written(image, "PNG")) == (255, 255, 255)


def test_deep_pictures_are_scaled_down() -> None:
    for deep in (np.full((3, 3), 32896, np.uint16), np.full((3, 3), 128.5 / 255, np.float32)):
        kind = "PNG" if deep.dtype == np.uint16 else "TIFF"
        assert abs(pixel(written(Image.fromarray(deep), kind))[0] - 128) <= 1


def test_what_is_transparent_is_white() -> None:
    palette = Image.new("P", (3, 3), 0)
    palette.putpalette([10, 20, 30, 200, 100, 50])
    assert pixel(written(palette, "PNG", transparency=0)) == (255, 255, 255)
    assert pixel(written(palette, "GIF", transparency=0)) == (255, 255, 255)
    half = Image.new("RGBA", (3, 3), (0, 0, 0, 128))
    assert abs(pixel(written(half, "PNG"))[0] - 127) <= 1


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_an_animation_the_first_picture_is_taken(kind: str) -> None:
    first, second = (Image.new("RGB", (8, 8), colour) for colour in ("white", "black"))
    options = {"lossless": True} if kind == "WEBP" else {}
    assert pixel(written(first, kind, save_all=True, append_images=[second], **options)) == (255, 255, 255)


@pytest.mark.parametrize("turn", range(1, 9))
def test_every_way_to_hold_a_camera(turn: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = turn
    found = open_picture(written(Image.new("RGB", (6, 4)), "JPEG", exif=exif))[1]
    assert found.size == ((4, 6) if turn > 4 else (6, 4))


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_pictures_are_read_or_refused_in_one_line(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    faults = [fault_of(tmp_path / f"{number}.{kind}", mutated(kind, number)) for number in range(40)]
    assert not any(faults), [fault for fault in faults if fault]
    assert capfd.readouterr().err == "", "no library writes anything by itself"


def test_bombs_are_refused_in_bounded_memory(tmp_path: Path) -> None:
    found = list(bombs())
    assert len(found) == 12
    for name, content in found:
        assert len(content) < 1_000_000
        assert fault_of(tmp_path / name, content) == "", name
        if name != "text.png":  # a small picture, whose notes are the bomb
            with pytest.raises(UserError):
                open_picture(tmp_path / name)


def test_one_opener_for_what_is_read_and_what_is_drawn_into(tmp_path: Path) -> None:
    Image.new("L", (6_000, 6_000)).save(tmp_path / "large.png")
    with pytest.raises(UserError, match="megapixels; at most 25"):
        open_picture(tmp_path / "large.png")
    with pytest.raises(WrongUse):
        open_picture(7)


def test_a_picture_to_draw_into_has_more_detail_than_the_model_sees(tmp_path: Path) -> None:
    Image.new("RGB", (300, 200), "red").save(tmp_path / "one.png")
    item = PictureSource(size_HW=(8, 8)).read(tmp_path / "one.png")
    assert item.seen.size == (8, 8)
    assert item.image.size == (300, 200)
    os.remove(tmp_path / "one.png")
    assert item.image.size == (8, 8)
    assert PictureSource(size_HW=(8, 8), fit="pad").read(np.zeros((9, 3), np.uint8)).image.size == (3, 8)


def test_without_standard_error_pictures_are_read_too(tmp_path: Path) -> None:
    Image.new("RGB", (3, 3)).save(tmp_path / "one.tif")
    code = "import os, sys; os.close(2); from saccade.sources.opener import open_picture; open_picture(sys.argv[1])"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "one.tif")], check=False).returncode == 0

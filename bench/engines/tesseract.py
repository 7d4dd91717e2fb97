"""Tesseract by tesserocr, in its mode for single words, with Debian's English data (package tesseract-ocr-eng, or the
folder that $TESSDATA_PREFIX names): `python -m bench.engines.tesseract WORK.json`."""

import argparse
import os
from collections.abc import Sequence

import numpy as np
from PIL import Image

from bench.engines.crops import CropReader, run_crop_reader

DATA = "/usr/share/tesseract-ocr/5/tessdata"
SMALLEST = 48
"""Pixels of height that a crop is brought to, at least: Tesseract is made for scans of 300 dots an inch."""


def build(given: argparse.Namespace) -> CropReader:  # noqa: ARG001  it has no settings
    import tesserocr

    api = tesserocr.PyTessBaseAPI(
        path=os.environ.get("TESSDATA_PREFIX", DATA), lang="eng", psm=tesserocr.PSM.SINGLE_WORD
    )

    def read(crops: Sequence[np.ndarray]) -> list[str]:
        texts = []
        for crop in crops:
            image = Image.fromarray(crop)
            scale = max(1.0, SMALLEST / image.height)
            api.SetImage(image.resize((round(image.width * scale), round(image.height * scale))))
            texts.append(api.GetUTF8Text().strip())
        return texts

    return CropReader(f"Tesseract {tesserocr.tesseract_version().split()[1]}", read)


if __name__ == "__main__":
    run_crop_reader(build)

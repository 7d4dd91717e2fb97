"""What engines are asked that read words in pictures, and how they are timed: the same for all.

`python -m bench.engines.NAME WORK.json` prints one line of JSON: what was read, and the seconds. Loading is not timed.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saccade.data.word_sets import read_photographs

WARMUP = 8
"""Pictures that are read before the clock starts."""


@dataclass(frozen=True)
class CropReader:
    title: str
    """Name and version, for the table."""
    read: Callable[[Sequence[np.ndarray]], list[str]]
    """Grey crops -> the word in each."""


def run_crop_reader(build: Callable[[argparse.Namespace], CropReader], *own: str) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    for name in own:
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    work = json.loads(given.work.read_text(encoding="utf-8"))
    words = read_photographs(Path(work["folder"]), work["set"], limit=work["limit"])
    reader, crops = build(given), [word.pixels_HW for word in words]
    reader.read(crops[:WARMUP])
    began = time.perf_counter()
    texts = reader.read(crops)
    print(json.dumps({"engine": reader.title, "seconds": time.perf_counter() - began, "texts": texts}))

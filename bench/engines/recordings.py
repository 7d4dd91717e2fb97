"""What engines are asked that write down recordings, and how they are timed: the same for all.

`python -m bench.engines.NAME WORK.json` prints one line of JSON: what was heard, and the seconds. Loading is not timed;
decoding FLAC and log-mel energies, or whatever an engine computes instead, is.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WARMUP = 3
"""Recordings that are heard before the clock starts."""


@dataclass(frozen=True)
class Listener:
    title: str
    """Name and version, for the table."""
    hear: Callable[[Path], str]
    """A sound file -> its text."""


def run_listener(build: Callable[[argparse.Namespace], Listener], *own: str) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    for name in own:
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    files = [Path(file) for file in json.loads(given.work.read_text(encoding="utf-8"))["files"]]
    listener = build(given)
    for file in files[:WARMUP]:
        listener.hear(file)
    began = time.perf_counter()
    texts = [listener.hear(file) for file in files]
    print(json.dumps({"engine": listener.title, "seconds": time.perf_counter() - began, "texts": texts}))

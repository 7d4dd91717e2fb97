"""Saccade's listener, a recording at a time: `python -m bench.engines.transcriber WORK.json --model MODEL`."""

import argparse

from bench.engines.recordings import Listener, run_listener
from saccade import __version__
from saccade.pipelines.load import load


def build(given: argparse.Namespace) -> Listener:
    transcribe = load(given.model)
    return Listener(f"saccade {__version__}", lambda file: str(transcribe(file).text))


if __name__ == "__main__":
    run_listener(build, "model")

"""Saccade's pronouncer as `saccade pronounce` uses it: `python -m bench.engines.pronouncer WORK.json --model MODEL`."""

import argparse
import os
from collections.abc import Sequence

import torch

from bench.engines.words import Speaker, run_speaker
from saccade import __version__
from saccade.tasks.load import load
from saccade.tasks.pronouncer import Pronouncer


def build(given: argparse.Namespace) -> Speaker:
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    pronouncer = load(given.model)
    if not isinstance(pronouncer, Pronouncer):
        raise SystemExit(f"{given.model} is no model that pronounces")

    def pronounce(words: Sequence[str]) -> list[str]:
        return [pronunciation.text for pronunciation in pronouncer(words)]

    return Speaker(f"saccade {__version__}, {pronouncer.parameters:,} weights", pronounce)


if __name__ == "__main__":
    run_speaker(build, "model")

"""Saccade's reader: `python -m bench.engines.word_reader WORK.json --model MODEL`."""

import argparse

from bench.engines.crops import CropReader, run_crop_reader
from saccade import __version__
from saccade.pipelines.load import load


def build(given: argparse.Namespace) -> CropReader:
    reader = load(given.model)
    return CropReader(f"saccade {__version__}", lambda crops: [word.text for word in reader.read_words(crops)])


if __name__ == "__main__":
    run_crop_reader(build, "model")

"""Saccade's pronouncer as `saccade pronounce` uses it: `python -m bench.engines.pronouncer WORK.json --model MODEL`."""

import argparse
from collections.abc import Sequence

from bench.engines.words import Speaker, run_speaker
from saccade import __version__
from saccade.arch.weights import parameters
from saccade.pipelines.load import load
from saccade.pipelines.pronouncer import Pronouncer


def build(given: argparse.Namespace) -> Speaker:
    pronouncer = load(given.model)
    if not isinstance(pronouncer, Pronouncer):
        raise SystemExit(f"{given.model} is no model that pronounces")

    def pronounce(words: Sequence[str]) -> list[str]:
        return [pronunciation.text for pronunciation in pronouncer(words)]

    weights = parameters(pronouncer.model.config.weights(len(pronouncer.vocabulary)))
    return Speaker(f"saccade {__version__}, {weights:,} weights", pronounce)


if __name__ == "__main__":
    run_speaker(build, "model")

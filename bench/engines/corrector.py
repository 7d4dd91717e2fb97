"""Saccade's corrector, as `saccade correct` uses it: `python -m bench.engines.corrector WORK.json --model MODEL`."""

import argparse
from collections.abc import Sequence

from bench.engines.words import CANDIDATES, Speller, run_speller
from saccade import __version__
from saccade.arch.weights import parameters
from saccade.pipelines.corrector import Corrector
from saccade.pipelines.load import load


def build(given: argparse.Namespace) -> Speller:
    corrector = load(given.model)
    if not isinstance(corrector, Corrector):
        raise SystemExit(f"{given.model} is no model that corrects")

    def correct(sentences: Sequence[str]) -> list[str]:
        return [correction.text for correction in corrector(sentences)]

    def suggest(words: Sequence[str]) -> list[list[str]]:
        return [[one.text for one in correction.best] for correction in corrector(words, best=CANDIDATES)]

    weights = parameters(corrector.model.config.weights(len(corrector.vocabulary)))
    return Speller(f"saccade {__version__}, {weights:,} weights", correct, suggest)


if __name__ == "__main__":
    run_speller(build, "model")

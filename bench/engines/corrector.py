"""Saccade's corrector, as `saccade correct` uses it: `python -m bench.engines.corrector WORK.json --model MODEL`."""

import argparse
import os
from collections.abc import Sequence

import torch

from bench.engines.words import CANDIDATES, Speller, run_speller
from saccade import __version__
from saccade.tasks.corrector import Corrector
from saccade.tasks.load import load


def build(given: argparse.Namespace) -> Speller:
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    corrector = load(given.model)
    if not isinstance(corrector, Corrector):
        raise SystemExit(f"{given.model} is no model that corrects")

    def correct(sentences: Sequence[str]) -> list[str]:
        return [correction.text for correction in corrector(sentences)]

    def suggest(words: Sequence[str]) -> list[list[str]]:
        return [[one.text for one in correction.best] for correction in corrector(words, best=CANDIDATES)]

    return Speller(f"saccade {__version__}, {corrector.parameters:,} weights", correct, suggest)


if __name__ == "__main__":
    run_speller(build, "model")

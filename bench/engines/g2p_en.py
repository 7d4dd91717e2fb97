"""The network of g2p-en, by its `predict`, which it keeps for words that are not in its dictionary.

`python -m bench.engines.g2p_en WORK.json`. The package asks for data of nltk when it is imported, and fetches them from
the network. Only its tagger and its dictionary need them, not the network's weights: stand-ins are put in their place.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from bench.engines.words import Speaker, run_speaker


def build(given: argparse.Namespace) -> Speaker:  # noqa: ARG001  it has no settings
    network = load_network()

    def pronounce(words: Sequence[str]) -> list[str]:
        return [without_stress(network.predict(word)) for word in words]

    weights = sum(network.variables[name].size for name in network.variables.files)
    return Speaker(f"g2p-en {version('g2p-en')}, {weights:,} weights", pronounce)


def without_stress(phonemes: Sequence[str]) -> str:
    """AH0 B AW1 T -> AH B AW T; a sign that is no phoneme stays, and counts as wrong."""
    return " ".join(phoneme.rstrip("012") for phoneme in phonemes)


def load_network() -> Any:
    sys.modules.update(stand_ins())
    from g2p_en.g2p import G2p

    return G2p()


def stand_ins() -> dict[str, ModuleType]:
    """What g2p-en takes from nltk and inflect while it is imported and built; none of it is used by `predict`."""
    nltk, corpus, tokenize = (ModuleType(name) for name in ("nltk", "nltk.corpus", "nltk.tokenize"))
    vars(nltk).update(pos_tag=None, data=_Empty(), download=None, corpus=corpus, tokenize=tokenize)
    vars(corpus).update(cmudict=_Empty())
    vars(tokenize).update(TweetTokenizer=_Empty)
    modules = {module.__name__: module for module in (nltk, corpus, tokenize)}
    if find_spec("inflect") is None:
        inflect = ModuleType("inflect")
        vars(inflect).update(engine=_Empty)
        modules["inflect"] = inflect
    return modules


class _Empty:
    """Finds everything, holds nothing."""

    def find(self, name: str) -> str:
        return name

    def dict(self) -> Mapping[str, Any]:
        return {}

    def tokenize(self, text: str) -> list[str]:
        raise RuntimeError("only words are pronounced here")


if __name__ == "__main__":
    run_speaker(build)

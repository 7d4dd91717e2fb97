"""pyspellchecker with its English dictionary: each word it does not know becomes its `correction`, if it has one.

`python -m bench.engines.pyspellchecker WORK.json --way words`; with `--way names`, names inside sentences stay.
"""

import argparse
from collections.abc import Sequence
from importlib.metadata import version

from spellchecker import SpellChecker

from bench.engines.words import Speller, change_words, run_speller
from saccade.data.noise import like, plainly

WAYS = ("words", "names")


def build(given: argparse.Namespace) -> Speller:
    checker = SpellChecker(language="en", distance=2)

    def change(word: str) -> str | None:
        plain = plainly(word)
        # Its dictionary has no capitals: the answer gets those of the word.
        found = None if plain in checker else checker.correction(plain)
        return like(word, found) if found else None

    def correct(sentences: Sequence[str]) -> list[str]:
        return [change_words(sentence, change, names=given.way != "names") for sentence in sentences]

    def candidates(word: str) -> list[str]:
        """By how often they are written, which is how its `correction` chooses; it has a set of them only."""
        return sorted(checker.candidates(word) or [], key=lambda one: (-checker[one], one))

    def suggest(words: Sequence[str]) -> list[list[str]]:
        return [candidates(word) for word in words]

    return Speller(f"pyspellchecker {version('pyspellchecker')}", correct, suggest)


if __name__ == "__main__":
    run_speller(build, "way")

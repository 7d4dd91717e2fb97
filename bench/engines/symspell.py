"""symspellpy with its English dictionaries, up to two slips a word, in one of several ways.

`python -m bench.engines.symspell WORK.json --way words`: `lookup` of each word; `names`: the same, but names inside
sentences stay; `compound`: `lookup_compound`, which minds neighbours and spaces, of the words between punctuation.
"""

import argparse
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec

from symspellpy import SymSpell, Verbosity
from symspellpy.editdistance import DistanceAlgorithm, EditDistance

from bench.engines.words import Change, Speller, change_runs, change_words, run_speller

WAYS = ("words", "names", "compound")
FARTHEST = 2
WORDS, PAIRS = "frequency_dictionary_en_82_765.txt", "frequency_bigramdictionary_en_243_342.txt"


def build(given: argparse.Namespace) -> Speller:
    speller = load_dictionaries()

    def change(word: str) -> str | None:
        found = speller.lookup(word, Verbosity.TOP, max_edit_distance=FARTHEST, transfer_casing=True)
        return found[0].term if found else None

    def change_together(words: str) -> str | None:
        found = speller.lookup_compound(words, FARTHEST, ignore_non_words=True, transfer_casing=True)
        return found[0].term if found else None

    ways: dict[str, Callable[[str], str]] = {
        "words": lambda sentence: change_words(sentence, plain_apostrophes(change)),
        "names": lambda sentence: change_words(sentence, plain_apostrophes(change), names=False),
        "compound": lambda sentence: change_runs(sentence, plain_apostrophes(change_together)),
    }
    one = ways[given.way]

    def correct(sentences: Sequence[str]) -> list[str]:
        return [one(sentence) for sentence in sentences]

    def suggest(words: Sequence[str]) -> list[list[str]]:
        """It sorts them by slips, then by how often they are written."""
        return [[found.term for found in speller.lookup(word, Verbosity.ALL, FARTHEST)] for word in words]

    return Speller(f"symspellpy {version('symspellpy')}", correct, suggest)


def load_dictionaries() -> SymSpell:
    # Its distance in C, where the package for that is there, gives the same answers sooner.
    fast = find_spec("editdistpy") is not None
    algorithm = DistanceAlgorithm.DAMERAU_OSA_FAST if fast else DistanceAlgorithm.DAMERAU_OSA
    speller = SymSpell(
        max_dictionary_edit_distance=FARTHEST, prefix_length=7, distance_comparer=EditDistance(algorithm)
    )
    folder = files("symspellpy")
    words = speller.load_dictionary(str(folder / WORDS), term_index=0, count_index=1, encoding="utf-8")
    pairs = speller.load_bigram_dictionary(str(folder / PAIRS), term_index=0, count_index=2, encoding="utf-8")
    if not (words and pairs):
        raise SystemExit(f"symspellpy {version('symspellpy')} does not bring {WORDS} and {PAIRS}")
    return speller


def plain_apostrophes(change: Change) -> Change:
    """Its dictionary knows ' only."""

    def changed(words: str) -> str | None:
        found = change(words.replace("’", "'"))
        return found.replace("'", "’") if found and "’" in words else found

    return changed


if __name__ == "__main__":
    run_speller(build, "way")

"""`python -m bench.spelling_test --data DIR --out FILE.tsv`: the spelling test, a misspelt and a clean sentence a row.

The sentences are English ones of Tatoeba's test parts, then of its valid parts, in no training part, each once.
Their words are misspelt by what is held out only: known misspellings of codespell and Norvig's list where a word has
any, and else slips learnt from held-out misspellings alone, which moreover must be strings of the held-out fifth. So no
misspelling of this test can have been trained on, whichever way training made its own. No spaces are lost or added.
`--isolated FILE.tsv` also writes the held-out misspellings of Norvig's list, with the words each may stand for.
"""

import argparse
import hashlib
import string
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from saccade.data.misspell import held_out, read_misspellings
from saccade.data.noise import Noise, NoiseConfig, find_names, plainly
from saccade.data.split import write_pairs
from saccade.data.text import Pair, data_folders, find, read_pairs
from saccade.errors import UserError
from saccade.evaluate.spelling import Corrected, word_accuracy

SENTENCES = 2000
SEED = 20
NOISE = NoiseConfig(clean=0.0, max_error_rate=0.53, listed=1.0, names=0.0, lost_space=0.0, added_space=0.0)
LEAST, MOST = 0.15, 0.25
"""The share of words that is to be misspelt."""
LANGUAGES = ("spa", "fra")
LISTS = ("spelling/codespell.tsv.gz", "spelling/norvig.tsv")


def read_english(part: str, folders: Sequence[Path]) -> list[str]:
    """The English sentences of a part of both pairs of languages, each once."""
    paths = [find(f"tatoeba/eng-{language}.{part}.tsv.gz", folders) for language in LANGUAGES]
    return list(dict.fromkeys(source for path in paths for source, _ in read_pairs([path])))


def choose_sentences(training: Sequence[str], test: Sequence[str], valid: Sequence[str]) -> list[str]:
    """Those of the test parts, then as many of the valid parts as are wanted, in an order that is fixed by a hash."""
    seen = set(training)
    order = [*test, *sorted(valid, key=lambda sentence: hashlib.sha256(sentence.encode()).digest())]
    return [sentence for sentence in dict.fromkeys(order) if sentence not in seen][:SENTENCES]


def misspell_all(noise: Noise, sentences: Sequence[str]) -> Iterator[Pair]:
    """SENTENCES rows. Each has its own generator; fewer sentences are misspelt several times."""
    for number in range(SENTENCES):
        sentence = sentences[number % len(sentences)]
        yield noise(sentence, np.random.default_rng([SEED, number])), sentence


def isolated_pairs(folders: Sequence[Path]) -> list[Pair]:
    """Held-out misspellings of Norvig's list, and the words that it or codespell says they may stand for."""
    own = {misspelling.wrong for misspelling in read_misspellings([find(LISTS[1], folders)])}
    accepted: defaultdict[str, list[str]] = defaultdict(list)
    for wrong, right, _ in read_misspellings([find(name, folders) for name in LISTS]):
        if wrong in own and held_out(wrong):
            accepted[wrong].append(right)
    return [(wrong, "|".join(rights)) for wrong, rights in sorted(accepted.items())]


def report(rows: Sequence[Pair], noise: Noise, words: set[str]) -> None:
    """What the test is made of, and what it is to do nothing."""
    noisy, clean = ([row[side] for row in rows] for side in (0, 1))
    nothing = Corrected.of(noisy, noisy, clean)
    share = nothing.misspelt_share
    wrong, listed, real = 0, 0, 0
    for one, other in zip(noisy, clean, strict=True):
        for misspelt, right in zip(_bare(one), _bare(other), strict=True):
            wrong += misspelt != right
            listed += misspelt != right and right in noise.known
            real += misspelt != right and misspelt in words
    print(f"{len(rows)} sentences, {len(set(clean))} different, {nothing.before_after_S22.sum()} words")
    print(f"misspelt: {share:.4f} of all words; of these {listed / wrong:.4f} by a list, {real / wrong:.4f} real words")
    print(f"doing nothing: {word_accuracy(nothing)}")
    if not LEAST <= share <= MOST:
        raise UserError(
            f"{share:.4f} of the words are misspelt, not between {LEAST} and {MOST}; change NOISE.max_error_rate"
        )


def _bare(sentence: str) -> list[str]:
    """What stands between spaces, in lower case and without the punctuation around it."""
    return [plainly(word).strip(string.punctuation) for word in sentence.split()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.spelling_test", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder with tatoeba and spelling (or $SACCADE_DATA)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--isolated", type=Path)
    options = parser.parse_args()
    folders = data_folders(options.data)
    training, test, valid = (read_english(part, folders) for part in ("train", "test", "valid"))
    sentences = choose_sentences(training, test, valid)
    misspellings = read_misspellings([find(name, folders) for name in LISTS])
    noise = Noise.of(NOISE, misspellings, held=True, names=find_names(training))
    rows = list(misspell_all(noise, sentences))
    report(rows, noise, {word for sentence in training for word in _bare(sentence)})
    write_pairs(options.out, rows)
    if options.isolated:
        pairs = isolated_pairs(folders)
        write_pairs(options.isolated, pairs)
        print(f"{len(pairs)} isolated misspellings")


if __name__ == "__main__":
    main()

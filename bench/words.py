"""How well plain text is cut into words: `python -m bench.words PART [--data DIR]` cuts the raw sentences of a part of
the English Web Treebank (train, dev or test) and prints the F1 of the words."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from saccade.data.conllu import Sentence, read_conllu
from saccade.data.documents import TEXT
from saccade.data.text import data_folders, find
from saccade.data.word_rules import word_spans
from saccade.evaluate.metrics import Score
from saccade.evaluate.spelling import ratio_score

EWT = "ud_english_ewt/en_ewt-ud-{}.conllu.gz"
Span = tuple[int, int]


def gold_spans(text: str, words: Sequence[str]) -> Iterator[Span]:
    """Where the words of a sentence stand in its raw text."""
    place = 0
    for word in words:
        start = text.index(word, place)
        assert not text[place:start].strip(), f"{word!r} is not next in {text!r}"
        place = start + len(word)
        yield start, place


def score_words(sentences: Sequence[Sentence]) -> Score:
    """F1 of the words that are cut at both ends as the treebank cuts them."""
    counts = []
    for sentence in sentences:
        text = next(line for line in sentence.lines if line.startswith(TEXT)).removeprefix(TEXT).rstrip("\r\n")
        gold, found = set(gold_spans(text, sentence.words)), set(word_spans(text))
        # F1 = 2 · both / (gold + found)
        counts.append((2 * len(gold & found), len(gold) + len(found)))
    return ratio_score("word F1", np.array(counts), f"sentences:{len(sentences)}", scale=100)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.words", description=__doc__)
    parser.add_argument("part", choices=("train", "dev", "test"))
    parser.add_argument("--data", type=Path, help="folder of the data sets ($SACCADE_DATA, then ./data)")
    given = parser.parse_args()
    print(score_words(read_conllu(find(EWT.format(given.part), data_folders(given.data)))))


if __name__ == "__main__":
    main()

"""`python -m bench.spelling_elsewhere [--model M] [--tests]`: a speller on text that it was not made for.

Clean modern text: how many words it changes. Confusion sets: sentences with one word typed for another of its set, how
many are mended, and how many of the same sentences without an error are spoilt. All from validation parts. `--tests`
adds real errors in context: JFLEG's learners and Holbrook's school children, which nothing was chosen on.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from saccade.data.confusions import confused_with
from saccade.data.documents import TextFile, read_documents
from saccade.data.noise import find_words, like, plainly
from saccade.data.text import data_folders, find, read_lines
from saccade.evaluate.spelling import Corrected, correction_rate, introduction_rate, ratio_score, word_accuracy
from saccade.pipelines.corrector import Corrector
from saccade.pipelines.load import load

CLEAN = {
    "textbooks and government pages": TextFile(file="modern_en/valid.txt.xz", documents="prose", every=2),
    "parliament": TextFile(file="europarl_en_es/valid.tsv.gz", documents="column"),
    "everyday sentences": TextFile(file="tatoeba/eng-spa.valid.tsv.gz", documents="column"),
    "health (TICO)": TextFile(file="tico19_en_es/all.tsv.gz", documents="column"),
}
SENTENCES = 1000
"""Of each kind at most."""
SEED = 7
_ERROR = re.compile(r"<ERR targ=([^>]*)>(.*?)</ERR>")


def clean_text(corrector: Corrector, sentences: Sequence[str]) -> tuple[int, int, list[str]]:
    """Words changed, words, and which."""
    answers = corrector(sentences)
    changes = [f"{edit.wrong} -> {edit.right}" for answer in answers for edit in answer.edits]
    return len(changes), sum(len(sentence.split()) for sentence in sentences), changes


def confused(sentences: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Of each sentence that has a word of the sets: with one of its words typed for another, and as it is."""
    random = np.random.default_rng(SEED)
    for sentence in sentences:
        places, before = [], ""
        for start, stop, _ in find_words(sentence):
            word = plainly(sentence[start:stop])
            if others := confused_with(word, before):
                places.append((start, stop, others))
            before = word
        if places:
            start, stop, others = places[random.integers(len(places))]
            wrong = like(sentence[start:stop], others[random.integers(len(others))])
            yield f"{sentence[:start]}{wrong}{sentence[stop:]}", sentence


def holbrook(file: Path) -> Iterator[tuple[str, str]]:
    """Lines with marked errors: as written, and with the words that were meant."""
    for line in read_lines(file):
        if _ERROR.search(line):
            wrong = _ERROR.sub(lambda found: found[2].strip(), line)
            yield " ".join(wrong.split()), " ".join(_ERROR.sub(lambda found: found[1].strip(), line).split())


def jfleg(file: Path) -> Iterator[tuple[str, str]]:
    """Words that a correction changes into one near them: spelling, and not grammar, is taken over."""
    for line in read_lines(file):
        wrong, right, *_ = (cell.split() for cell in line.split("\t"))
        if len(wrong) == len(right):
            yield " ".join(wrong), " ".join(right)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.spelling_elsewhere", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", default="speller")
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--changes", action="store_true", help="print every change of clean text")
    options = parser.parse_args()
    folders, corrector = data_folders(options.data), load(options.model)
    assert isinstance(corrector, Corrector)
    texts = {kind: read_documents([file], folders)[:SENTENCES] for kind, file in CLEAN.items()}
    for kind, sentences in texts.items():
        changed, words, which = clean_text(corrector, sentences)
        print(f"clean, {kind}: {changed / words:.3%} of {words:,} words changed")
        if options.changes:
            print("  " + "; ".join(which))
    pairs = list(confused([sentence for sentences in texts.values() for sentence in sentences[: SENTENCES // 4]]))
    _show("confusion sets", corrector, pairs)
    spoilt, words, _ = clean_text(corrector, [right for _, right in pairs])
    print(f"  the same without errors: {spoilt / words:.3%} of {words:,} words changed")
    if options.tests:
        _show("Holbrook", corrector, list(holbrook(find("spelling_in_context/holbrook-tagged.dat", folders))))
        _show("JFLEG dev, first correction", corrector, list(jfleg(find("spelling_in_context/jfleg-dev.tsv", folders))))


def _show(name: str, corrector: Corrector, pairs: Sequence[tuple[str, str]]) -> None:
    sources, truths = [wrong for wrong, _ in pairs], [right for _, right in pairs]
    outputs = [answer.text for answer in corrector(sources)]
    found = Corrected.of(sources, outputs, truths)
    print(f"{name}: {len(pairs)} sentences, {found.misspelt_share:.3f} of the words wrong")
    for rate in (word_accuracy, correction_rate, introduction_rate):
        print(f"  {rate(found)}")
    changed = [(a.split(), b.split(), c.split()) for a, b, c in zip(sources, outputs, truths, strict=True)]
    rows = [_counted(*row) for row in changed if len(row[0]) == len(row[1]) == len(row[2])]
    if any(whole for _, whole in rows):
        print(f"  {ratio_score('changes that are right', np.array(rows), 'changes')}")


def _counted(source: Sequence[str], output: Sequence[str], truth: Sequence[str]) -> tuple[int, int]:
    changes = [(b, c) for a, b, c in zip(source, output, truth, strict=True) if a != b]
    return sum(b == c for b, c in changes), len(changes)


if __name__ == "__main__":
    main()

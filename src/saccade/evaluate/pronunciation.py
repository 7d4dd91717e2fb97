"""Word and phoneme error rates of pronunciations; a word may have several accepted ones."""

from collections.abc import Iterable, Sequence

import numpy as np

from saccade.evaluate.classes import BOOTSTRAP
from saccade.evaluate.metrics import References, Score
from saccade.evaluate.spelling import ratio_score


def accepted_pronunciations(entries: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """All pronunciations of each word, once each, in the order of a dictionary that has one a line."""
    accepted: dict[str, list[str]] = {}
    for word, phonemes in entries:
        of_word = accepted.setdefault(word, [])
        if (spaced := " ".join(phonemes.split())) not in of_word:
            of_word.append(spaced)
    return accepted


def word_error_rate(outputs: Sequence[str], accepted: References, *, bootstrap: int = BOOTSTRAP) -> Score:
    """The share of words, in percent, whose phonemes are those of no accepted pronunciation."""
    errors_N2 = _errors(outputs, accepted)
    wrong_N2 = np.stack([errors_N2[:, 0] > 0, np.ones(len(errors_N2))], axis=1).astype(np.int64)
    return ratio_score("WER", wrong_N2, f"words:{len(outputs)}", bootstrap=bootstrap, scale=100)


def phoneme_error_rate(outputs: Sequence[str], accepted: References, *, bootstrap: int = BOOTSTRAP) -> Score:
    """Insertions, deletions and substitutions of phonemes over the phonemes of the truth, in percent; the truth is the
    nearest accepted pronunciation, and the longer one of two that are equally near."""
    errors_N2 = _errors(outputs, accepted)
    signature = f"words:{len(outputs)}|phonemes:{errors_N2[:, 1].sum()}"
    return ratio_score("PER", errors_N2, signature, bootstrap=bootstrap, scale=100)


def pronunciation_scores(outputs: Sequence[str], accepted: References, *, bootstrap: int = BOOTSTRAP) -> list[Score]:
    return [metric(outputs, accepted, bootstrap=bootstrap) for metric in (word_error_rate, phoneme_error_rate)]


def _errors(outputs: Sequence[str], accepted: References) -> np.ndarray:
    """errors_N2: of every word the wrong phonemes, and the phonemes it has."""
    if not len(outputs) == len(accepted) > 0:
        raise ValueError(f"{len(outputs)} pronunciations of {len(accepted)} words")
    rows = []
    for output, references in zip(outputs, accepted, strict=True):
        phonemes = output.split()
        wrong, negative = min((edits(phonemes, truth.split()), -len(truth.split())) for truth in references)
        rows.append((wrong, -negative))
    return np.array(rows, dtype=np.int64)


def edits(one: Sequence[str], other: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions that make one the other (Levenshtein)."""
    above = list(range(len(other) + 1))
    for number, phoneme in enumerate(one, 1):
        row = [number]
        for place, target in enumerate(other):
            row.append(min(above[place] + (phoneme != target), above[place + 1] + 1, row[-1] + 1))
        above = row
    return above[-1]

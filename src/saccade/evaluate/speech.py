"""Scores of transcripts: words and letters that are wrong (jiwer), confidences that can be trusted, and whether the
looks go forward."""

from collections.abc import Sequence

import numpy as np

from saccade.evaluate.metrics import Score
from saccade.runtime.contract import Floats

RESAMPLES = 1_000


def word_errors(right: Sequence[str], heard: Sequence[str], name: str) -> Score:
    """Word error rate in percent: substituted, deleted and inserted words among those that were said."""
    return _errors(right, heard, f"WER, {name}", letters=False)


def letter_errors(right: Sequence[str], heard: Sequence[str], name: str) -> Score:
    """The same of characters, spaces among them."""
    return _errors(right, heard, f"CER, {name}", letters=True)


def _errors(right: Sequence[str], heard: Sequence[str], name: str, *, letters: bool) -> Score:
    import jiwer

    process = jiwer.process_characters if letters else jiwer.process_words
    wrong, said = np.zeros(len(right)), np.zeros(len(right))
    for number, (text, other) in enumerate(zip(right, heard, strict=True)):
        if not text.strip():  # nothing was said: all that was heard is too much
            wrong[number] = len(other) if letters else len(other.split())
            continue
        found = process(text, other)
        wrong[number] = found.substitutions + found.deletions + found.insertions
        said[number] = found.substitutions + found.deletions + found.hits
    random = np.random.default_rng(0)
    drawn = random.integers(0, len(right), size=(RESAMPLES, len(right)))
    rates = 100 * wrong[drawn].sum(axis=1) / np.maximum(1, said[drawn].sum(axis=1))
    low, high = np.percentile(rates, [2.5, 97.5])
    unit = "letters" if letters else "words"
    signature = f"{unit}:{int(said.sum())}|recordings:{len(right)}|jiwer:{_version()}|smaller is better"
    return Score(name, 100 * float(wrong.sum() / max(1, said.sum())), float(high - low) / 2, signature)


def right_words(right: str, heard: str) -> list[bool]:
    """Of each heard word whether it was said, as the words are aligned."""
    import jiwer

    found = [False] * len(heard.split())
    if right.strip() and found:
        for chunk in jiwer.process_words(right, heard).alignments[0]:
            if chunk.type == "equal":
                found[chunk.hyp_start_idx : chunk.hyp_end_idx] = [True] * (chunk.hyp_end_idx - chunk.hyp_start_idx)
    return found


def monotone_share(looks_TS: Sequence[Floats], name: str) -> Score:
    """Share of letters, in percent, whose mean look is not before that of the letter before."""
    forward = total = 0
    for weights_TS in looks_TS:
        middles = weights_TS @ np.arange(weights_TS.shape[1]) / np.maximum(weights_TS.sum(axis=1), 1e-12)
        steps = np.diff(middles)
        # A step back by less than one position is no step: the looks of neighbours overlap.
        forward, total = forward + int((steps > -1).sum()), total + len(steps)
    return Score(f"monotone steps, {name}", 100 * forward / max(1, total), None, f"steps:{total}")


def _version() -> str:
    from importlib.metadata import version

    return version("jiwer")

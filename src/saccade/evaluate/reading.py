"""Scores of words that were read: how many are right, and whether a letter is read where it stands."""

from collections.abc import Sequence

import numpy as np

from saccade.evaluate.classes import Classified, accuracy
from saccade.evaluate.metrics import Score


def plain(text: str) -> str:
    """Letters and digits in lower case: what words from photographs are compared by."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def words_right(read: Sequence[str], right: Sequence[str], name: str, *, exact: bool) -> Score:
    """The share of right words in percent, with its interval."""
    same = [one == other if exact else plain(one) == plain(other) for one, other in zip(read, right, strict=True)]
    found = accuracy(Classified([1] * len(same), [int(one) for one in same], ["wrong", "right"]))
    how = "exact" if exact else "letters and digits, case ignored"
    return Score(f"words right, {name}", found.value, found.interval, f"words:{len(same)}|{how}")


def pointing(
    hits: Sequence[bool], chances: Sequence[float], *, of: str = "letters", name: str = "pointing"
) -> list[Score]:
    """How often the most attended field lies in the box of what is being written; and how often one taken at random
    would."""
    signature = f"{of}:{len(hits)}"
    return [
        Score(name, 100 * float(np.mean(hits)), None, signature),
        Score(f"{name} by chance", 100 * float(np.mean(chances)), None, signature),
    ]

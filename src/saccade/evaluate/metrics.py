"""Scores: a figure with its signature and interval; those of translations, by sacrebleu."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


@dataclass(frozen=True)
class Score:
    """A score: value, interval, and a signature that says how it was computed."""

    name: str
    value: float
    interval: float | None
    """Half of the 95 % bootstrap interval."""
    signature: str
    digits: int = 2
    """Decimals to print."""

    def __str__(self) -> str:
        spread = "" if self.interval is None else f" ± {self.interval:.{self.digits}f}"
        return f"{self.name} {self.value:.{self.digits}f}{spread}   {self.signature}"


References = Sequence[Sequence[str]]
"""Every output's accepted translations, one or more."""


def bleu(outputs: Sequence[str], references: References, *, lowercase: bool = False, bootstrap: int = 0) -> Score:
    """Corpus BLEU, tokenised with 13a."""
    from sacrebleu.metrics.bleu import BLEU

    return _score(BLEU(lowercase=lowercase, tokenize="13a"), outputs, references, bootstrap)


def chrf(outputs: Sequence[str], references: References, *, lowercase: bool = False, bootstrap: int = 0) -> Score:
    """Corpus chrF2."""
    from sacrebleu.metrics.chrf import CHRF

    return _score(CHRF(lowercase=lowercase), outputs, references, bootstrap)


def _score(metric: "Metric", outputs: Sequence[str], references: References, bootstrap: int) -> Score:
    # sacrebleu wants the first references of all, then the second of all, …; None where there is no more.
    columns = [list(column) for column in zip_longest(*references)]
    result = metric.corpus_score(list(outputs), columns, n_bootstrap=max(bootstrap, 1))
    interval = float(result._ci) if bootstrap > 1 else None
    return Score(result.name, float(result.score), interval, str(metric.get_signature()))

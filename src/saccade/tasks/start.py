"""The model that a training starts from: the one that is named, a bundled English one for English texts, or none."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from saccade.folder import read_folder
from saccade.pipelines.load import bundled_models, model_path
from saccade.pipelines.opening import encoder_vocabulary

ENGLISH_STARTS = ("bert-small", "bert-mini")
"""Encoders to start from for English texts: the first that is bundled."""
SCRATCH = "none"
"""What `--from` says to start from no model."""
WORDS = 5_000
"""Words that are looked at."""
WHOLE_SHARE, LATIN_SHARE = 0.45, 0.9
"""Of English words, bert-mini has 55 to 83 % as one piece (`sst2`, `cola`, `massive`, `ag_news_cut`, `tico19`); of
Spanish, French, German and Czech ones 12 to 35 %."""


def english_start() -> str:
    """The name of the bundled encoder; empty where there is none."""
    bundled = {path.name for path in bundled_models()}
    return next((name for name in ENGLISH_STARTS if name in bundled), "")


def automatic_start(texts: Sequence[str]) -> tuple[str, str]:
    """What to start from for these texts, empty for nothing; and why."""
    name = english_start()
    if not name:
        return "", "from scratch: no English encoder is bundled"
    latin, whole = english_shares(texts, name)
    told = f"{latin:.0%} of their letters are a to z, and {whole:.0%} of their words one piece of {name}'s vocabulary"
    if latin >= LATIN_SHARE and whole >= WHOLE_SHARE:
        return name, f"the texts look English ({told}): starting from {name}; --from {SCRATCH} starts from scratch"
    return "", f"the texts do not look English ({told}): from scratch; --from {name} would start from it all the same"


def english_shares(texts: Sequence[str], name: str) -> tuple[float, float]:
    """The share of letters from a to z, and that of words that the encoder has as one piece."""
    every = max(1, len(texts) // 1000)
    found = (word.lower() for text in texts[::every] for word in re.findall(r"[^\W\d_]+", text))
    words = list(islice(found, WORDS))
    if not words:
        return 0.0, 0.0
    vocabulary = encoder_vocabulary(read_folder(model_path(name)))
    pieces = vocabulary.encode([f" {word}" for word in words], continues=True)
    letters = sum(map(len, words))
    latin = sum(letter.isascii() for word in words for letter in word)
    return latin / letters, sum(len(ids) <= 1 for ids in pieces) / len(words)


def named_start(init: str) -> str:
    """A start as a recipe names it: a bundled model by name, a folder by its whole path, so that it is found again."""
    return init if model_path(init) in bundled_models() else str(Path(model_path(init)).resolve())

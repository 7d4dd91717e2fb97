"""Byte-level BPE word by word: a distinct word is cut once, however often a large text repeats it.

The library splits every text with a slow expression, and that takes most of its time. Python's `re` splits the same way
where a text has only characters whose class the two agree on; other texts are left to the library.
"""

import re
from collections.abc import Sequence
from itertools import chain

from saccade.tokens.vocabulary import Vocabulary

WORDS = re.compile(r"'(?:[stmd]|re|ve|ll)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
"""The pattern of GPT-2: contractions, letters, digits, other signs, spaces."""
PLAIN = re.compile("[ -~\xa0-\xb1\xb4-\xb8\xba\xbb\xbf-ɏΑ-ώА-я‐-‧‹›€]*")
"""Latin, Greek and Cyrillic letters and ordinary signs. Not ² or ½, which are digits only for the library."""
MOST_WORDS = 1_000_000
"""Words that are remembered; in an endless text most new ones never come again."""


def split_words(text: str) -> list[str] | None:
    """The words of a text, each with the space in front of it; None where the library has to split it."""
    return WORDS.findall(text) if PLAIN.fullmatch(text) else None


class WordCache:
    """Encodes texts as their vocabulary does, only faster."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        assert vocabulary.kind == "bpe", "other vocabularies do not cut words one by one"
        self.vocabulary = vocabulary
        self.ids: dict[str, list[int]] = {}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        split = [split_words(self.vocabulary.before + text) for text in texts]
        new = list({word: None for words in split for word in words or () if word not in self.ids})
        if len(self.ids) + len(new) > MOST_WORDS:
            return self.vocabulary.encode(texts)
        self.ids |= zip(new, self.vocabulary.encode(new, continues=True), strict=True)
        found = [
            [] if words is None else list(chain.from_iterable(map(self.ids.__getitem__, words))) for words in split
        ]
        odd = [place for place, words in enumerate(split) if words is None]
        for place, ids in zip(odd, self.vocabulary.encode([texts[place] for place in odd]), strict=True):
            found[place] = ids
        return found

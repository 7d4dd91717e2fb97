"""One token per character, for the characters a training text has; others cannot be read."""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from saccade.tokens.marks import SPECIALS

NAME = "vocabulary of characters"
FIXED: tuple[str, ...] = ()
"""Nothing to guard: characters are not joined."""


def train(texts: Iterable[str]) -> Tokenizer:
    """Every character that occurs, in the order of Unicode."""
    found: set[str] = set()
    for text in texts:
        found.update(text)
    tokenizer = untrained()
    tokenizer.model = models.WordLevel({word: i for i, word in enumerate([*SPECIALS, *sorted(found)])})
    return tokenizer


def untrained() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(SPECIALS)}))
    # In this dialect (?m) lets the dot match a line break.
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(?m:.)"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def complaint(words: dict[str, int]) -> str | None:
    """What is wrong with these words, if anything."""
    longer = [word for word in words if len(word) != 1 and word not in SPECIALS]
    return f"{longer[0][:20]!r} is not one character" if longer else None

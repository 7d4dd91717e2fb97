"""One token per word, for the words a training text has; others cannot be read."""

from collections.abc import Iterable

from tokenizers import Tokenizer, models, pre_tokenizers

from saccade.tokens.marks import SPECIALS

NAME = "vocabulary of words"
FIXED: tuple[str, ...] = ()
"""Nothing to guard: words are not joined."""
SPLIT = "WhitespaceSplit"
"""What cuts texts, by the library's name; it tells this vocabulary from one of characters."""


def train(texts: Iterable[str]) -> Tokenizer:
    """Every word that occurs between spaces, in the order of Unicode."""
    found: set[str] = set()
    for text in texts:
        found.update(text.split())
    found.difference_update(SPECIALS)  # typed, they are no marks
    tokenizer = untrained()
    tokenizer.model = models.WordLevel({word: i for i, word in enumerate([*SPECIALS, *sorted(found)])})
    return tokenizer


def untrained() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(SPECIALS)}))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def complaint(words: dict[str, int]) -> str | None:
    """What is wrong with these words, if anything."""
    wrong = [word for word in words if len(word.split()) != 1 or word != word.strip()]
    return f"{wrong[0][:20]!r} is not one word" if wrong else None

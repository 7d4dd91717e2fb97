"""Model sizes for the user's own files, by the number of sentence pairs or the length of the text."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """A model and how long to train it."""

    layers: int
    width: int
    vocabulary: int
    dropout: float
    steps: int


def sizes_for(pairs: int) -> Sizes:
    """Few pairs: a small model, many passes, much dropout. Many pairs: the size of the bundled models.

    A step sees about 200 sentences. Early stopping ends training without further gain.
    """
    if pairs < 5_000:
        return Sizes(layers=2, width=128, vocabulary=2_000, dropout=0.3, steps=max(300, pairs * 30 // 200))
    if pairs < 50_000:
        return Sizes(layers=3, width=192, vocabulary=4_000, dropout=0.2, steps=pairs * 20 // 200)
    return Sizes(layers=3, width=256, vocabulary=8_000, dropout=0.1, steps=min(20_000, pairs * 10 // 200))


@dataclass(frozen=True)
class LanguageSizes:
    """A language model and how long to train it."""

    layers: int
    width: int
    vocabulary: int
    """0: bytes."""
    dropout: float
    steps: int


def language_sizes_for(characters: int) -> LanguageSizes:
    """A short text has too few words to learn any: bytes, much dropout. A step sees 4,096 tokens."""
    if characters < 3_000_000:
        steps = min(5_000, max(200, characters * 20 // 4096))
        return LanguageSizes(layers=4, width=192, vocabulary=0, dropout=0.2, steps=steps)
    vocabulary = 4_000 if characters < 30_000_000 else 8_000
    steps = min(20_000, characters // 4 * 8 // 4096)
    return LanguageSizes(layers=6, width=256, vocabulary=vocabulary, dropout=0.1, steps=steps)


def masked_sizes_for(characters: int) -> Sizes:
    """A model to be fine-tuned: a step sees 4,096 tokens, about four characters each."""
    steps = min(20_000, max(300, characters // 4 * 20 // 4096))
    if characters < 3_000_000:
        return Sizes(layers=4, width=192, vocabulary=2_000, dropout=0.1, steps=steps)
    return Sizes(layers=4, width=256, vocabulary=4_096 if characters < 30_000_000 else 8_000, dropout=0.1, steps=steps)

"""Augmented copies of sentence pairs: which changes are made, how often, and in which order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import Field, model_validator

from saccade.config import Record
from saccade.data.exchange import Names, exchange_numbers
from saccade.data.odd_strings import with_string
from saccade.data.text import Pair
from saccade.data.variants import (
    join_lines,
    lower,
    title,
    upper,
    with_slips,
    without_apostrophes,
    without_final_mark,
    without_opening_marks,
)

HASTE = 0.5
"""Who types in lower case often leaves out marks too: these shares of such lines have no apostrophes, no final mark."""


class AugmentConfig(Record):
    """How often the augmented copies differ from the plain text. Each value is a probability."""

    join_two: float = Field(0.0, ge=0, le=1)
    """A line and the next, of any source, become one line."""
    join_three: float = Field(0.0, ge=0, le=1)
    """The same with the next two."""
    join_words: int = Field(60, ge=2)
    """Largest number of words on a side of joined lines."""
    upper: float = Field(0.0, ge=0, le=1)
    """Both sides in upper case."""
    title: float = Field(0.0, ge=0, le=1)
    """Both sides with a capital in front of every word."""
    lower: float = Field(0.0, ge=0, le=1)
    """Both sides in lower case; half of these lines also lose their apostrophes, and half their final mark."""
    no_apostrophes: float = Field(0.0, ge=0, le=1)
    """A source with apostrophes inside words is written without them: dont, Im."""
    no_final_mark: float = Field(0.0, ge=0, le=1)
    """Both sides without the final mark, and without the Spanish opening mark that belongs to it."""
    no_opening_marks: float = Field(0.0, ge=0, le=1)
    """A Spanish source without ¿ and ¡."""
    typos: float = Field(0.0, ge=0, le=1)
    """One or two slips of the keyboard in the source."""
    names: float = Field(0.0, ge=0, le=1)
    """A name that both sides share, where there is one, is exchanged for another or for an invented one."""
    numbers: float = Field(0.0, ge=0, le=1)
    """Numbers that both sides share, where there are some, are exchanged for others of as many digits."""
    strings: float = Field(0.0, ge=0, le=1)
    """An address, a code, an emoji or a word in another script is added to both sides."""
    bpe_dropout: float = Field(0.0, ge=0, lt=1)
    """Probability of leaving out each merge of the BPE (Provilkov et al. 2020), in the lines chosen for it."""
    bpe_dropout_share: float = Field(0.33, ge=0, le=1)
    """Share of the lines that are cut with `bpe_dropout`."""

    @model_validator(mode="after")
    def _shares_fit(self) -> "AugmentConfig":
        for names in (("join_two", "join_three"), ("upper", "title", "lower")):
            total = sum(getattr(self, name) for name in names)
            if total > 1:
                raise ValueError(f"{' + '.join(names)} is {total:g}, but a line can be only one of them")
        return self

    @property
    def changes_text(self) -> bool:
        """Whether any text is changed."""
        settings = {"join_words", "bpe_dropout", "bpe_dropout_share"}
        return any(value for name, value in self.table().items() if name not in settings)

    @property
    def changes_anything(self) -> bool:
        return self.changes_text or self.bpe_dropout > 0


@dataclass(frozen=True)
class Augmenter:
    """Makes augmented copies. The result depends on the pairs and the generator only."""

    config: AugmentConfig
    names: Names

    @classmethod
    def of(cls, config: AugmentConfig, pairs: Iterable[Pair]) -> "Augmenter":
        """Collects the names of the training pairs, if any are to be exchanged."""
        return cls(config, Names.collect(pairs if config.names else ()))

    def __call__(self, pairs: Iterable[Pair], random: np.random.Generator) -> Iterator[Pair]:
        """Content first, sentence by sentence; then lines; then how a line is typed, whatever it holds."""
        config = self.config
        exchanged = (self.exchanged(pair, random) for pair in pairs)
        joined = join_lines(exchanged, config.join_two, config.join_three, config.join_words, random)
        for pair in joined:
            source, target = self.typed(pair, random)
            assert all(side.strip() for side in (source, target)), f"a side was lost: {pair} -> {source, target}"
            yield source, target

    def exchanged(self, pair: Pair, random: np.random.Generator) -> Pair:
        """With other names, numbers and strings."""
        names, numbers, strings = random.random(3).tolist()
        if names < self.config.names:
            pair = self.names.exchange(pair, random)
        if numbers < self.config.numbers:
            pair = exchange_numbers(pair, random)
        if strings < self.config.strings:
            pair = with_string(pair, random)
        return pair

    def typed(self, pair: Pair, random: np.random.Generator) -> Pair:
        """As somebody else would type it."""
        config = self.config
        typos, apostrophes, final, opening, case, haste, hurry = random.random(7).tolist()
        small = case < config.lower
        source, target = pair
        if typos < config.typos:
            source = with_slips(source, random)
        if apostrophes < config.no_apostrophes or (small and haste < HASTE):
            source = without_apostrophes(source)
        if opening < config.no_opening_marks:
            source = without_opening_marks(source)
        if final < config.no_final_mark or (small and hurry < HASTE):
            source, target = without_final_mark((source, target))
        # Case comes last, so that the rules above see which words are names.
        for share, change in ((config.lower, lower), (config.upper, upper), (config.title, title)):
            if 0 <= case < share:
                source, target = change(source), change(target)
            case -= share
        return source, target

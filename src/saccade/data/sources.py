"""Sentence pairs from several files, each with its share of the training data, and no held-out sentence among them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Discriminator, Field, Tag

from saccade.config import Record
from saccade.data.text import Pair, find, read_pairs
from saccade.errors import UserError

_NO_WORD = re.compile(r"[\W_]+")


class PairFile(Record):
    """A file of sentence pairs, or two aligned files, plain or gzip."""

    file: str
    """TSV with source and target, further columns are ignored; with `target_file`, only the source sentences."""
    target_file: str = ""
    """File whose line n translates line n of `file`."""

    @property
    def names(self) -> list[str]:
        """Of the one file, or of both."""
        return [name for name in (self.file, self.target_file) if name]

    def paths(self, folders: Sequence[Path]) -> list[Path]:
        return [find(name, folders) for name in self.names]


class TrainingSource(PairFile):
    """Training pairs and their share."""

    repeat: float = Field(1.0, gt=0, le=100)
    """How often each pair is in a copy of the data. A fraction is a random part, drawn anew for each copy: 0.5 is half
    of the pairs, 2.4 is all pairs twice and 40 % of them a third time."""
    skip_last: int = Field(0, ge=0)
    """Number of pairs at the end of the file that are not used, because `valid` takes them from the same file."""


class HeldOutSource(PairFile):
    """Pairs for validation or test. None of their source sentences is trained on."""

    name: str = Field("", pattern=r"^[^\s.]*$")
    """Name in the validation figures; without it, the folder of the file."""
    last: int = Field(0, ge=0)
    """Use only this number of pairs, from the end of the file; 0: all."""
    limit: int = Field(0, ge=0)
    """Score only this number of source sentences, spread evenly over the file; 0: all."""

    @property
    def label(self) -> str:
        """The name in figures."""
        return self.name or Path(self.file).parent.name or Path(self.file).name.partition(".")[0]


def _form(part: object) -> str:
    """Which of the two ways to name files a recipe uses."""
    return "tables" if isinstance(part, list) and any(isinstance(one, dict | PairFile) for one in part) else "names"


_OneOrTwo = Annotated[list[str], Field(min_length=1, max_length=2), Tag("names")]
_AtMostTwo = Annotated[list[str], Field(max_length=2), Tag("names")]
_HeldOut = Annotated[list[HeldOutSource], Tag("tables")]
TrainingFiles = Annotated[_OneOrTwo | Annotated[list[TrainingSource], Tag("tables")], Discriminator(_form)]
"""One TSV or two aligned files by their names; or any number of sources, each a table."""
ValidationFiles = Annotated[_OneOrTwo | _HeldOut, Discriminator(_form)]
TestFiles = Annotated[_AtMostTwo | _HeldOut, Discriminator(_form)]


def as_sources(part: Sequence[str] | Sequence[HeldOutSource]) -> list[HeldOutSource]:
    """A held-out part as sources, however it was named."""
    names = [one for one in part if isinstance(one, str)]
    if names:
        return [HeldOutSource(file=names[0], target_file=names[1] if len(names) > 1 else "")]
    return [one for one in part if isinstance(one, HeldOutSource)]


@dataclass(frozen=True)
class Mixture:
    """All training pairs, and how often each source is used."""

    pairs: list[Pair]
    sizes: tuple[int, ...]
    """Number of pairs of each source, in the order of `pairs`."""
    repeats: tuple[float, ...]
    messages: list[str] = field(default_factory=list)
    """What was read and left out, for the person who trains."""

    @classmethod
    def of(cls, pairs: list[Pair]) -> "Mixture":
        """One source, used as it is."""
        return cls(pairs, (len(pairs),), (1.0,))

    def with_more(self, pairs: list[Pair]) -> "Mixture":
        """Another source, used once."""
        if not pairs:
            return self
        return Mixture(self.pairs + pairs, (*self.sizes, len(pairs)), (*self.repeats, 1.0), self.messages)

    @property
    def size(self) -> int:
        """Number of pairs in a copy."""
        return len(self.draw(np.random.default_rng(0)))

    def draw(self, random: np.random.Generator) -> np.ndarray:
        """Numbers of the pairs of one copy, source by source; all pairs in order where every source is used once."""
        chosen, start = [], 0
        for size, repeat in zip(self.sizes, self.repeats, strict=True):
            numbers, whole = np.arange(start, start + size), int(repeat)
            part = round((repeat - whole) * size)
            chosen += [numbers] * whole
            if part:
                chosen.append(np.sort(random.permutation(numbers)[:part]))
            start += size
        return np.concatenate(chosen) if chosen else np.arange(0)


def read_mixture(
    sources: Sequence[TrainingSource], held_out: Sequence[HeldOutSource], folders: Sequence[Path]
) -> Mixture:
    """The pairs of all sources without the sentences that are held out."""
    forbidden = {plain_form(source) for held in held_out for source, _ in read_held_out(held, folders)} - {""}
    pairs: list[Pair] = []
    sizes, found = [], []
    for source in sources:
        read = read_pairs(source.paths(folders))
        read = read[: max(0, len(read) - source.skip_last)]
        kept = [pair for pair in read if plain_form(pair[0]) not in forbidden]
        if not kept:
            raise UserError(f"{source.file}: no pairs are left to train on: {len(read):,} were read, all are held out")
        pairs += kept
        sizes.append(len(kept))
        words = source.repeat * sum(len(target.split()) for _, target in kept)
        found.append((source, len(kept), len(read) - len(kept), words))
    total = sum(words for *_, words in found)
    messages = [
        f"{source.file}: {kept:,} pairs × {source.repeat:g}, {words / total:.0%} of the target words"
        + (f"; {dropped:,} dropped because their source sentence is held out" if dropped else "")
        for source, kept, dropped, words in found
    ]
    return Mixture(pairs, tuple(sizes), tuple(source.repeat for source in sources), messages)


def read_held_out(source: HeldOutSource, folders: Sequence[Path]) -> list[Pair]:
    """All pairs that are kept out of training, whatever the limit of those to be scored."""
    return read_pairs(source.paths(folders))[-source.last :]


def spread(pairs: Sequence[Pair], limit: int) -> list[Pair]:
    """The pairs of `limit` source sentences at equal distances, with all translations of each.

    Files are often sorted by length: their beginning is no sample.
    """
    sources = list(dict.fromkeys(source for source, _ in pairs))
    if not limit or limit >= len(sources):
        return list(pairs)
    chosen = {sources[place * len(sources) // limit] for place in range(limit)}
    return [pair for pair in pairs if pair[0] in chosen]


def labels(sources: Iterable[HeldOutSource]) -> list[str]:
    """The names of the sources; two of one name are refused."""
    found = [source.label for source in sources]
    for label in found:
        if found.count(label) > 1:
            raise ValueError(f"two sources are called {label!r}: give each a name")
    return found


def plain_form(sentence: str) -> str:
    """A sentence without case and punctuation: two sentences of one form are the same to a held-out part."""
    return _NO_WORD.sub(" ", sentence.casefold()).strip()

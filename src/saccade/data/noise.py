"""Sentences misspelt as people misspell them: by known misspellings of their words, and by slips learnt from such."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.misspell import Choices, Misspelling, Slips, distance, held_out

TRIES = 60
"""Slips drawn until one is of the right part: with four fifths or one fifth of them wrong, so many always suffice."""
LETTERS = 4
"""Words of fewer letters are misspelt less often, in proportion; those of one letter never."""
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
CHUNK = re.compile(r"\S+")
CODE = re.compile(r"[\d@/\\_=<>{}\[\]#$%^*|~`+&]|\w[.:]+\w|\w\(|^-+\w|[^\W\d_A-Z][A-Z]")
"""Found in what is no plain word: numbers, addresses of pages and mail, file names, code, camelCase, options, U.S."""
OPENS = re.compile(r"[.!?…:\"“”«]")
"""Between two words, this begins a sentence: what follows has its capital from that, and may be no name."""
AFTER = '.!?…,;:)"”'
"""What may stand behind an address or code without being part of it."""
TITLES = {"mr", "mrs", "ms", "dr", "prof", "st"}
"""Their full stops end no sentence."""
_I = ("I", "I'", "I’")


class NoiseConfig(Record):
    """How much is misspelt, and how."""

    clean: float = Field(0.15, ge=0, le=1)
    """This share of sentences stays as it is."""
    heaviest: float = Field(0.5, ge=0, le=1)
    """In the others, words are misspelt with a probability drawn for each sentence, evenly from 0 to this."""
    listed: float = Field(0.5, ge=0, le=1)
    """A word with known misspellings gets one of these with this probability, otherwise a slip, as other words do."""
    again: float = Field(0.0, ge=0, lt=1)
    """Probability that a slip is followed by one more, and that by yet another."""
    confused: float = Field(0.0, ge=0, le=1)
    """A word that is one slip away from others of the training sentences becomes one of these with this probability."""
    names: float = Field(0.02, ge=0, le=1)
    """Names and words in capitals are misspelt so many times as often as other words; what holds digits, addresses and
    code never is."""
    lost_space: float = Field(0.002, ge=0, le=0.5)
    """Probability that the space between two plain words is lost, in sentences that are not clean."""
    added_space: float = Field(0.002, ge=0, le=0.5)
    """Probability that a plain word of four letters or more is torn in two, likewise."""


class Found(NamedTuple):
    """Where a word of a sentence is."""

    start: int
    stop: int
    opens: bool
    """Whether a sentence begins with it."""


@dataclass(frozen=True)
class Noise:
    """Misspells sentences; what comes out depends on the sentence and the generator, and on nothing else."""

    config: NoiseConfig
    known: Mapping[str, Choices]
    """Misspellings of words, all of one part."""
    slips: Slips
    held: bool
    """Whether it writes the misspellings that are held out, and these only, or never one of them."""
    names: frozenset[str] = frozenset()
    """Words in lower case that are names where they have a capital, even at the beginning of a sentence."""
    alike: Mapping[str, Choices] = field(default_factory=dict)
    """Words, and what other words a slip makes of them."""

    @classmethod
    def of(
        cls,
        config: NoiseConfig,
        misspellings: Iterable[Misspelling],
        *,
        held: bool = False,
        names: Iterable[str] = (),
        words: Mapping[str, int] | None = None,
    ) -> "Noise":
        """Knows, and learns its slips from, those misspellings that are held out, or those that are not; `words` says
        how often each word occurs."""
        part = [misspelling for misspelling in misspellings if held_out(misspelling.wrong) == held]
        weights: dict[str, dict[str, float]] = {}
        for wrong, right, weight in part:
            weights.setdefault(right, {})[wrong] = weight
        known = {right: Choices.of(wrongs) for right, wrongs in weights.items()}
        alike = confusions(words, held=held) if words and config.confused else {}
        return cls(config, known, Slips.learn(part), held, frozenset(names), alike)

    def __call__(self, sentence: str, random: np.random.Generator) -> str:
        clean, share = random.random(2)
        if clean < self.config.clean:
            return sentence
        share *= self.config.heaviest
        words = list(find_words(sentence))
        drawn = random.random((2, len(words)))
        parts, end, was_plain = [], 0, False
        for (start, stop, opens), misspelt, spaced in zip(words, *drawn.tolist(), strict=True):
            gap, word = sentence[end:start], sentence[start:stop]
            plain = not self.is_name(word, opens)
            if gap == " " and plain and was_plain and spaced < self.config.lost_space:
                gap = ""
            chance = min(1.0, len(word) / LETTERS) * (len(word) > 1) * (1.0 if plain else self.config.names)
            if misspelt < share * chance:
                word = self.misspell(word, random)
            if plain and len(word) >= LETTERS and spaced > 1 - self.config.added_space:
                place = 1 + int(random.random() * (len(word) - 1))
                word = f"{word[:place]} {word[place:]}"
            parts += [gap, word]
            end, was_plain = stop, plain
        return "".join([*parts, sentence[end:]])

    def is_name(self, word: str, opens: bool) -> bool:
        """Whether a word has its capitals for itself; `opens`: it begins a sentence, and has one for that."""
        if not word[0].isupper() or word in _I or word[:2] in _I:
            return False
        return not opens or word.isupper() or plainly(word) in self.names

    def misspell(self, word: str, random: np.random.Generator) -> str:
        """A word, misspelt in its own case; as it is, if nothing was found that is of the right part."""
        right = plainly(word)
        alike = self.alike.get(right)
        if alike is not None and random.random() < self.config.confused:
            return like(word, alike.draw(random))
        known = self.known.get(right)
        if known is not None and random.random() < self.config.listed:
            return like(word, known.draw(random))
        for _ in range(TRIES):
            wrong = self.slips.draw(right, random)
            while self.config.again and random.random() < self.config.again:
                wrong = self.slips.slip(wrong, random)
            if wrong != right and len(wrong.strip("'")) > 1 and held_out(wrong) == self.held:
                return like(word, wrong)
        return word


def find_words(sentence: str) -> Iterator[Found]:
    """Words of letters and apostrophes, but for what looks like a number, an address or code."""
    before, seen = "", 0
    for chunk in CHUNK.finditer(sentence):
        if CODE.search(chunk[0]):
            before, seen = chunk[0], chunk.start() + len(chunk[0].rstrip(AFTER))
            continue
        for word in WORD.finditer(sentence, chunk.start(), chunk.end()):
            between = sentence[seen : word.start()]
            opens = not before or (OPENS.search(between) is not None and before not in TITLES)
            yield Found(word.start(), word.end(), opens)
            before, seen = plainly(word[0]), word.end()


def find_names(sentences: Iterable[str]) -> frozenset[str]:
    """Words, in lower case, that inside sentences have a capital more often than not."""
    capital: Counter[str] = Counter()
    for sentence in sentences:
        for start, stop, opens in find_words(sentence):
            word = sentence[start:stop]
            if not word[0].isupper():
                capital[word] -= 1
            elif not opens and word[:2] not in _I:
                capital[plainly(word)] += 1
    return frozenset(word for word, count in capital.items() if count > 0)


def count_words(sentences: Iterable[str]) -> Counter[str]:
    """How often each word occurs, as the lists have it."""
    return Counter(plainly(sentence[word.start : word.stop]) for sentence in sentences for word in find_words(sentence))


def confusions(counts: Mapping[str, int], *, held: bool = False) -> dict[str, Choices]:
    """For every word the others that one slip makes of it, frequent ones more often; all of the held-out part, or none.

    Two words are one slip apart only if they are the same, or become so, when a letter is taken out of one or of both.
    """
    less: dict[str, list[str]] = {}
    for word in counts:
        if len(word) > 1:
            for rest in {word, *(word[:place] + word[place + 1 :] for place in range(len(word)))}:
                less.setdefault(rest, []).append(word)
    found: dict[str, dict[str, float]] = {}
    for group in less.values():
        for wrong in group:
            if held_out(wrong) == held:
                for right in group:
                    if right != wrong and wrong not in found.get(right, {}) and distance(right, wrong) == 1:
                        found.setdefault(right, {})[wrong] = counts[wrong] ** 0.5
    return {right: Choices.of(wrongs) for right, wrongs in found.items()}


def plainly(word: str) -> str:
    """As the lists have it."""
    return word.lower().replace("’", "'")


def like(word: str, wrong: str) -> str:
    """A misspelling in the case of the word, and with its kind of apostrophe."""
    if "’" in word:
        wrong = wrong.replace("'", "’")
    if word.isupper():
        return wrong.upper()
    return wrong[:1].upper() + wrong[1:] if word[:1].isupper() else wrong

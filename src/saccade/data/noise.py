"""Adds misspellings to sentences: listed misspellings of their words, and edits learnt from such lists."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.confusions import confused_with
from saccade.data.misspell import Choices, Misspelling, Slips, distance, held_out

TRIES = 60
"""Largest number of draws until an edit is of the right part, held out (one fifth) or not (four fifths)."""
LETTERS = 4
"""Shorter words are misspelt less often, in proportion to their length; single letters never."""
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
CHUNK = re.compile(r"\S+")
CODE = re.compile(r"[\d@/\\_=<>{}\[\]#$%^*|~`+&]|\w[.:]+\w|\w\(|^-+\w|[^\W\d_A-Z][A-Z]")
"""Matches text that is not a plain word: numbers, URLs, e-mail addresses, file names, code, camelCase, options, U.S."""
OPENS = re.compile(r"[.!?…:\"“”«]")
"""Between two words, this begins a sentence: the next word has a capital, but may not be a name."""
AFTER = '.!?…,;:)"”'
"""Characters that may follow an address or code without being part of it."""
TITLES = {"mr", "mrs", "ms", "dr", "prof", "st"}
"""Titles: their full stop does not end a sentence."""
_I = ("I", "I'", "I’")


class NoiseConfig(Record):
    """How many words are misspelt, and how."""

    renamed: ClassVar[Mapping[str, str]] = {
        "heaviest": "max_error_rate",
        "again": "repeat_probability",
        "confused": "real_word_errors",
    }

    clean: float = Field(0.15, ge=0, le=1)
    """Share of the sentences that stay unchanged."""
    max_error_rate: float = Field(0.5, ge=0, le=1)
    """Highest error rate per word. Each other sentence has its own rate, drawn uniformly from 0 to this."""
    listed: float = Field(0.5, ge=0, le=1)
    """Probability that a word with listed misspellings gets one of these; otherwise it gets a random edit."""
    repeat_probability: float = Field(0.0, ge=0, lt=1)
    """Probability of one more edit in the same word, after each edit."""
    real_word_errors: float = Field(0.0, ge=0, le=1)
    """Probability that a word becomes another word of the training sentences that is one edit away."""
    confusion_sets: float = Field(0.0, ge=0, le=1)
    """Probability that a word becomes another one of its confusion set, such as their for there; not in clean
    sentences."""
    names: float = Field(0.02, ge=0, le=1)
    """Error rate of names and words in capitals, relative to other words. Numbers, addresses and code get none."""
    lost_space: float = Field(0.002, ge=0, le=0.5)
    """Probability that the space between two words is lost, except in clean sentences."""
    added_space: float = Field(0.002, ge=0, le=0.5)
    """Probability that a word of four letters or more is split in two, except in clean sentences."""


class Found(NamedTuple):
    """Where a word of a sentence is."""

    start: int
    stop: int
    opens: bool
    """Whether a sentence begins with it."""


@dataclass(frozen=True)
class Noise:
    """Misspells sentences. The result depends on the sentence and the generator only."""

    config: NoiseConfig
    known: Mapping[str, Choices]
    """Misspellings of words, all of one part."""
    slips: Slips
    held: bool
    """True: held-out misspellings only; False: never one of them."""
    names: frozenset[str] = frozenset()
    """Words in lower case that are names where they have a capital, even at the beginning of a sentence."""
    alike: Mapping[str, Choices] = field(default_factory=dict)
    """Words, with the other words that are one edit away."""

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
        """Uses the misspellings that are held out, or those that are not, and learns edits from them; `words` gives the
        count of each word."""
        part = [misspelling for misspelling in misspellings if held_out(misspelling.wrong) == held]
        weights: dict[str, dict[str, float]] = {}
        for wrong, right, weight in part:
            weights.setdefault(right, {})[wrong] = weight
        known = {right: Choices.of(wrongs) for right, wrongs in weights.items()}
        alike = confusions(words, held=held) if words and config.real_word_errors else {}
        return cls(config, known, Slips.learn(part), held, frozenset(names), alike)

    def __call__(self, sentence: str, random: np.random.Generator) -> str:
        clean, share = random.random(2)
        if clean < self.config.clean:
            return sentence
        share *= self.config.max_error_rate
        words = list(find_words(sentence))
        drawn = random.random((2, len(words)))
        confused = random.random(len(words)) if self.config.confusion_sets else np.ones(len(words))
        parts, end, was_plain, before = [], 0, False, ""
        for (start, stop, opens), misspelt, spaced, other in zip(
            words, *drawn.tolist(), confused.tolist(), strict=True
        ):
            gap, word = sentence[end:start], sentence[start:stop]
            plain = not self.is_name(word, opens)
            if gap == " " and plain and was_plain and spaced < self.config.lost_space:
                gap = ""
            chance = min(1.0, len(word) / LETTERS) * (len(word) > 1) * (1.0 if plain else self.config.names)
            typed = confused_with(plainly(word), before) if plain and other < self.config.confusion_sets else ()
            before = plainly(word)
            if typed:
                word = like(word, typed[int(random.random() * len(typed))])
            elif misspelt < share * chance:
                word = self.misspell(word, random)
            if plain and len(word) >= LETTERS and spaced > 1 - self.config.added_space:
                place = 1 + int(random.random() * (len(word) - 1))
                word = f"{word[:place]} {word[place:]}"
            parts += [gap, word]
            end, was_plain = stop, plain
        return "".join([*parts, sentence[end:]])

    def is_name(self, word: str, opens: bool) -> bool:
        """Whether a word is a name by its capitals; `opens`: it begins a sentence, which explains a first capital."""
        if not word[0].isupper() or word in _I or word[:2] in _I:
            return False
        return not opens or word.isupper() or plainly(word) in self.names

    def misspell(self, word: str, random: np.random.Generator) -> str:
        """The word misspelt, in its own case; unchanged if no edit of the right part was found."""
        right = plainly(word)
        alike = self.alike.get(right)
        if alike is not None and random.random() < self.config.real_word_errors:
            return like(word, alike.draw(random))
        known = self.known.get(right)
        if known is not None and random.random() < self.config.listed:
            return like(word, known.draw(random))
        for _ in range(TRIES):
            wrong = self.slips.draw(right, random)
            while self.config.repeat_probability and random.random() < self.config.repeat_probability:
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
    """Words, in lower case, that mostly have a capital inside sentences."""
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
    """Count of each word, in the spelling of the lists."""
    return Counter(plainly(sentence[word.start : word.stop]) for sentence in sentences for word in find_words(sentence))


def confusions(counts: Mapping[str, int], *, held: bool = False) -> dict[str, Choices]:
    """For every word the words one edit away, weighted by frequency; only held-out words, or only others.

    Two words can be one edit apart only if they become equal by deleting one letter of one word or of both.
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
    """The word in the spelling of the lists."""
    return word.lower().replace("’", "'")


def like(word: str, wrong: str) -> str:
    """A misspelling in the case of the word, and with its kind of apostrophe."""
    if "’" in word:
        wrong = wrong.replace("'", "’")
    if word.isupper():
        return wrong.upper()
    return wrong[:1].upper() + wrong[1:] if word[:1].isupper() else wrong

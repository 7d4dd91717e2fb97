"""The families of small tasks a prompt may show by example; their words are read, and put on a page, in `prompts`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Generic, Protocol, TypeVar

import numpy as np

from saccade.data.text import Pair

Item = TypeVar("Item")
LETTERS, SIGNS, VOWELS = "abcdefghijklmnopqrstuvwxyz", "!?*#+-=_~.<>()[]@%&;^{}/\\`", "aeiou"
"""Signs that sentences and labels lack are among them: a model of characters can then read every one that is typed."""
LONGEST_WORD = 9


def is_held(text: str) -> bool:
    """Whether this input is one of the fixed fifth that training never shows, whatever the family."""
    return sha256(text.lower().encode()).digest()[0] % 5 == 0


def pick(random: np.random.Generator, items: Iterable[Item]) -> Item:
    """One of a few, each as likely."""
    choices = list(items)
    return choices[int(random.integers(len(choices)))]


@dataclass(frozen=True)
class Pool(Generic[Item]):
    """What a family draws its inputs from, split once."""

    training: tuple[Item, ...]
    held: tuple[Item, ...]

    @classmethod
    def split(cls, items: Iterable[Item], key: Callable[[Item], str]) -> "Pool[Item]":
        parts: tuple[list[Item], list[Item]] = ([], [])
        for item in items:
            parts[is_held(key(item))].append(item)
        return cls(tuple(parts[0]), tuple(parts[1]))

    def __len__(self) -> int:
        return len(self.training) + len(self.held)

    def draw(self, random: np.random.Generator, count: int, *, held: bool) -> list[Item]:
        """Different items; where too few are held out, training ones go before them, so that the last is held out."""
        items = self.held if held else self.training
        missing = max(0, count - len(items)) if held else 0
        places = random.choice(len(items), size=min(count, len(items)), replace=False)
        drawn = [items[place] for place in places.tolist()]
        return [*self.draw(random, missing, held=False), *drawn] if missing else drawn


@dataclass(frozen=True)
class WordLists:
    """All the families draw from."""

    plain: Pool[str]
    nouns: Pool[Pair]
    """singular, plural"""
    verbs: Pool[Pair]
    """infinitive, past"""
    misspellings: Pool[Pair]
    """as somebody wrote it, as it should be"""
    sentences: Pool[Pair]
    """with a wrong verb, with the right one"""

    def draw(self, random: np.random.Generator, count: int, *, held: bool) -> list[str]:
        """Different words. Half of training's are made up, else a model learns words by heart and not what to do."""
        if held:
            return self.plain.draw(random, count, held=True)
        words = self.plain.draw(random, 2 * count, held=False)
        made_up = [_graft(word, other) for word, other in zip(words, reversed(words), strict=True)]
        coins = random.random(len(words)).tolist()
        chosen = (
            new if coin < 0.5 and not is_held(new) else word
            for word, new, coin in zip(words, made_up, coins, strict=True)
        )
        return list(dict.fromkeys(chosen))[:count]

    def phrases(self, random: np.random.Generator, count: int, longest: int, *, held: bool) -> list[str]:
        """Different phrases of two words or more; made of words that may follow on each other in no language."""
        lengths = random.integers(2, longest + 1, size=count).tolist()
        words = iter(self.draw(random, sum(lengths), held=held))
        phrases = (" ".join(islice(words, length)) for length in lengths)
        return [phrase for phrase in phrases if " " in phrase]


def _graft(head: str, tail: str) -> str:
    """The first half of one word on the last half of another: still pronounceable, mostly."""
    return (head[: (len(head) + 1) // 2] + tail[len(tail) // 2 :])[:LONGEST_WORD]


@dataclass(frozen=True)
class PromptTask:
    """One thing to do, such as putting "un" before a word."""

    pairs: Callable[[np.random.Generator, int], list[Pair]]
    """So many inputs (fewer where there are no more) with their outputs; no input twice, except of a lookup."""
    wordings: tuple[str, ...]
    """Ways to ask for it."""


class Family(Protocol):
    def draw(self, random: np.random.Generator, words: WordLists, *, held: bool) -> PromptTask:
        """A task of the kind; `held` asks for inputs, and where there is a choice a task, that training never meets."""


@dataclass(frozen=True)
class Listed:
    """Pairs that were read: what is right has to be known, not computed."""

    pool: Callable[[WordLists], Pool[Pair]]
    wordings: tuple[str, ...]

    def draw(self, random: np.random.Generator, words: WordLists, *, held: bool) -> PromptTask:
        return PromptTask(partial(self.pool(words).draw, held=held), self.wordings)


@dataclass(frozen=True)
class Operation:
    """A rewriting of any word, or of any phrase."""

    change: Callable[[str], str]
    wordings: tuple[str, ...]
    words: int = 1
    """At most so many in an input."""
    shape: Callable[[str], str] = str
    """What is done to an input before it is shown."""

    def task(self, words: WordLists, *, held: bool) -> PromptTask:
        def pairs(random: np.random.Generator, count: int) -> list[Pair]:
            spare = 2  # of some words nothing is left, such as the consonants of "eau"
            if self.words > 1:
                inputs = words.phrases(random, count + spare, self.words, held=held)
            else:
                inputs = words.draw(random, count + spare, held=held)
            changed = [(self.shape(text), self.change(text)) for text in inputs]
            return [pair for pair in changed if pair[1]][-count:]

        return PromptTask(pairs, self.wordings)


@dataclass(frozen=True)
class Rewriting:
    operations: tuple[Operation, ...]

    def draw(self, random: np.random.Generator, words: WordLists, *, held: bool) -> PromptTask:
        return pick(random, self.operations).task(words, held=held)


@dataclass(frozen=True)
class Combined:
    """One operation after another. Some combinations are held out, though each half of them is trained."""

    first: dict[str, Operation]
    second: dict[str, Operation]
    held_out: frozenset[Pair]

    def draw(self, random: np.random.Generator, words: WordLists, *, held: bool) -> PromptTask:
        names = [(one, two) for one in self.first for two in self.second if ((one, two) in self.held_out) == held]
        one, two = pick(random, names)
        first, second = self.first[one], self.second[two]
        wordings = tuple(
            f"{before.removesuffix('.')}, then {after[0].lower()}{after[1:]}"
            for before, after in zip(first.wordings, second.wordings, strict=True)
        )
        return Operation(lambda word: second.change(first.change(word)), wordings).task(words, held=held)


class Affix:
    """Letters or signs of the task's own before the word, after it, or both: only the examples can tell which."""

    def draw(self, random: np.random.Generator, words: WordLists, *, held: bool) -> PromptTask:
        sides = pick(random, ("before", "after", "both"))
        before = "" if sides == "after" else self._string(random, held=held)
        after = "" if sides == "before" else self._string(random, held=held)
        places = " and ".join(f"{text} {side}" for text, side in ((before, "before"), (after, "after")) if text)
        wordings = (f"Put {places} the word.", f"Write {places} it.")
        return Operation(lambda word: before + word + after, wordings).task(words, held=held)

    def _string(self, random: np.random.Generator, *, held: bool) -> str:
        while True:
            signs = pick(random, (LETTERS, LETTERS, SIGNS))
            text = "".join(pick(random, signs) for _ in range(int(random.integers(1, 5))))
            if is_held(text) == held:
                return text


class Lookup:
    """A table of the task's own. Keys come again, the last one surely: what stands beside them has been shown."""

    def draw(self, random: np.random.Generator, words: WordLists, *, held: bool) -> PromptTask:
        numbers = random.random() < 0.4

        def pairs(random: np.random.Generator, count: int) -> list[Pair]:
            # A question's table is as large as can be; training has more lines to learn from where keys repeat.
            largest = max(1, count - 1)
            size = largest if held else int(random.integers((largest + 1) // 2, largest + 1))
            keys = words.draw(random, size, held=held)
            values = words.draw(random, len(keys), held=held)
            if numbers:
                values = [str(number) for number in random.integers(100, size=len(keys)).tolist()]
            table = list(zip(keys, values, strict=False))
            return [*table, *(pick(random, table) for _ in range(count - len(table)))]

        return PromptTask(pairs, ("Look the word up.", "Give what belongs to the key.", "Answer from the table."))


UPPER = Operation(str.upper, ("Write it in capitals.", "Make it upper case."))
TITLE = Operation(str.capitalize, ("Begin it with a capital.", "Capitalise the first letter."))
DASHED = Operation("-".join, ("Put dashes between the letters.", "Join the letters with -."))
BACKWARDS = Operation(lambda word: word[::-1], ("Reverse the letters.", "Write the word backwards."))
DOUBLED = Operation(
    lambda word: "".join(2 * letter for letter in word), ("Double every letter.", "Write each letter twice.")
)
HEADLESS = Operation(lambda word: word[1:], ("Drop the first letter.", "Leave out the first letter."))
TAILLESS = Operation(lambda word: word[:-1], ("Drop the last letter.", "Leave out the last letter."))
THREE = Operation(lambda word: word[:3], ("Give the first three letters.", "Keep only three letters."))
VOWELLESS = Operation(
    lambda word: "".join(letter for letter in word if letter not in VOWELS),
    ("Drop the vowels.", "Write only the consonants."),
)

FAMILIES: dict[str, Family] = {
    "reverse": Rewriting(
        (
            BACKWARDS,
            Operation(
                lambda phrase: " ".join(phrase.split()[::-1]),
                ("Reverse the order of the words.", "Last word first."),
                words=4,
            ),
        )
    ),
    "case": Rewriting(
        (
            UPPER,
            TITLE,
            Operation(str.lower, ("Write it in small letters.", "Make it lower case."), shape=str.upper),
            Operation(lambda word: word[:-1] + word[-1].upper(), ("End it with a capital.", "Capital letter last.")),
            Operation(
                lambda word: "".join(
                    letter.upper() if place % 2 else letter.lower() for place, letter in enumerate(word)
                ),
                ("Make every second letter a capital.", "Alternate small letters and capitals."),
            ),
            Operation(str.title, ("Give every word a capital.", "Write it like a title."), words=3),
        )
    ),
    "plural": Listed(
        lambda words: words.nouns, ("Give the plural.", "Make the noun plural.", "One becomes many.", "Say it of many.")
    ),
    "past": Listed(
        lambda words: words.verbs,
        ("Give the past tense.", "Put the verb into the past.", "Say what happened yesterday."),
    ),
    "spelling": Listed(
        lambda words: words.misspellings, ("Correct the spelling.", "Spell it right.", "Fix the typing mistake.")
    ),
    "affix": Affix(),
    "letters": Rewriting(
        (
            Operation(lambda word: word[0], ("Give the first letter.", "How does the word begin?")),
            Operation(lambda word: word[-1], ("Give the last letter.", "How does the word end?")),
            Operation(lambda word: word[:2], ("Give the first two letters.", "Keep only two letters.")),
            Operation(lambda word: word[-2:], ("Give the last two letters.", "Keep the last two letters.")),
            THREE,
            HEADLESS,
            TAILLESS,
            DOUBLED,
            VOWELLESS,
            DASHED,
            Operation(lambda word: word + word[-1], ("Say the last letter twice.", "Double the last letter.")),
            Operation(lambda word: word[1:] + word[0], ("Move the first letter to the end.", "First letter last.")),
            Operation(
                lambda phrase: "".join(word[0] for word in phrase.split()),
                ("Give the initials.", "Take the first letter of every word."),
                words=4,
            ),
        )
    ),
    "combined": Combined(
        first={
            "backwards": BACKWARDS,
            "headless": HEADLESS,
            "tailless": TAILLESS,
            "three": THREE,
            "doubled": DOUBLED,
            "vowelless": VOWELLESS,
        },
        second={"upper": UPPER, "title": TITLE, "dashed": DASHED},
        held_out=frozenset(
            {("backwards", "upper"), ("tailless", "dashed"), ("doubled", "title"), ("headless", "upper")}
        ),
    ),
    "grammar": Listed(
        lambda words: words.sentences,
        ("Correct the English.", "Correct the verb.", "Turn poor English into good English.", "Fix the grammar."),
    ),
    "lookup": Lookup(),
}

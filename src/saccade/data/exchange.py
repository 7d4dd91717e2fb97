"""Names and numbers, which a translation copies, exchanged for others on both sides at once."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from saccade.data.text import Pair

WORD = re.compile(r"[^\W\d_]+")
NAME = re.compile(r"(?<![\w’'-])[A-ZÀ-ÖØ-Þ][^\W\d_]*[^\W\d_A-ZÀ-ÖØ-Þ](?![\w-])")
"""A word with a capital that ends in a small letter."""
NUMBER = re.compile(r"(?<![\w-])\d+(?![\w-])")
_BEFORE = re.compile(r"(?:[A-ZÀ-ÖØ-Þ][^\W\d_]{0,3}\. |[^\W\d_]+(?: |['’]))$")
"""A word and a space, an elided article, or a short title with its full stop."""
SHORTEST_NAME = 3
FEWEST = 8
"""A context with fewer names than this is no choice."""
LOWER_SHARE = 0.02
"""A name is written in lower case at most this often. "Central" and "Union" are words that may have a capital."""
TRIES = 10
ARTICLES = frozenset(["el", "la", "los", "las", "del", "al", "le", "les", "l'", "l’", "du", "au", "aux", "des"])
"""Spanish and French articles, alone or with a preposition."""
INVENTED = 0.5
"""Share of the exchanged names that are replaced by an invented one."""


# Names


@dataclass(frozen=True)
class Names:
    """Names of the training data, by the words in front of them on both sides.

    After "in" and "en" there are places, after "Mr" and "Sr." surnames, after "d'" French names with a vowel: a name is
    exchanged only for one that was seen in its context, so that the sentence around it stays right.
    """

    known: frozenset[str]
    after: dict[tuple[str, str], list[str]]

    @classmethod
    def collect(cls, pairs: Iterable[Pair]) -> "Names":
        """Words with a capital that are the same on both sides, if they are nearly always written with one."""
        counts = Counter[str](), Counter[str]()
        found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        inside = set[str]()
        for pair in pairs:
            for side, count in zip(pair, counts, strict=True):
                count.update(WORD.findall(side))
            for name, context in _shared_names(pair):
                found[context].add(name)
                if all(context):
                    inside.add(name)
        known = {name for name in inside if all(count[name.lower()] <= LOWER_SHARE * count[name] for count in counts)}
        # Sorted: the order of a set of strings differs from run to run.
        after = {context: sorted(names & known) for context, names in found.items()}
        return cls(frozenset(known), {context: names for context, names in after.items() if len(names) >= FEWEST})

    def exchange(self, pair: Pair, random: np.random.Generator) -> Pair:
        """Another name for one of the names that both sides have."""
        shared = [(name, context) for name, context in _shared_names(pair) if name in self.known]
        if not shared:
            return pair
        name, context = shared[int(random.integers(len(shared)))]
        others = self.after.get(context, [])
        if context[1] in ARTICLES and context[0] != "the":
            # "Portugal" is "le Portugal" in French, but an unknown name has no article: other countries only.
            other = _pick(others or [name], random)
        else:
            other = _pick(others, random) if others and random.random() >= INVENTED else invented_name(name, random)
        source, target = (WORD.sub(lambda word: other if word[0] == name else word[0], side) for side in pair)
        return source, target


def _shared_names(pair: Pair) -> list[tuple[str, tuple[str, str]]]:
    """Names that both sides have equally often, and the words in front of their first occurrence."""
    source, target = pair
    candidates = {name for name in NAME.findall(source) if len(name) >= SHORTEST_NAME and name in target}
    if not candidates:
        return []
    words = [WORD.findall(side) for side in pair]
    found = []
    for name in sorted(candidates):
        count, other = (side.count(name) for side in words)
        if count == other:
            found.append((name, (_before(source, name), _before(target, name))))
    return found


def _before(text: str, name: str) -> str:
    """The word in front of a name, in lower case; empty where the name begins a sentence or follows a mark."""
    place = next(word.start() for word in WORD.finditer(text) if word[0] == name)
    before = _BEFORE.search(text[:place])
    return before[0].strip().lower() if before else ""


_ONSETS = [*"bcdfgjklmnprstvwyz", "br", "ch", "dr", "fr", "gr", "kl", "kr", "pr", "sh", "sk", "st", "tr", "zh"]
"""Without h: before a silent one a French article loses its vowel."""
_VOWELS = [*"aeiouaeiou", "ai", "ea", "ie", "io", "ou"]
_CODAS = ["", "", "", *"lmnrstkx", "nd", "rt", "sk", "ng", "th"]
_ACCENTED = str.maketrans("aeioucnszlyg", "áéíöüčñšžłýğ")


def invented_word(random: np.random.Generator) -> str:
    """A word of no language, in lower case and ASCII, that begins with a consonant."""
    syllables = [_pick(_ONSETS, random) + _pick(_VOWELS, random) for _ in range(int(random.integers(2, 4)))]
    return "".join(syllables) + _pick(_CODAS, random)


def invented_name(like: str, random: np.random.Generator) -> str:
    """A word of no language with a capital, some with an accent or a second capital.

    It begins with the same vowel as `like`, or with a consonant if that does: French has "de Tom" but "d'Anna".
    """
    word = (like[0].lower() if like[0].lower() in "aeiouáéíóúàâäèêëîïôöûüæœ" else "") + invented_word(random)
    drawn = random.random()
    if drawn < 0.2:
        place = int(random.integers(1, len(word)))
        word = word[:place] + word[place].translate(_ACCENTED) + word[place + 1 :]
    elif drawn < 0.3:
        word += invented_word(random).capitalize()
    return word[0].upper() + word[1:]


def _pick(strings: Sequence[str], random: np.random.Generator) -> str:
    return strings[int(random.integers(len(strings)))]


# Numbers


def exchange_numbers(pair: Pair, random: np.random.Generator) -> Pair:
    """Other numbers of as many digits for those that both sides have equally often."""
    if not NUMBER.search(pair[0]):
        return pair
    counts = [Counter(NUMBER.findall(side)) for side in pair]
    # 1 is left alone: what is counted would have to change its number.
    shared = [number for number, count in counts[0].items() if counts[1][number] == count and number != "1"]
    others = dict(zip(shared, _other_numbers(shared, random), strict=True))
    source, target = (NUMBER.sub(lambda found: others.get(found[0], found[0]), side) for side in pair)
    return source, target


def _other_numbers(numbers: list[str], random: np.random.Generator) -> Iterator[str]:
    """One for each, all different if that is possible."""
    used = set[str]()
    for number in numbers:
        other = _other_number(number, random)
        for _ in range(TRIES):
            if other in used:
                other = _other_number(number, random)
        used.add(other)
        yield other


def _other_number(number: str, random: np.random.Generator) -> str:
    """Within what the number may be as an hour, a day, a minute or a year: most dates and times stay possible."""
    value, digits = int(number), len(number)
    if number[0] == "0" or digits > 15:
        return "".join(str(digit) for digit in random.integers(0, 10, digits))
    low, high = max(2, 10 ** (digits - 1)), 10**digits
    if digits == 2:
        high = next((most + 1 for limit, most in ((12, 12), (23, 23), (31, 28), (59, 59)) if value <= limit), high)
    if 1900 <= value < 2050:
        low, high = 1950, 2050
    return str(random.integers(low, high))

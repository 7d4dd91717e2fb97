"""Other ways to type a sentence pair: joined lines, other case, missing marks, slips of the keyboard.

Every function keeps the two sides translations of each other. What a function cannot change, it returns unchanged.
"""

import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from saccade.data.misspell import NEIGHBOURS
from saccade.data.noise import find_words
from saccade.data.text import Pair

ADDRESS = re.compile(r"\S*(?:@|://|www\.)\S*")
"""E-mail and web addresses, user names: their case has a meaning and stays."""
_WORD_START = re.compile(r"(?<!\S)([^\w\s]*)([^\W\d_])")
_INNER_APOSTROPHE = re.compile(r"([^\W\d_]+)['’](?=[a-z])(s?)")
_BEFORE_IS = frozenset(
    ["He", "Here", "How", "It", "Let", "She", "That", "There", "This", "What", "When", "Where", "Who", "Why"]
)
"""Words that "is" or "us" is joined to at the beginning of a sentence; other words with a capital may be names."""
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*$")
_SENTENCE_START = re.compile(r"^[\"'“‘«(\[¿¡—–-]*\s?[A-ZÀ-ÖØ-Þ0-9]")
_FINAL_MARK = re.compile(r"\s*(?:\.\.\.|[.!?…]+)$")
_ABBREVIATION = re.compile(r"[^\W\d_]\.\s?[^\W\d_]$|(?:^|\W)[^\W\d_]$")
"""What is left of "a.m." or of "Plan B." without its last full stop: there the full stop was part of a word."""
_OPENING = {"?": "¿", "!": "¡"}
SHORTEST_SLIP = 4
"""Shorter words get no slip: too often the result is another word."""


# Several sentences on a line


def join_lines(
    pairs: Iterable[Pair], two: float, three: float, words: int, random: np.random.Generator
) -> Iterator[Pair]:
    """Join neighbours to lines of two or three sentences, with these probabilities, up to `words` words on a side.

    Only whole sentences are joined: both sides must end with a mark and begin with a capital.
    """
    queue = iter(pairs)
    following = next(queue, None)
    while following is not None:
        line, following = following, next(queue, None)
        drawn = random.random()
        for _ in range(2 if drawn < three else 1 if drawn < two + three else 0):
            if following is None or not _fit(line, following, words):
                break
            line, following = (f"{line[0]} {following[0]}", f"{line[1]} {following[1]}"), next(queue, None)
        yield line


def _fit(line: Pair, following: Pair, words: int) -> bool:
    return (
        # A sentence and its other translation follow each other in some files.
        following[0] not in line[0]
        and all(_SENTENCE_END.search(side) for side in (*line, *following))
        and all(_SENTENCE_START.search(side) for side in following)
        and all(one.count(" ") + other.count(" ") + 2 <= words for one, other in zip(line, following, strict=True))
    )


# Case


def upper(text: str) -> str:
    return _outside_addresses(text, str.upper)


def lower(text: str) -> str:
    return _outside_addresses(text, str.lower)


def title(text: str) -> str:
    """Every Word With A Capital; the other letters stay, so that "don't" and "EU" are what they were."""
    return _outside_addresses(text, lambda part: _WORD_START.sub(lambda found: found[1] + found[2].upper(), part))


def is_shouted(text: str) -> bool:
    """Whether it is all in capitals, and more than an abbreviation or two: one word has four letters."""
    words = [word for word in ADDRESS.sub(" ", text).split() if any(map(str.isalpha, word))]
    letters = [sum(map(str.isalpha, word)) for word in words]
    return len(words) > 1 and max(letters) > SHORTEST_SLIP - 1 and all(word.isupper() for word in words)


def spoken(text: str) -> str:
    """What is shouted, as a sentence: small letters but for the first."""
    return _WORD_START.sub(lambda found: found[1] + found[2].upper(), lower(text), count=1)


def _outside_addresses(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for address in ADDRESS.finditer(text):
        parts += [change(text[end : address.start()]), address[0]]
        end = address.end()
    return "".join([*parts, change(text[end:])])


# Missing marks


def without_apostrophes(source: str) -> str:
    """ "I don't know" as "I dont know". After a name the apostrophe stays: "Toms" would be another name."""
    return _INNER_APOSTROPHE.sub(_without_apostrophe, source)


def _without_apostrophe(found: re.Match[str]) -> str:
    word, genitive = found.groups()
    return found[0] if genitive and word[0].isupper() and word not in _BEFORE_IS else word + genitive


def without_opening_marks(source: str) -> str:
    """Spanish without ¿ and ¡, which many people do not type."""
    return source.replace("¿", "").replace("¡", "")


def without_final_mark(pair: Pair) -> Pair:
    """Both sides without the mark at the end, and without the ¿ or ¡ that belongs to it."""
    source, target = map(_unmarked, pair)
    return (source, target) if source and target else pair


def _unmarked(text: str) -> str | None:
    """None where there is no mark to lose."""
    found = _FINAL_MARK.search(text)
    if not found:
        return None
    kept = text[: found.start()]
    if _ABBREVIATION.search(kept):
        return None
    for mark, opening in _OPENING.items():
        place = kept.rfind(opening)
        if mark in found[0] and mark not in kept[place + 1 :] and place >= 0:
            kept = kept[:place] + kept[place + 1 :]
    return kept.strip() or None


# Slips


def with_slips(source: str, random: np.random.Generator) -> str:
    """One or two words with a slip of the keyboard, never in their first letter; names, numbers and addresses stay."""
    words = [
        word
        for word in find_words(source)
        if word.stop - word.start >= SHORTEST_SLIP
        and source[word.start : word.stop].isalpha()
        and source[word.start + 1 : word.stop].islower()
        and (word.opens or source[word.start].islower())
    ]
    chosen = random.permutation(len(words))[: int(random.integers(1, 3))]
    for place in sorted(chosen.tolist(), reverse=True):  # from the end, so that the places before stay right
        start, stop, _ = words[place]
        source = source[:start] + _slip(source[start:stop], random) + source[stop:]
    return source


def _slip(word: str, random: np.random.Generator) -> str:
    """Two letters swapped, one left out, one doubled, or a neighbouring key; the same word if the letters are equal."""
    place = int(random.integers(1, len(word) - 1))
    letter, following = word[place], word[place + 1]
    near = NEIGHBOURS.get(letter, letter)
    written = (following + letter, following, letter * 2 + following, near[int(random.integers(len(near)))] + following)
    return word[:place] + written[int(random.integers(len(written)))] + word[place + 2 :]

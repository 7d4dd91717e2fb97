"""Lists of misspellings: read, a fifth held out, and people's slips learnt from them by laying letters side by side.

A list is a TSV with a header: misspelling, correct (several joined by `|`), perhaps a count; `_` stands for a space.
"""

import hashlib
import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from saccade.data.text import read_lines
from saccade.errors import UserError

FIFTHS = 5
LETTERS_PER_SLIP = 4
"""A misspelling may differ from its word by one slip for so many letters of the word, or part of so many."""
LONGEST = 3
"""Letters on either side of a rewrite."""
MOST = 3
"""Rewrites put on one word."""
LONGEST_WORD = 12
"""Longer words are taken for words of so many letters when rewrites are counted."""
SMOOTHING = 20
"""Occurrences added to those of every string of letters: what was met once is no law."""
KEYBOARD = 0.05
"""Share of slips that hit a neighbouring key whether or not the list has such a slip."""
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_WRONG = re.compile(r"'?[a-z]+(?:'+[a-z]+)*'?")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")

Place = Literal["first", "inner", "last"]
"""Where in a word: with its first letter, with its last one, or between."""
Kind = Literal["insertion", "deletion", "substitution", "swap", "doubling", "undoubling", "string"]


class Misspelling(NamedTuple):
    """Both in lower case; the case of a word is not part of its spelling here."""

    wrong: str
    right: str
    weight: float
    """How often it was met; of several words that one misspelling may stand for, each has its share."""


def held_out(wrong: str) -> bool:
    """Whether a string is in the fifth that is for testing: as a misspelling, nothing is ever trained on it.

    This hangs on the string alone. What one list holds out is held out of every other, and of made-up slips too.
    """
    plain = wrong.lower().replace("’", "'")
    return int.from_bytes(hashlib.sha256(plain.encode()).digest()[:8], "big") % FIFTHS == 0


def read_misspellings(paths: Sequence[Path]) -> list[Misspelling]:
    """The single words misspelt as single words, of all lists together, each pair once.

    Kept is what makes sense as a slip (Birkbeck's children also wrote `send` for surface):
    - both sides are one word of at least two Latin letters, apostrophes allowed, and differ in more than case;
    - they differ by one slip (insertion, deletion, substitution, swap of neighbours) in a word of up to four letters,
      by at most two in one of up to eight, three in one of up to twelve, and so on;
    - a misspelling that is itself a correct word of these lists differs by one slip and begins with the same letter:
      `form` for from and `too` for to are kept, `the` for she and `look` for looking are other words.
    """
    rows = [row for path in paths for row in _rows(path)]
    words = {right for _, rights, _ in rows for right in rights}
    weights: defaultdict[tuple[str, str], float] = defaultdict(float)
    for wrong, rights, count in rows:
        kept = [right for right in rights if _sensible(wrong, right, wrong in words)]
        for right in kept:
            weights[wrong, right] += count / len(kept)
    return [Misspelling(*pair, weight) for pair, weight in weights.items()]


def _rows(path: Path) -> Iterator[tuple[str, list[str], int]]:
    for number, line in enumerate(read_lines(path), 1):
        if number == 1 or not line.strip():
            continue
        match line.lower().replace("’", "'").split("\t"):
            case [wrong, rights]:
                yield wrong, rights.split("|"), 1
            case [wrong, rights, count] if re.fullmatch("[1-9][0-9]{0,8}", count):
                yield wrong, rights.split("|"), int(count)
            case _:
                raise UserError(
                    f"{path}, line {number}: expected misspelling, tab, correct word, and perhaps tab, count"
                )


def _sensible(wrong: str, right: str, real: bool) -> bool:
    if (
        wrong == right
        or min(len(right), len(wrong.strip("'"))) < 2
        or not _WORD.fullmatch(right)
        or not _WRONG.fullmatch(wrong)
    ):
        return False
    if real:
        return wrong[0] == right[0] and distance(right, wrong) == 1
    return LETTERS_PER_SLIP * (distance(right, wrong) - 1) < len(right)


# Letters side by side


class Difference(NamedTuple):
    """Letters `start:stop` of the right word, and those of the wrong one that stand for them."""

    start: int
    stop: int
    wrong_start: int
    wrong_stop: int


def differences(right: str, wrong: str) -> list[Difference]:
    """The fewest insertions, deletions, substitutions and swaps of neighbours between the two, in order (Damerau)."""
    # What they share in front and behind need not be looked at, and is most of it.
    shared = min(len(right), len(wrong))
    front = next((place for place in range(shared) if right[place] != wrong[place]), shared)
    shared -= front
    behind = next((place for place in range(shared) if right[-1 - place] != wrong[-1 - place]), shared)
    ours, theirs = right[front : len(right) - behind], wrong[front : len(wrong) - behind]
    found, i, j = [], front, front
    for down, across in _steps(ours, theirs):
        if (down, across) != (1, 1) or right[i] != wrong[j]:
            found.append(Difference(i, i + down, j, j + across))
        i, j = i + down, j + across
    return found


def distance(right: str, wrong: str) -> int:
    return len(differences(right, wrong))


def _steps(ours: str, theirs: str) -> list[tuple[int, int]]:
    """How many letters of each side every step of the cheapest way takes."""
    cost = [list(range(len(theirs) + 1))]
    for i, letter in enumerate(ours, 1):
        row, above = [i], cost[-1]
        for j, other in enumerate(theirs, 1):
            best = min(above[j - 1] + (letter != other), above[j] + 1, row[-1] + 1)
            if i > 1 and j > 1 and letter == theirs[j - 2] and other == ours[i - 2]:
                best = min(best, cost[i - 2][j - 2] + 1)
            row.append(best)
        cost.append(row)
    steps, i, j = [], len(ours), len(theirs)
    while i or j:
        step = next(step for step in ((1, 1), (2, 2), (1, 0), (0, 1)) if _fits(cost, ours, theirs, (i, j), step))
        steps.append(step)
        i, j = i - step[0], j - step[1]
    return steps[::-1]


def _fits(cost: list[list[int]], ours: str, theirs: str, at: tuple[int, int], step: tuple[int, int]) -> bool:
    """Whether the cheapest way to a place may come by this step."""
    i, j = at[0] - step[0], at[1] - step[1]
    if i < 0 or j < 0:
        return False
    if step == (2, 2) and ours[i : i + 2] != theirs[j : j + 2][::-1]:
        return False
    price = int(ours[i] != theirs[j]) if step == (1, 1) else 1
    return cost[i][j] + price == cost[at[0]][at[1]]


class Rewrite(NamedTuple):
    """Letters written for others: ph as f, ei as ie, l as ll. `before` is never empty: what is inserted is written with
    the letter in front of it, or, at the beginning of a word, with the one behind."""

    place: Place
    before: str
    after: str

    @property
    def kind(self) -> Kind:
        before, after = self.before, self.after
        match len(before), len(after):
            case 1, 1:
                return "substitution"
            case 1, 0:
                return "deletion"
            case 1, 2 if before in after:
                return "doubling" if after == before * 2 else "insertion"
            case 2, 1 if before == after * 2:
                return "undoubling"
            case 2, 2 if before == after[::-1]:
                return "swap"
        return "string"


def rewrites(right: str, wrong: str) -> list[Rewrite]:
    """The differences, those that touch one another taken together: sounds are often spelt with several letters."""
    groups: list[list[Difference]] = []
    for difference in differences(right, wrong):
        touches = groups and groups[-1][-1].stop == difference.start
        if touches and max(_size([*groups[-1], difference])) <= LONGEST:
            groups[-1].append(difference)
        else:
            groups.append([difference])
    return [
        _rewrite(right, wrong, Difference(group[0].start, group[-1].stop, group[0].wrong_start, group[-1].wrong_stop))
        for group in groups
    ]


def _size(group: list[Difference]) -> tuple[int, int]:
    return group[-1].stop - group[0].start, group[-1].wrong_stop - group[0].wrong_start


def _rewrite(right: str, wrong: str, difference: Difference) -> Rewrite:
    start, stop = difference.start, difference.stop
    before, after = right[start:stop], wrong[difference.wrong_start : difference.wrong_stop]
    if not before and start:
        start, after = start - 1, right[start - 1] + after
    elif not before:
        stop, after = 1, after + right[0]
    elif len(before) == 1 and not after and right[start - 1 : start] == before:
        start, after = start - 1, before
    elif len(before) == 1 and not after and right[stop : stop + 1] == before:
        stop, after = stop + 1, before
    return Rewrite(_place(start, stop, len(right)), right[start:stop], after)


def _place(start: int, stop: int, letters: int) -> Place:
    return "first" if start == 0 else "last" if stop == letters else "inner"


# Slips


class Choices(NamedTuple):
    """Strings to choose from; the sums of their weights, up to each."""

    strings: list[str]
    sums: list[float]

    @classmethod
    def of(cls, weights: dict[str, float]) -> "Choices":
        return cls(list(weights), list(accumulate(weights.values())))

    def draw(self, random: np.random.Generator) -> str:
        return self.strings[bisect(self.sums, random.random() * self.sums[-1], hi=len(self.sums) - 1)]


@dataclass(frozen=True)
class Slips:
    """What people write for which letters, and how often: draws misspellings of words no list has."""

    table: dict[tuple[Place, str], Choices]
    """What is written for letters at a place. The last sum is how often they are miswritten at all, as a share of
    their occurrences in misspelt words."""
    counts: list[list[float]]
    """For words of each number of letters, the sums of how often they had 1, 2, … rewrites."""
    kinds: dict[Kind, float]
    """The share of each kind of slip in the list; for people to read."""

    @classmethod
    def learn(cls, misspellings: Iterable[Misspelling]) -> "Slips":
        miswritten: defaultdict[tuple[Place, str], defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        written: defaultdict[tuple[Place, str], float] = defaultdict(float)
        kinds: defaultdict[Kind, float] = defaultdict(float)
        counts = np.zeros((LONGEST_WORD + 1, MOST))
        for wrong, right, weight in misspellings:
            found = rewrites(right, wrong)
            for rewrite in found:
                miswritten[rewrite.place, rewrite.before][rewrite.after] += weight
                kinds[rewrite.kind] += weight
            for key, _, _ in _strings(right):
                written[key] += weight
            counts[min(len(right), LONGEST_WORD), min(len(found), MOST) - 1] += weight
        if not kinds:
            raise ValueError("no misspellings to learn from")
        table = {
            key: Choices.of({after: count / (written[key] + SMOOTHING) for after, count in afters.items()})
            for key, afters in miswritten.items()
        }
        # Lengths with few examples lean on all lengths together.
        counts += SMOOTHING * counts.sum(0) / counts.sum()
        shares = {kind: count / sum(kinds.values()) for kind, count in sorted(kinds.items())}
        return cls(table, np.cumsum(counts, axis=1).tolist(), shares)

    def draw(self, word: str, random: np.random.Generator) -> str:
        """A misspelling of a word in lower case; now and then the word itself."""
        sums = self.counts[min(len(word), LONGEST_WORD)]
        for _ in range(1 + bisect(sums, random.random() * sums[-1], hi=len(sums) - 1)):
            word = self.slip(word, random)
        return word

    def slip(self, word: str, random: np.random.Generator) -> str:
        """One slip more in a word."""
        sites = [(self.table[key], start, stop) for key, start, stop in _strings(word) if key in self.table]
        if not sites or random.random() < KEYBOARD:
            return _hit_neighbour(word, random)
        sums = list(accumulate(choices.sums[-1] for choices, _, _ in sites))
        choices, start, stop = sites[bisect(sums, random.random() * sums[-1], hi=len(sums) - 1)]
        return word[:start] + choices.draw(random) + word[stop:]


def _strings(word: str) -> list[tuple[tuple[Place, str], int, int]]:
    """All strings of up to LONGEST letters of a word, with the place of each, and where they start and stop."""
    count = len(word)
    return [
        ((_place(start, stop, count), word[start:stop]), start, stop)
        for start in range(count)
        for stop in range(start + 1, min(start + LONGEST, count) + 1)
    ]


def _neighbours() -> dict[str, str]:
    """The keys around each one. A row stands half a key to the right of the one above it."""
    at = {key: (row, 2 * place + row) for row, keys in enumerate(_ROWS) for place, key in enumerate(keys)}
    near = {(0, 2), (0, -2), (1, 1), (1, -1), (-1, 1), (-1, -1)}
    return {
        key: "".join(other for other, (y, x) in at.items() if (y - row, x - place) in near)
        for key, (row, place) in at.items()
    }


NEIGHBOURS = _neighbours()


def _hit_neighbour(word: str, random: np.random.Generator) -> str:
    """A key beside the right one is hit, instead of it or after it."""
    places = [place for place, letter in enumerate(word) if letter in NEIGHBOURS]
    if not places:
        return word
    place = places[int(random.random() * len(places))]
    near = NEIGHBOURS[word[place]]
    hit = near[int(random.random() * len(near))]
    return word[:place] + (hit if random.random() < 0.5 else word[place] + hit) + word[place + 1 :]

"""Word alignments against gold: alignment error rate, precision, recall; the plain diagonal as what must be beaten."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from saccade.errors import UserError

Links = frozenset[tuple[int, int]]
"""Pairs of a source word and a target word, counted from 0."""
LINK = re.compile(r"(\d+)[-p](\d+)")


@dataclass(frozen=True)
class GoldAlignment:
    """What annotators say of one sentence: all sure links are possible ones."""

    sure: Links
    possible: Links

    @classmethod
    def of(cls, sure: str, possible: str, *, first: int = 0) -> "GoldAlignment":
        """From `i-j` links with spaces between; `first` is the number of the first word."""
        certain = read_links(sure, first=first)
        return cls(certain, certain | read_links(possible, first=first))


@dataclass(frozen=True)
class AlignmentScores:
    """Over all sentences, between 0 and 1."""

    error: float
    """Alignment error rate."""
    precision: float
    """Of the links that were found, the share that is possible."""
    recall: float
    """Of the sure links, the share that was found."""

    def __str__(self) -> str:
        return f"AER {100 * self.error:.1f}, precision {100 * self.precision:.1f}, recall {100 * self.recall:.1f}"


def alignment_scores(found: Sequence[Links], gold: Sequence[GoldAlignment]) -> AlignmentScores:
    """AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), the counts summed over all sentences (Och & Ney 2003, 3)."""
    if len(found) != len(gold):
        raise ValueError(f"{len(found)} alignments for {len(gold)} of gold")
    sure = sum(len(a & g.sure) for a, g in zip(found, gold, strict=True))
    possible = sum(len(a & g.possible) for a, g in zip(found, gold, strict=True))
    links, wanted = sum(map(len, found)), sum(len(g.sure) for g in gold)
    error = 1 - (sure + possible) / (links + wanted) if links + wanted else 0.0
    return AlignmentScores(error, possible / links if links else 1.0, sure / wanted if wanted else 1.0)


def read_links(text: str, *, first: int = 0) -> Links:
    """`0-0 1-2`, as aligners write it; a possible link may be written `1p2`."""
    found = []
    for word in text.split():
        match = LINK.fullmatch(word)
        if match is None or min(int(match[1]), int(match[2])) < first:
            raise UserError(f"{word!r} is no link: links are i-j, counted from {first}")
        found.append((int(match[1]) - first, int(match[2]) - first))
    return frozenset(found)


def write_links(links: Iterable[tuple[int, int]], *, first: int = 0) -> str:
    """In the order of the source."""
    return " ".join(f"{i + first}-{j + first}" for i, j in sorted(links))


def diagonal(source: int, target: int) -> Links:
    """Every source word with the target word that lies as far along its sentence: first with first, last with last."""
    return frozenset((i, round(i * (target - 1) / max(1, source - 1))) for i in range(source))


def joined_links(forward: Links, backward: Links) -> Links:
    """Both directions joined by grow-diag (Koehn et al. 2003): the links of both, and neighbours of these that one
    direction has and that align a word without a link yet."""
    found, either = set(forward & backward), forward | backward
    added = True
    while added:
        added = False
        for i, j in sorted(found):
            for di, dj in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                one = (i + di, j + dj)
                rows, columns = {a for a, _ in found}, {b for _, b in found}
                if one in either and one not in found and (one[0] not in rows or one[1] not in columns):
                    found.add(one)
                    added = True
    return frozenset(found)

"""Word alignments from a translator's attention: which source word each word of a given translation looks at.

A model writes a token while it looks at one place, and looks again once it has read that token; which of the two looks
aligns better, and with which heads, differs from model to model (Chen et al. 2020, 3). Both are tried on held-out data.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from saccade.axes import Pieces
from saccade.errors import UserError, WrongUse
from saccade.evaluate.alignment import AlignmentScores, GoldAlignment, Links, alignment_scores
from saccade.explaining.attending import pieces_in_words
from saccade.explaining.places import AttentionLayer
from saccade.look.record import LayerLooks
from saccade.pipelines.translator import Translator
from saccade.runtime.contract import Floats

MOST_HEADS = 6
"""That are averaged, at most."""
WHEN = ("writing", "reading")
"""The look that decides a token, and the one after it was read."""
TOKEN = re.compile(r"\S+")
JOINED = re.compile(r"\s+([.,;:!?%)\]»”’]+)(?=\s|$)|([(\[«“])\s+|\s*(['’])\s*")


@dataclass(frozen=True)
class Aligner:
    """Which heads align, and when they are looked at."""

    heads: tuple[tuple[str, int], ...]
    """Layer names and heads, counted from 0; they are averaged."""
    when: str = "writing"

    def spelt(self, layers: Sequence[AttentionLayer]) -> str:
        """As it is typed: `cross:2.3,cross:3.1@reading`."""
        named = {one.name: one for one in layers}
        heads = ",".join(named[name].head(head + 1) for name, head in self.heads)
        return heads if self.when == "writing" else f"{heads}@{self.when}"


@dataclass(frozen=True)
class WordPair:
    """A sentence and its translation, words between spaces, and where every head looked."""

    source: list[str]
    target: list[str]
    weights: dict[tuple[str, int, str], Floats]
    """[T, S] between words, by layer, head and when."""

    def links(self, aligner: Aligner) -> Links:
        """Every target word with the source word that it looked at most."""
        weights_TS = np.mean([self.weights[name, head, aligner.when] for name, head in aligner.heads], axis=0)
        return frozenset((int(i), j) for j, i in enumerate(weights_TS.argmax(axis=1)))


def read_pair(translator: Translator, source: str, target: str, *, tokenized: bool = False) -> WordPair:
    """How a translation that is given looks at its source. `tokenized`: punctuation stands between spaces, and is
    joined with its word before it is read; links are between the words as they are given."""
    read = (joined(source), joined(target)) if tokenized else (source, target)
    answer = translator.given(*read)
    across = [one for one in answer.looks.layers if one.kind == "cross"]
    if not across:
        raise WrongUse("this model has no attention: it cannot align")
    sources, targets = ([one.span() for one in TOKEN.finditer(text)] for text in (source, target))
    columns, rows = across[0].columns, across[0].rows
    assert isinstance(columns, Pieces)
    assert isinstance(rows, Pieces)
    columns_SW, rows_TW = pieces_in_words(columns, source, sources), pieces_in_words(rows, target, targets)
    shares_WT = (rows_TW / np.maximum(rows_TW.sum(axis=0), 1e-12)).T
    weights = {
        (one.name, head, when): shares_WT @ _when(one, head, when) @ columns_SW
        for one in across
        for head in range(len(one.weights_NTS))
        for when in WHEN
    }
    return WordPair(source.split(), target.split(), weights)


def joined(text: str) -> str:
    """A tokenized text as one writes it: no space before a comma, none after an apostrophe."""
    return " ".join(JOINED.sub(lambda one: one[1] or one[2] or one[3], text).split())


def _when(looks: LayerLooks, head: int, when: str) -> Floats:
    weights_TS: Floats = looks.weights_NTS[head]
    # The look at which token t is the input decides token t + 1; the end mark's row stands last.
    return weights_TS if when == "writing" else np.concatenate([weights_TS[1:], weights_TS[-1:]])


def candidates(pair: WordPair) -> Iterator[Aligner]:
    """Every head alone, at both times."""
    for name, head, when in pair.weights:
        yield Aligner(((name, head),), when)


def choose_by_gold(pairs: Sequence[WordPair], gold: Sequence[GoldAlignment]) -> Aligner:
    """The heads, alone or averaged, with the lowest error."""
    return _choose(pairs, lambda links: -alignment_scores(links, gold).error)


def choose_by_words(pairs: Sequence[WordPair]) -> Aligner:
    """Without gold: the heads whose links join words that occur together all over the data (Dice's coefficient)."""
    if len(pairs) < 10:
        raise UserError(f"{len(pairs)} sentences; at least 10 are needed to choose heads by")
    sources, targets, both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for pair in pairs:
        left, right = ({word.casefold() for word in words} for words in (pair.source, pair.target))
        sources.update(left)
        targets.update(right)
        both.update((one, other) for one in left for other in right)

    def score(found: Sequence[Links]) -> float:
        dice = [
            2 * (both[one, other] - 1) / (sources[one] + targets[other])  # chance meetings of rare words count nothing
            for pair, links in zip(pairs, found, strict=True)
            for i, j in links
            for one, other in [(pair.source[i].casefold(), pair.target[j].casefold())]
        ]
        return float(np.mean(dice))

    return _choose(pairs, score)


def _choose(pairs: Sequence[WordPair], score: Callable[[Sequence[Links]], float]) -> Aligner:
    """The best head, then more beside it as long as they help."""

    def value(one: Aligner) -> float:
        return score([pair.links(one) for pair in pairs])

    ranked = sorted(((value(one), number, one) for number, one in enumerate(candidates(pairs[0]))), reverse=True)
    best_value, _, best = ranked[0]
    for _, _, other in ranked[1 : 3 * MOST_HEADS]:
        if other.when != best.when or len(best.heads) == MOST_HEADS:
            continue
        wider = Aligner((*best.heads, *other.heads), best.when)
        if (found := value(wider)) > best_value:
            best_value, best = found, wider
    return best


def evaluate_alignment(pairs: Sequence[WordPair], gold: Sequence[GoldAlignment], aligner: Aligner) -> AlignmentScores:
    """Of the links that these heads find."""
    return alignment_scores([pair.links(aligner) for pair in pairs], gold)

"""Where the sentences of a text begin and end: for models that were trained on single sentences.

Rules, no model. What stands between two sentences belongs to neither, so that a text can be put together again exactly.
"""

import re
from collections.abc import Iterator

Span = tuple[int, int]
"""The first character, and the one behind the last."""

_CLOSING = "\"'”’»)\\]}"
_OPENING = "\"'“‘«([{¿¡–—-"
# A run of marks is tried once, from its beginning: a line of 100,000 full stops must not take a square of that.
_BOUNDARY = re.compile(
    rf"(?<![.!?…])[.!?…]+[{_CLOSING}]*(?=\s)\s*|(?<![。！？｡])[。！？｡]+[{_CLOSING}」』）]*\s*",
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD_BEFORE = re.compile(r"[^\s\"'“‘«(\[{¿¡]+$")
# Words that end in a full stop and mostly go on. Those that often end a sentence (Inc., p.m.) are in _MAY_END.
_ABBREVIATIONS = _words(
    "mr mrs ms mx dr prof rev hon st sr jr gen col capt lt sgt cmdr adm gov sen rep pres mme mlle messrs fr bro "
    "vs v cf viz al approx ca circa fig figs no nos nr vol vols ch sec secs art p pp ed eds trans est dept univ assn "
    "mt ft sq jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri sat sun e.g i.e eg ie "
    "incl tel ext resp min max avg"
)
_MAY_END = _words("inc ltd co corp llc etc a.m p.m am pm b.c a.d ph.d u.s u.k u.n e.u d.c bros ave blvd rd")
# What a sentence begins with that follows such a word. Others are names, as in "U.S. Senate".
_STARTERS = _words(
    "the a an it he she we they i you this that these those there in on at but and so if when while after before for "
    "however his her its our their my your what who why how where then as no yes not all one some most many"
)
_NEAR = 40
"""Characters before and behind a mark that are looked at."""
_FAR = 300
"""Characters within which a bracket must be closed to hold its sentences together."""


def split_sentences(text: str) -> list[Span]:
    """The sentences of a text, in order, without the white space around them. A line's end is a sentence's end."""
    spans, start = [], 0
    for line in text.splitlines(keepends=True):
        spans += [_trim(text, start + first, start + last) for first, last in _within(line)]
        start += len(line)
    return [span for span in spans if span[0] < span[1]]


def _within(line: str) -> Iterator[Span]:
    """The sentences of a line, with the white space behind them."""
    start, closed = 0, 0
    for found in _BOUNDARY.finditer(line):
        closed = _bracket_end(line, max(start, closed), found.start()) or closed
        if found.end() < len(line) and found.start() >= closed and _ends(line, start, found):
            yield start, found.end()
            start = found.end()
    yield start, len(line)


def _ends(text: str, start: int, found: re.Match[str]) -> bool:
    """Whether a sentence that began at `start` is over at this mark."""
    marks = found[0].rstrip()
    following = text[found.end() : found.end() + _NEAR].lstrip(_OPENING)
    lower = following[:1].islower()
    if marks[0] in "。！？｡":
        return True
    if marks[0] in "!?":
        # "Stop!" he said.
        return not (lower and marks[-1] in _CLOSING)
    if marks.startswith(("..", "…")):
        return not lower
    near = text[max(start, found.start() - _NEAR) : found.start()]
    word = _WORD_BEFORE.search(near)
    before = word[0].casefold() if word else ""
    numbers_a_list = before.isdigit() and len(before) < 3 and near == before and found.start() - len(near) == start
    if before in _ABBREVIATIONS or numbers_a_list:
        return False  # Mr. Smith; the 2. of a numbered list
    if before in _MAY_END or re.fullmatch(r"(\w\.)*\w", before):
        if len(before) == 1 and before == "i":  # so do I.
            return True
        return re.split(r"\W", following, maxsplit=1)[0].casefold() in _STARTERS and not lower
    return not (lower and marks[-1] in _CLOSING)


def _bracket_end(text: str, start: int, stop: int) -> int:
    """Behind the bracket that a part of a text leaves open and that is closed soon; 0 if there is none."""
    opened = max(text.rfind("(", start, stop), text.rfind("[", start, stop))
    if opened < 0 or stop - opened > _FAR or any(mark in text[opened:stop] for mark in ")]"):
        return 0
    ends = [text.find(mark, stop, opened + _FAR) for mark in ")]"]
    return min((end + 1 for end in ends if end >= 0), default=0)


def _trim(text: str, start: int, stop: int) -> Span:
    part = text[start:stop]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


_CLAUSES = (re.compile(r"[;:–—)\]][\"'”’]*\s+"), re.compile(r"[,、，]\s*"), re.compile(r"\s+"))


def halve(text: str) -> int:
    """Where a sentence that is too long is best cut in two: near its middle, behind a semicolon rather than behind a
    comma, and there rather than between words."""
    middle = len(text) // 2
    for clause in _CLAUSES:
        cuts = [found.end() for found in clause.finditer(text)]
        near = min(cuts, key=lambda cut: abs(cut - middle), default=0)
        # A part of less than a fifth does not make the rest much shorter.
        if 0.2 * len(text) <= near <= 0.8 * len(text):
            return near
    return middle

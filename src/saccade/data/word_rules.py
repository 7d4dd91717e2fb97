"""Plain text cut into words by rules, as the English Web Treebank cuts it (Silveira et al. 2014; UD_English-EWT).

The closed lists follow what the treebank's training part does (CC BY-SA 4.0; see NOTICE). `python -m bench.words`
scores
the rules against the treebank.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import accumulate, pairwise

ABBREVIATIONS = """
    adm al apt arrv assn attn aug ave blvd brig bros capt cf cmdr co col conf corp cpl dec dept dr drs eg esp esq est
    etc
    ext feb fig figs fri ft gen gov hon hwy ie inc intl jan jr lt ltd maj messrs mr mrs ms mt nov oct ph pp prof rd rep
    reps rev sec sen sens sept sgt sr st sts tel thu thur thurs tue tues univ vol vols vs wed yrs
"""
"""Words that keep their full stop inside a text. At its end the stop is that of the sentence."""
NUMBERED = "no nos p pg pgs para art ch app ver"
"""Abbreviations only before a number; elsewhere they are words that end a sentence."""
PREFIXES = """
    ad agro ante anti arch bi bio co contra counter cross cyber de e eco electro em en eu ex extra hyper infra inter
    intra
    macro mega meta micro mid mini mis mono multi neo non omni over pan para peri post pre pro pseudo quasi re semi
    socio
    sub super supra trans tri ultra un under uni
"""
"""What stays together with the word behind its hyphen: e-mail, but well - written."""
UNITS = """
    am pm a.m. p.m. a.m p.m m k b mm bn mn ft f c cm kg km hz khz mhz ghz kb mb gb tb p x lb lbs oz mg ml kw mw mwh kwh
    mph hp sqft min mins minutes hr hrs hours days weeks months years yrs percent watt
"""
"""What stands apart from a number: 10 pm."""
DOMAINS = "com org net edu gov mil info biz uk us ca au de fr eu jp cn ru it es nl br za nz ie ch co io tv"
ENDINGS = "doc docx pdf txt xls xlsx ppt jpg jpeg gif png zip exe htm html xml csv mp3 mp4 avi"
TOGETHER = """
    can not, gon na, got ta, wan na, gim me, lem me, out ta, du n no, did nt, does nt, do nt, ca nt, wo nt, is nt, was
    nt,
    are nt, ar nt, were nt, have nt, has nt, had nt, could nt, would nt, should nt, ai nt, i m, i ve, that s, what s,
    there s, here s, he s, else s, let s, you re, they re, you ve, they ve, you ll, they ll, it ll, a lot
"""
"""Words that are often written as one. "its" and "your" are not among them: they are mostly meant."""


def _any(words: str) -> str:
    """A pattern for one of these words, the longest first: the first that fits is taken."""
    return "|".join(sorted(map(re.escape, words.split()), key=len, reverse=True))


TWO_WORDS = {"".join(parts): tuple(map(len, parts)) for parts in (text.split() for text in TOGETHER.split(","))}
NO_MORE = r"(?![A-Za-z0-9])"
IN_ADDRESS, LAST_IN_ADDRESS = r"[^ <>\"]", r"[^ <>\"'.,;:!?)\]]"
"""An address does not take the punctuation behind it."""
RULES = {
    # Not behind a letter or digit: "8)" in "(1998)" is no face.
    "emoticon": r"(?<![A-Za-z0-9])(?:"
    r"[:;=8][-'^o]?(?:[)(\]\[|*]+|[DPpOoSs/\\](?![A-Za-z0-9/\\]))|[xX]D(?![A-Za-z0-9])|<3+(?![0-9])|\^[_.-]*\^)",
    "mail": r"(?:mailto:)?[A-Za-z0-9][A-Za-z0-9._+%-]{0,63}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?",
    "url": rf"(?:[A-Za-z]+://|www\.){IN_ADDRESS}*{LAST_IN_ADDRESS}",
    "host": rf"(?:[A-Za-z0-9][A-Za-z0-9-]{{0,62}}\.){{1,9}}(?i:{_any(DOMAINS)})(?![A-Za-z0-9-])(?:/{IN_ADDRESS}*{LAST_IN_ADDRESS})?",  # noqa: E501
    "file": rf"[A-Za-z0-9_#-]{{0,99}}\.(?i:{_any(ENDINGS)}){NO_MORE}",
    "phone": r"(?:\d-)?(?:\d{3}[-/.])?\d{3}-\d{4}(?![\d-])|\d{3}\.\d{3}\.\d{4}(?!\d)|\d-\d{4}(?![\d-])",
    "date": r"\d{1,2}(?P<between>[/-])\d{1,2}(?P=between)(?:\d{4}|\d{2})(?!\d)"
    r"|\d{4}-\d{2}-\d{2}(?!\d)|\d{1,2}/\d{1,2}(?![\d/])",
    "ordinal": rf"\d+'?(?i:st|nd|rd|th|s){NO_MORE}",
    "quantity": rf"\d+(?:[.,:]\d+){{0,9}}(?=(?i:{_any(UNITS)}){NO_MORE})",
    "number": rf"\d+(?:[.,:]\d+){{1,9}}{NO_MORE}|\.\d+{NO_MORE}",
    # At the end of a text the last stop is that of the sentence.
    "letters": r"(?:[A-Za-z]\.){2,}(?=[,;:?!)]|[^A-Za-z0-9]+[A-Za-z0-9])|(?:[A-Za-z]\.)+[A-Za-z](?![A-Za-z0-9'])",
    "initial": r"[A-Z]\.(?= +[A-Z0-9])",
    "abbreviation": rf"(?i:{_any(ABBREVIATIONS)})\.(?= +[^ ]|[,;:)])|(?i:{_any(NUMBERED)})\.(?= ?\d)",
    "and": rf"[A-Z]+(?:&[A-Z]+){{1,5}}{NO_MORE}",
    "prefixed": rf"(?i:{_any(PREFIXES)})-[A-Za-z][A-Za-z']*",
    "clitic": r"'(?i:s|re|ve|ll|d|m|em|cause|til|till|bout)(?![A-Za-z0-9'])",
    "money": r"(?:US|AU|NZ|HK|C|A)\$",
    "word": r"[A-Za-z0-9]+(?:(?:['.]|_+)[A-Za-z0-9]+)*",
    "marks": r"[!?]+|\.{2,}",
    "sign": r"(?P<same>[^A-Za-z0-9 ])(?P=same)*",
}
"""In order: the first that fits is taken. They see a text as `_plain` makes it. Repetitions that can fail at their end
are limited, so that the time grows with the length of a text and not with its square."""
WORD = re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in RULES.items()))
SHORT_FORM = re.compile(r"(?<=.)(?:n't|'(?:s|re|ve|ll|d|m))$", re.IGNORECASE)


def split_words(text: str) -> tuple[list[str], list[bool]]:
    """The words of a text, and whether a space stands before each.

    Writing without blanks, as in Japanese, is not cut: put blanks between the words, or give CoNLL-U.
    """
    spans = word_spans(text)
    spaces = [place > 0 and text[start - 1].isspace() for place, (start, _) in enumerate(spans)]
    return [text[start:stop] for start, stop in spans], spaces


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text begin and end. They cover all of it but blanks."""
    return [span for match in WORD.finditer(_plain(text)) for span in _parts(match)]


def _parts(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """One match may be several words: do n't, can not."""
    word = match[0]
    sizes = TWO_WORDS.get(word.lower(), (len(word),))
    short = SHORT_FORM.search(word) if match["word"] or match["prefixed"] else None
    if short:
        sizes = (short.start(), len(word) - short.start())
    yield from pairwise(accumulate(sizes, initial=match.start()))


def _plain(text: str) -> str:
    """A text of the same length whose letters, digits, apostrophes and blanks are ASCII."""
    return text if text.isascii() and text.isprintable() else "".join(map(_plain_character, text))


def _plain_character(character: str) -> str:
    if character.isspace():
        return " "
    if character == "’":
        return "'"
    # Punctuation and signs (Unicode's P and S) stay; marks such as accents are parts of letters.
    if unicodedata.category(character)[0] in "PS" or (character.isascii() and character.isprintable()):
        return character
    if character.isdecimal():
        return "0"
    return "A" if character.isupper() else "a"

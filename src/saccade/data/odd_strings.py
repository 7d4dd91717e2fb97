"""Strings that a translation must copy sign by sign, put into both sides of a pair."""

import re
from collections.abc import Callable

import numpy as np

from saccade.data.exchange import invented_word
from saccade.data.text import Pair

_FINAL = re.compile(r"\s*[.!?]$")


def _letters(random: np.random.Generator, least: int, most: int, alphabet: str = "abcdefghijklmnoprstuvwz") -> str:
    return "".join(alphabet[i] for i in random.integers(0, len(alphabet), int(random.integers(least, most + 1))))


_ENDS = ("com", "org", "net", "es", "fr", "co.uk", "io", "info")
_FILES = ("pdf", "txt", "docx", "jpg", "csv", "py", "zip", "mp3")
_EMOJI = "😀😂😊😍😉😎😭😡👍🙏🎉🔥❤✨☀🐶🍕🚗⚽🎂"
_OTHER_SCRIPTS = ("абвгдежзиклмнопрстуя", "αβγδεζηικλμνοπρστω", "的一是不了人我在有他这中大来上", "אבגדהוחטימנסרשת")


def _end(random: np.random.Generator, ends: tuple[str, ...]) -> str:
    return ends[int(random.integers(len(ends)))]


STRINGS: dict[str, Callable[[np.random.Generator], str]] = {
    "e-mail": lambda random: (
        f"{invented_word(random)}.{invented_word(random)}@{invented_word(random)}.{_end(random, _ENDS)}"
    ),
    "address": lambda random: (
        ("https://", "www.")[int(random.integers(2))]
        + f"{invented_word(random)}.{_end(random, _ENDS)}"
        + (f"/{invented_word(random)}" if random.random() < 0.5 else "")
    ),
    "user": lambda random: f"@{invented_word(random)}{_letters(random, 0, 3, '0123456789_')}",
    "tag": lambda random: f"#{invented_word(random)}",
    "order": lambda random: f"#{_letters(random, 3, 7, '0123456789')}",
    "code": lambda random: (
        f"{_letters(random, 2, 4, 'ABCDEFGHJKLMNPQRSTUVWXYZ')}-{_letters(random, 1, 5, '0123456789')}"
    ),
    "file": lambda random: f"{invented_word(random)}_{_letters(random, 1, 4, '0123456789')}.{_end(random, _FILES)}",
    "emoji": lambda random: _letters(random, 1, 2, _EMOJI),
    "other script": lambda random: _letters(random, 2, 7, _OTHER_SCRIPTS[int(random.integers(len(_OTHER_SCRIPTS)))]),
}
"""Kinds of strings that a translation must copy sign by sign."""


def with_string(pair: Pair, random: np.random.Generator) -> Pair:
    """The same odd string on both sides: at the end, in front, or in brackets before the final mark."""
    kinds = list(STRINGS)
    kind = kinds[int(random.integers(len(kinds)))]
    string = STRINGS[kind](random)
    drawn = 0.5 if kind == "emoji" else random.random()
    ends = [_FINAL.search(side) for side in pair]
    if drawn < 0.4 and all(ends):
        source, target = (
            f"{side[: end.start()]} ({string}){side[end.start() :]}"
            for side, end in zip(pair, ends, strict=True)
            if end
        )
    else:
        source, target = (f"{string} {side}" if drawn > 0.8 else f"{side} {string}" for side in pair)
    return source, target

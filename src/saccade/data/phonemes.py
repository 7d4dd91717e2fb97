"""The phonemes of American English as CMUdict writes them (ARPAbet, without stress), in IPA, and as one sign each."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

from saccade.data.text import read_lines
from saccade.errors import UserError

IPA = {
    "AA": "ɑ",
    "AE": "æ",
    "AH": "ʌ",
    "AO": "ɔ",
    "AW": "aʊ",
    "AY": "aɪ",
    "B": "b",
    "CH": "tʃ",
    "D": "d",
    "DH": "ð",
    "EH": "ɛ",
    "ER": "ɝ",
    "EY": "eɪ",
    "F": "f",
    "G": "ɡ",
    "HH": "h",
    "IH": "ɪ",
    "IY": "i",
    "JH": "dʒ",
    "K": "k",
    "L": "l",
    "M": "m",
    "N": "n",
    "NG": "ŋ",
    "OW": "oʊ",
    "OY": "ɔɪ",
    "P": "p",
    "R": "ɹ",
    "S": "s",
    "SH": "ʃ",
    "T": "t",
    "TH": "θ",
    "UH": "ʊ",
    "UW": "u",
    "V": "v",
    "W": "w",
    "Y": "j",
    "Z": "z",
    "ZH": "ʒ",
}
SIGNS = dict(zip(IPA, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+*#", strict=True))
"""One character each, none of which stands in a word's spelling: a vocabulary of characters then has a token each."""
PHONEMES = {sign: phoneme for phoneme, sign in SIGNS.items()}
SPELT = frozenset("abcdefghijklmnopqrstuvwxyz'")
"""What a word's spelling is made of."""


def as_signs(phonemes: str) -> str:
    """K AE T -> signs; a phoneme that is none raises KeyError."""
    return "".join(SIGNS[phoneme] for phoneme in phonemes.split())


def as_phonemes(signs: str) -> str:
    """Signs -> K AE T; what is no sign is left out."""
    return " ".join(PHONEMES[sign] for sign in signs if sign in PHONEMES)


def as_ipa(phonemes: str) -> str:
    """K AE T -> kæt"""
    return "".join(IPA[phoneme] for phoneme in phonemes.split())


def spelling(word: str) -> str:
    """A word as the dictionary spells it: small letters without accents, and apostrophes; all else is left out."""
    plain = unicodedata.normalize("NFD", word.replace("’", "'")).lower()
    return "".join(letter for letter in plain if letter in SPELT)


def read_dictionary(path: Path) -> Iterator[tuple[int, str, str]]:
    """Of every line its number, the word as it is spelt, and its phonemes."""
    for number, line in enumerate(read_lines(path), 1):
        word, tab, phonemes = line.partition("\t")
        if not line.strip():
            continue
        if not tab or not spelling(word):
            raise UserError(f"{path}, line {number}: expected a word, tab, its phonemes; it begins {line[:40]!r}")
        yield number, spelling(word), phonemes

"""Ids of text, and text of ids, whatever the units are."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from tokenizers import Tokenizer

from saccade.config import Record
from saccade.errors import UserError
from saccade.files import parse_json
from saccade.tokens import bpe, characters, pieces, whole_words
from saccade.tokens.crafted import unreadable
from saccade.tokens.marks import SPECIALS, Marks

KINDS = {"bpe": bpe, "characters": characters, "words": whole_words, "pieces": pieces}
BYTES = 256


class TokensConfig(Record):
    """The units of text."""

    renamed: ClassVar[Mapping[str, str]] = {"spelt": "source_bytes", "least": "min_frequency"}

    kind: Literal["bpe", "bytes", "characters", "words"] = "bpe"
    """bpe: frequent byte strings; bytes; characters, or words between spaces: those of the training text."""
    vocabulary: int = Field(8000, ge=300, le=1_000_000)
    """For bpe: size of the vocabulary, including the 256 bytes and three special tokens."""
    min_frequency: int = Field(2, ge=1)
    """For bpe: how often a pair must occur to be merged."""
    source_bytes: bool = False
    """For bpe, in tasks with source and target: read the source as bytes; only the target is cut by bpe."""


class Vocabulary:
    """Encodes and decodes. Text that looks like a special token is text.

    `spaced`: every text is read as if a space stood before it, so that a word has one spelling wherever it stands.
    Pieces always are. What `continues` another text has no such space: the space it begins with is its own.
    `source_bytes`: texts that are read, not written, are cut into bytes.
    """

    def __init__(
        self, tokenizer: Tokenizer, *, spaced: bool = True, source_bytes: bool = False, marks: Marks | None = None
    ) -> None:
        # Without this, "</s>" typed by a user would become the real end of sentence.
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer = tokenizer
        self.marks = marks or Marks()
        self.kind = _kind(tokenizer)
        self.before = " " if self.kind == "pieces" or (spaced and self.kind == "bpe") else ""
        self.spellings = pieces.spellings(tokenizer) if self.kind == "pieces" else None
        self.characters = frozenset(tokenizer.get_vocab()) if self.kind == "characters" else None
        """All that can be read, where that is not everything."""
        self.words = frozenset(tokenizer.get_vocab()) - {*SPECIALS} if self.kind == "words" else None
        """The same of a vocabulary of words."""
        self.speller = bpe.unmerged(tokenizer) if source_bytes else None

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    @cached_property
    def text_ids(self) -> np.ndarray:
        """The ids that are text, in order."""
        return np.array([i for i in range(len(self)) if i not in self.marks.special], dtype=np.int64)

    def encode(self, texts: Sequence[str], *, continues: bool = False) -> list[list[int]]:
        if self.characters is not None or self.words is not None:
            for text in texts:
                self._insist_on_known(text)
        tokenizer, before = self.tokenizer, "" if continues else self.before
        if self.kind == "pieces":
            # The tokenizer itself puts the space there; its model alone does not.
            tokenizer, before = Tokenizer(tokenizer.model) if continues else tokenizer, ""
        return self._ids(tokenizer, [before + text for text in texts])

    def _ids(self, tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        try:
            encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:  # half a surrogate pair, as comes from an argument in another encoding
            raise UserError("a text is not Unicode; is it in another encoding than UTF-8?") from None
        return [encoding.ids for encoding in encodings]

    def read(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts as a model reads them."""
        return self.encode(texts) if self.speller is None else self._ids(self.speller, texts)

    def decode(self, ids: Iterable[int], *, continues: bool = False) -> str:
        text = self._spell([i for i in ids if i not in self.marks.special])
        return text if continues else text.removeprefix(self.before)

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Each id as text of its own; a piece that begins a word begins with a space."""
        space = " " if self.kind == "words" else ""
        return [self._name(i) if i in self.marks.special else space + self._spell([i]) for i in ids]

    def _name(self, mark: int) -> str:
        # The mask may stand one past the tokens: models that fill gaps add it.
        return str(self.tokenizer.id_to_token(mark) or "[MASK]")

    def _spell(self, ids: list[int]) -> str:
        if self.spellings is None:
            text: str = self.tokenizer.decode(ids, skip_special_tokens=False)
            return text
        # A text under way may end within a character; the tokenizer would give up every byte in a row with that one.
        return b"".join(self.spellings[i] for i in ids).decode("utf-8", errors="replace")

    def save(self, path: Path) -> None:
        path.write_text(self.tokenizer.to_str(), encoding="utf-8")

    def _insist_on_known(self, text: str) -> None:
        if self.words is not None:
            if unknown := [word for word in dict.fromkeys(text.split()) if word not in self.words]:
                shown = ", ".join(repr(word[:30]) for word in unknown[:5])
                raise UserError(f"{shown}: not among the {len(self.words)} words this model was trained on")
            return
        assert self.characters is not None
        if unknown := sorted(set(text) - self.characters):
            shown = "".join(unknown[:10])
            known = len(self.characters) - len(SPECIALS)
            raise UserError(f"{shown!r}: not among the {known} characters this model was trained on")


def train_vocabulary(config: TokensConfig, texts: Iterable[str], *, spaced: bool = True) -> Vocabulary:
    """Learn the units from texts."""
    if config.kind == "characters":
        return Vocabulary(characters.train(texts))
    if config.kind == "words":
        return Vocabulary(whole_words.train(texts))
    size = BYTES + len(SPECIALS) if config.kind == "bytes" else config.vocabulary
    before = " " if spaced else ""
    tokenizer = bpe.train(size, config.min_frequency, (before + text for text in texts))
    return Vocabulary(tokenizer, spaced=spaced, source_bytes=config.source_bytes)


def read_vocabulary(
    text: str, where: Path, *, spaced: bool = True, source_bytes: bool = False, marks: Marks | None = None
) -> Vocabulary:
    """The vocabulary in a tokenizer.json; whatever is wrong with the file is said in one line."""
    table = parse_json(text, where)
    name = _kind_of_file(table)
    if complaint := unreadable(table, KINDS[name].NAME, _apart(KINDS[name].untrained())[0]):
        raise UserError(f"{where}: {complaint}")
    try:
        vocabulary = Vocabulary(Tokenizer.from_str(text), spaced=spaced, source_bytes=source_bytes, marks=marks)
        found, words, merges = _apart(vocabulary.tokenizer)
    # A crafted file makes the Rust side panic with a BaseException of its own.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"{where}: not a tokenizer this version can read ({reason})") from None
    # Only the words may differ from what training writes: the rest decides what happens to text.
    kind = KINDS[vocabulary.kind]
    untrained = kind.untrained()
    untrained.encode_special_tokens = True
    expected, _, _ = _apart(untrained)
    for part in sorted(expected.keys() | found.keys()):
        if found.get(part) != expected.get(part):
            raise UserError(f"{where}: its {part} is not that of a {kind.NAME} of this version")
    if sorted(words.values()) != list(range(len(words))) or len(words) != len(vocabulary):
        raise UserError(f"{where}: its {len(words)} tokens do not have the ids 0 to {len(words) - 1}")
    if complaint := kind.complaint(words):
        raise UserError(f"{where}: {complaint}")
    fixed = set(kind.FIXED)
    for left, right in merges:
        if not fixed.isdisjoint((left, right, left + right)):
            raise UserError(f"{where}: it joins {left[:20]!r} and {right[:20]!r}, but marks and bytes are not text")
    return vocabulary


def _kind(tokenizer: Tokenizer) -> str:
    if type(tokenizer.model).__name__ == "WordLevel":
        return "words" if type(tokenizer.pre_tokenizer).__name__ == whole_words.SPLIT else "characters"
    return "pieces" if getattr(tokenizer.model, "byte_fallback", False) else "bpe"


def _kind_of_file(table: Any) -> str:
    """The same, before the library has read the file; what is no tokenizer at all is complained about later."""
    model = table.get("model") if isinstance(table, dict) else None
    if not isinstance(model, dict):
        return "bpe"
    if model.get("type") == "WordLevel":
        cut = table.get("pre_tokenizer")
        return "words" if isinstance(cut, dict) and cut.get("type") == whole_words.SPLIT else "characters"
    return "pieces" if model.get("byte_fallback") else "bpe"


def _apart(tokenizer: Tokenizer) -> tuple[dict[str, Any], dict[str, int], list[tuple[str, str]]]:
    """What a tokenizer does, its words, and how they are joined from smaller ones."""
    table = json.loads(tokenizer.to_str())
    words: dict[str, int] = table["model"].pop("vocab")
    merges = [(left, right) for left, right in table["model"].pop("merges", [])]
    return table, words, merges

"""Joint byte-level BPE: any Unicode in, the same text out, no unknown word."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from saccade.config import Record
from saccade.errors import UserError

PAD, BEGIN, END = 0, 1, 2
SPECIALS = ["<pad>", "<s>", "</s>"]


class BpeConfig(Record):
    vocabulary: int = Field(8000, ge=300, le=1_000_000)
    """Size of the joint vocabulary; the 256 bytes and three special tokens are always in it."""
    least: int = Field(2, ge=1)
    """How often a pair must occur to be merged."""


class Vocabulary:
    """Ids of text, and text of ids. Text that looks like a special token is text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        # Without this, "</s>" typed by a user would become the real end of sentence.
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer = tokenizer

    def __len__(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        # Every text is read as if a space stood before it, so that a word has one spelling wherever it stands.
        spaced = [" " + text for text in texts]
        try:
            encodings = self.tokenizer.encode_batch_fast(spaced, add_special_tokens=False)
        except TypeError:  # half a surrogate pair, as comes from an argument in another encoding
            raise UserError("a text is not Unicode; is it in another encoding than UTF-8?") from None
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        text: str = self.tokenizer.decode([i for i in ids if i > END], skip_special_tokens=False)
        return text.removeprefix(" ")

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Each id as text of its own; a piece that begins a word begins with a space."""
        return [SPECIALS[i] if i <= END else self.tokenizer.decode([i], skip_special_tokens=False) for i in ids]

    def save(self, path: Path) -> None:
        path.write_text(self.tokenizer.to_str(), encoding="utf-8")


def train_bpe(config: BpeConfig, texts: Iterable[str]) -> Vocabulary:
    """Learn the merges from texts (Sennrich et al. 2016)."""
    tokenizer = _untrained()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocabulary,
        min_frequency=config.least,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((" " + text for text in texts), trainer)
    return Vocabulary(tokenizer)


def read_vocabulary(text: str, where: Path) -> Vocabulary:
    """The vocabulary in a tokenizer.json; whatever is wrong with the file is said in one line."""
    try:
        vocabulary = Vocabulary(Tokenizer.from_str(text))
        found, words = _apart(vocabulary)
    # A crafted file makes the Rust side panic with a BaseException of its own.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"{where}: not a tokenizer this version can read ({reason})") from None
    # Only the words may differ from what training writes: the rest decides what happens to text.
    expected, _ = _apart(Vocabulary(_untrained()))
    for part in sorted(expected.keys() | found.keys()):
        if found.get(part) != expected.get(part):
            raise UserError(f"{where}: its {part} is not that of a byte-level BPE of this version")
    if sorted(words.values()) != list(range(len(words))) or len(words) != len(vocabulary):
        raise UserError(f"{where}: its {len(words)} tokens do not have the ids 0 to {len(words) - 1}")
    if missing := set(pre_tokenizers.ByteLevel.alphabet()) - words.keys():
        raise UserError(f"{where}: {len(missing)} of the 256 bytes are missing: some text could not be read")
    return vocabulary


def _untrained() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def _apart(vocabulary: Vocabulary) -> tuple[dict[str, Any], dict[str, int]]:
    """What a tokenizer does, and its words."""
    table = json.loads(vocabulary.tokenizer.to_str())
    words: dict[str, int] = table["model"].pop("vocab")
    table["model"].pop("merges")
    return table, words

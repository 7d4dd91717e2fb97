"""Pieces of text, and the 256 bytes for what they do not cover, as SentencePiece makes them for Llama."""

from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, models, normalizers

NAME = "vocabulary of pieces"
MARKS = ("<unk>", "<s>", "</s>")
"""Where other vocabularies have <pad>, this has <unk>; with every byte a token, no text needs it."""
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
FIXED = (*MARKS, *BYTES)
"""The first ids of every such vocabulary; no merge may make or use one, so that "</s>" and "<0x0A>" typed are text."""


def build(pieces: Sequence[str], merges: Sequence[tuple[str, str]]) -> Tokenizer:
    """The tokenizer of these pieces, which joins two of them by the first merge it can."""
    words = {word: i for i, word in enumerate([*FIXED, *pieces])}
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=list(merges), unk_token=MARKS[0], byte_fallback=True))
    # A word has one spelling wherever it stands; an empty text stays empty.
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(list(MARKS))
    # Without this, "</s>" typed by a user would become the real end of text.
    tokenizer.encode_special_tokens = True
    return tokenizer


def untrained() -> Tokenizer:
    return build([], [])


def complaint(words: dict[str, int]) -> str | None:
    """What is wrong with these words, if anything."""
    for i, word in enumerate(FIXED):
        if words.get(word) != i:
            return f"{word} has the id {words.get(word, 'of no token')}, but it must be {i}"
    return None


def spellings(tokenizer: Tokenizer) -> list[bytes]:
    """The bytes each id stands for; none for a mark."""
    found = {i: word.encode() for word, i in tokenizer.get_vocab().items()}
    found |= dict.fromkeys(range(len(MARKS)), b"") | {len(MARKS) + byte: bytes([byte]) for byte in range(256)}
    return [found.get(i, b"") for i in range(len(found))]

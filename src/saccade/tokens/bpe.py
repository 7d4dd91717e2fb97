"""Joint byte-level BPE: any Unicode in, the same text out, no unknown word."""

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from saccade.tokens.marks import SPECIALS

NAME = "byte-level BPE"
FIXED: tuple[str, ...] = ()
"""Nothing to guard: marks are signs and letters, which are kept apart before anything is joined."""


def train(vocabulary: int, least: int, texts: Iterable[str]) -> Tokenizer:
    """Learn the merges from texts (Sennrich et al. 2016); pairs seen less often than `least` are not merged."""
    tokenizer = untrained()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=least,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def untrained() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def unmerged(tokenizer: Tokenizer) -> Tokenizer:
    """The same ids, but nothing is joined: every byte is a token."""
    alone = Tokenizer(models.BPE(vocab=tokenizer.get_vocab(), merges=[]))
    alone.pre_tokenizer = tokenizer.pre_tokenizer
    alone.encode_special_tokens = True
    return alone


def complaint(words: dict[str, int]) -> str | None:
    """What is wrong with these words, if anything."""
    missing = set(pre_tokenizers.ByteLevel.alphabet()) - words.keys()
    return f"{len(missing)} of the 256 bytes are missing: some text could not be read" if missing else None

"""Multi30k English to German, cut into the same subwords for everyone who trains on it."""

from dataclasses import dataclass

from bench.console import say
from bench.settings import Settings
from saccade.data.text import Pair, data_folders, find, read_pairs
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary

FILES = ("multi30k/train.en.gz", "multi30k/train.de.gz")
DEVELOPMENT = ("multi30k/val.en.gz", "multi30k/val.de.gz")
VOCABULARY = 8000

Ids = list[list[int]]


@dataclass(frozen=True)
class Corpus:
    vocabulary: Vocabulary
    sources: Ids
    targets: Ids
    development: list[Pair]


def read_multi30k(settings: Settings) -> Corpus:
    """Learns one joint vocabulary from both sides of the training part."""
    say(f"reading {' and '.join(FILES)}, learning {VOCABULARY:,} subwords")
    folders = data_folders(settings.data)
    training, development = (read_pairs([find(name, folders) for name in part]) for part in (FILES, DEVELOPMENT))
    vocabulary = train_vocabulary(TokensConfig(vocabulary=VOCABULARY), (text for pair in training for text in pair))
    sources, targets = (vocabulary.encode(side) for side in zip(*training, strict=True))
    return Corpus(vocabulary, sources, targets, development)

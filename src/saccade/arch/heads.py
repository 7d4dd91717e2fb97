"""What stands on an encoder: guessed words, a class or a number for a text, a tag for each word."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from saccade.arch.bert import BertConfig
from saccade.arch.weights import Weights, linear, norm, tied, within
from saccade.arch.xlnet import XlnetConfig
from saccade.config import Record


def _bert_unless_said(table: object) -> object:
    return {"kind": "bert"} | table if isinstance(table, dict) else table


TextEncoderConfig = Annotated[
    Annotated[BertConfig | XlnetConfig, Field(discriminator="kind")], BeforeValidator(_bert_unless_said)
]
"""What reads: kind = "bert" or "xlnet"."""


class WordsHead(Record):
    """Which word stood there; with BERT, perhaps also whether one text follows another."""

    next_sentence: bool = False

    def weights(self, encoder: BertConfig | XlnetConfig, vocabulary: int) -> Weights:
        width, tokens = encoder.width, "encoder.embed.tokens"
        if isinstance(encoder, XlnetConfig):
            return linear("head", vocabulary, width, "chosen") | tied("head", tokens, vocabulary, width, "chosen")
        return (
            linear("words.dense", width, width, "chosen")
            | norm("words.norm", width)
            | linear("words.head", vocabulary, width, "chosen")
            | tied("words.head", tokens, vocabulary, width, "chosen")
            | (pooler(width) | linear("follows", 2, width, "row") if self.next_sentence else {})
        )


class ClassHead(Record):
    """A class of a text or of a pair of texts; with a single output, a number."""

    outputs: int = Field(ge=1)

    def weights(self, encoder: BertConfig | XlnetConfig, vocabulary: int) -> Weights:
        return pooler(encoder.width) | linear("head", self.outputs, encoder.width, "row")


class TagsHead(Record):
    """A tag for every word."""

    outputs: int = Field(ge=1)

    def weights(self, encoder: BertConfig | XlnetConfig, vocabulary: int) -> Weights:
        return linear("head", self.outputs, encoder.width, "chosen")


class EncoderModel(Record):
    """An encoder with a head."""

    encoder: TextEncoderConfig
    head: WordsHead | ClassHead | TagsHead

    def weights(self, vocabulary: int) -> Weights:
        """`vocabulary` counts the mask."""
        return within("encoder", self.encoder.weights(vocabulary)) | self.head.weights(self.encoder, vocabulary)


def pooler(width: int) -> Weights:
    """A layer on the first token, which stands for the whole text."""
    return linear("pooler.dense", width, width, "row")
